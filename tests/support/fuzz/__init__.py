"""Random requests for the stand-in, legal, illegal and malformed, for `scripts/fuzz_standin.py`."""
