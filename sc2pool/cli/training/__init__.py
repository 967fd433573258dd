"""`sc2pool train`: trains an algorithm on a pool of games, and keeps the run's folder."""
