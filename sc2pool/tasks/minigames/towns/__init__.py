"""The mini-games with an economy: a town that gathers, builds and trains."""
