"""Proof that no transition is lost, doubled, swapped or stale, and each fault is reported once."""
