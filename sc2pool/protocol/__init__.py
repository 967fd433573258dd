"""The SC2 API without I/O: build requests, check replies, know the legal status changes."""
