"""Queue pairs (actions and observations in shared memory), doorbells, and the trainer's waits."""
