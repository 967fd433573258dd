"""The worker: one process that runs one player."""
