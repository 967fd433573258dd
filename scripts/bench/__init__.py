"""The parts of `scripts/benchmark.py`: what is compared, and what it has to show."""
