"""What a pool shows and keeps: live files, metrics, a window, logs, replays, fault reports."""
