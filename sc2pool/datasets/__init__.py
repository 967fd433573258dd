"""Episodes of a pool as a dataset in Minari's format, to learn from without a game."""
