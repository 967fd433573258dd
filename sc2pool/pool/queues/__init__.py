"""Exchanges actions and observations in shared memory (queue pairs), with doorbells to wake up."""
