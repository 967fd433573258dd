"""A pool's counters and measurements."""
