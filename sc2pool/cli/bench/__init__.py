"""`sc2pool bench`, and what it shares with the measurements in `scripts/`."""
