"""The simulated world, one file per mechanism. Nothing here handles requests or reads a clock."""
