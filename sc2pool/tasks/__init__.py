"""Tasks, bots, the mini-games, and the players that play them."""
