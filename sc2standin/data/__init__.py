"""What is the same in every game: unit types, abilities, spells, research, and the data tables."""
