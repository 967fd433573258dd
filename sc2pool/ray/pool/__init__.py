"""One pool of games on the nodes of a Ray cluster, for `RaySC2VecEnv`."""
