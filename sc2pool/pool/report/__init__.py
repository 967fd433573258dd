"""A pool's output: live files, metrics, a web page, logs, replays, fault reports."""
