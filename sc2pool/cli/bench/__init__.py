"""`sc2pool bench`, and the means of measuring that `scripts/benchmark.py` shares with it."""
