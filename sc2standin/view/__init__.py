"""The client's view of an episode: one message, of which only the changed fields are set again."""
