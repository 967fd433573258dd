"""Episodes of a pool as a dataset in Minari's format, for learning without a game."""
