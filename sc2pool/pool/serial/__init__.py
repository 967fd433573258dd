"""A pool whose players live in the trainer's process, for debugging; the games are processes."""
