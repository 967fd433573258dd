"""The pool: queue pairs in shared memory, workers, and the supervisor that keeps them alive."""
