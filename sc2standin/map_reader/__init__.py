"""Reads map files, the stand-in's own and, as far as SMAC's go, those of the real game."""
