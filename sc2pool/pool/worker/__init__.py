"""The worker: one process that runs one or several players."""
