"""`sc2pool top` and `watch`: pools that run, by their live files, here or on a cluster."""
