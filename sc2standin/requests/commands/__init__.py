"""Commands to units: for each unit, a command becomes an order or one of the game's errors."""
