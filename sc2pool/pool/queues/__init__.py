"""Queue pairs: actions and observations in shared memory, doorbells, and who waits."""
