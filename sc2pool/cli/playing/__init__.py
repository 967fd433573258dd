"""`sc2pool play`, `record` and `replay`: policies play, and what was played is shown or kept."""
