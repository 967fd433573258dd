"""Instances (the units that are replaced after a fault): their life, supervision and recovery."""
