"""Tasks, bots and mini-games, and the players that play them in a worker."""
