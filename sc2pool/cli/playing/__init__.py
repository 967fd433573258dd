"""`sc2pool play`, `record` and `replay`: play episodes, record them, and show replays."""
