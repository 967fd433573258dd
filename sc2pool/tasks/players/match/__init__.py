"""The player of a match, and the sides that it is made of."""
