"""What a pool says about itself: statistics, live files, logs, replays, fault reports."""
