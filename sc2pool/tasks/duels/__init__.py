"""Built-in tasks of two players."""
