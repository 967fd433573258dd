"""What a stranger meets in the first hour: the stations of `scripts/stranger.py`."""
