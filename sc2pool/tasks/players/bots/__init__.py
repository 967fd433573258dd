"""python-sc2's bots on games of the pool: what drives one, and the player of an `RLBotAI`."""
