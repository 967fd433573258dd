"""The baselines for the pool, and the empty env that all of them step."""
