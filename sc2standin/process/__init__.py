"""The game process: the socket, the session, the state between two requests, the clock."""
