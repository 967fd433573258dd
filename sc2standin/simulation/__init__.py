"""The simulated world: one file per mechanism. It handles no requests and reads no clock."""
