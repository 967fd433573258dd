"""The cases (measurements) of `scripts/benchmark.py`, with the programs that they compare."""
