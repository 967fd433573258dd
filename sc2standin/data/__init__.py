"""Data that are the same in every game: unit types, abilities, spells, research and data tables."""
