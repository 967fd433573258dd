"""Queue pairs: actions and observations in shared memory, the bells that wake, and who waits."""
