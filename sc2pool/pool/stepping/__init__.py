"""Where each env's step is, and the batch that comes of it."""
