"""The command `sc2pool bench`; the measurements in `scripts/` also use its code."""
