"""Replays: what is recorded of an episode, the file that holds it, and playing it again."""
