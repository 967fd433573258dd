"""What workers do: gather, build, repair, and walk from one place to the next."""
