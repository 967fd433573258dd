"""Random requests for the stand-in: legal, illegal and malformed. `scripts/fuzz_standin.py`."""
