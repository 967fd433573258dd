"""A pool's worker processes, run folder and watchdog."""
