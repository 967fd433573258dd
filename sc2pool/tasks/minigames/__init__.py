"""The mini-games of the SC2LE paper as tasks: small observations, discrete actions."""
