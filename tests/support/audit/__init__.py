"""Checks that no transition is lost, doubled, swapped or stale; each fault is reported once."""
