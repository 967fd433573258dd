"""Activities of workers: gather, build, repair, and walk from one place to the next."""
