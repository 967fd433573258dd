"""`sc2pool bench`, and code that it shares with the measurements in `scripts/`."""
