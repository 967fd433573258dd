"""What the pool is compared with, and the empty env that all of them step."""
