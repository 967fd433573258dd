"""Draws legal, illegal and malformed requests for the stand-in, for `scripts/fuzz_standin.py`."""
