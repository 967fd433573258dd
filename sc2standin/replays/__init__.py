"""Replays: the record of an episode, its file, and its playback."""
