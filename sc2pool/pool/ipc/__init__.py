"""Between trainer and worker beside the queue pairs: sockets for messages and descriptors."""
