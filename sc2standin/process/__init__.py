"""The game process: its socket, its session, its state between two requests, its clock."""
