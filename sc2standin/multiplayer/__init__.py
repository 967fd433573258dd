"""A game of two clients: each has a process of its own, and both play it in lock-step.

    meeting      the processes find each other: create_game and both join_games are exchanged
    link         the connection between them, on the port that join_game names
    asked_loops  which loops both players have asked for
    match        the game in one of the processes

Each process simulates the whole game, as the real game's do: the requests of both players are
carried out in both, at the same loop and in the same order, and the game depends on nothing else.
So a process needs nothing of the other one but requests, and it continues if the other one dies.
"""
