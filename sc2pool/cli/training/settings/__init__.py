"""The settings of a run, checked before anything heavy starts."""
