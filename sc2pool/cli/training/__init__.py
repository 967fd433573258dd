"""`sc2pool train`: PPO on a pool of games, and the folder that it keeps."""
