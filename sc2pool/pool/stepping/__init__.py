"""The stage of each env's step, and the batches of results."""
