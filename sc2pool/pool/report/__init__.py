"""A pool's output: live files, metrics, a window, logs, replays, fault reports."""
