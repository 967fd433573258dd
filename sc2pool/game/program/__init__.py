"""The game as a program: find it, lease a port, launch it, keep the end of its output, kill it."""
