"""xjump, a game of 1997 for X11 without an interface for programs, as a real-time env.

env = gymnasium.make("examples.xjump:XJump-v0")
"""

from __future__ import annotations

import gymnasium

gymnasium.register(
    "XJump-v0",
    entry_point="examples.xjump.env:XJumpEnv",
    nondeterministic=True,  # because the game has no seed and runs on its own clock
)
