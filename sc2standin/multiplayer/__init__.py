"""A game of two clients: each client has its own process, and both processes play in lock-step.

    meeting      the processes find each other, and exchange create_game and both join_games
    link         the connection between the processes, on the port that join_game names
    match        the game in one of the processes, and the loops that both players have asked for

Each process simulates the whole game, as the real game's do. Both processes carry out the requests
of both players, at the same loop and in the same order, and the game depends on nothing else. So a
process needs only the requests of its peer, and it continues if its peer dies.
"""
