"""What is fixed before a game begins: unit types, abilities, and what a map file may say."""
