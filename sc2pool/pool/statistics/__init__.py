"""What a pool counts and measures."""
