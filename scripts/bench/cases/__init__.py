"""The cases, one per file: each is a function that measures by `Settings` and returns rows."""
