"""The mini-games of the SC2LE paper as tasks with small observations and discrete actions."""
