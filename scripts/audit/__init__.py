"""Proof that no transition is lost, doubled, swapped or stale, and that each fault is told once."""
