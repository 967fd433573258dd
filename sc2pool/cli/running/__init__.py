"""`sc2pool top` and `watch`: show running pools, on this machine or on a Ray cluster."""
