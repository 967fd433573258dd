"""The SC2 API without I/O: build requests, check replies."""
