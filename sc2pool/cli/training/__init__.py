"""`sc2pool train`: trains an algorithm on a pool of games, and writes the run's folder."""
