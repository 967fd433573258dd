"""Instances: what is replaced as one, its life, and what keeps it alive."""
