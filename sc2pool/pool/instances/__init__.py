"""Supervises a pool's instances (each is one player with its games); replaces failed ones."""
