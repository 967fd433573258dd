"""sc2pool on Ray: games on the nodes of a cluster, for RLlib and for Stable-Baselines3."""
