"""Data of every game: unit types, abilities, spells, research, and the data tables."""
