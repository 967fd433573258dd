"""Writes a pool's live files, metrics, web page, logs, replays and fault reports."""
