"""Games of two clients: their connections, and attacks on them."""
