"""What a run does, checked before anything heavy starts."""
