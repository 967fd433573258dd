"""The client's view of an episode: one message, in which only the changed fields are set."""
