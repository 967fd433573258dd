"""The simulated world: one file per mechanism. It knows no requests and reads no clock."""
