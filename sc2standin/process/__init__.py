"""The process: its socket, its one session, its state between two requests, its clock."""
