"""Between trainer and worker: shared memory, doorbells, and a channel."""
