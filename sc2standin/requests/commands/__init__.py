"""Commands to units: each becomes an order, or one of the game's result codes."""
