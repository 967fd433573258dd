"""The cases, one per file: each is a function that takes `Settings`, measures and returns rows."""
