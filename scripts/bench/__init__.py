"""The cases of `scripts/benchmark.py`."""
