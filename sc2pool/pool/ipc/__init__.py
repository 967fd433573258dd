"""Communication of trainer and worker besides the queue pairs: messages and descriptors."""
