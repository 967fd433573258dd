"""`sc2pool doctor`: checks the installation, the machine and a running game."""
