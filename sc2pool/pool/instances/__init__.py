"""Supervises a pool's instances (one player with its games) and replaces the failed ones."""
