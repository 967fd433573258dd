"""SuperTux, a game without any interface for programs, as a real-time env.

env = gymnasium.make("examples.supertux:SuperTux-v0")
"""

from __future__ import annotations

import gymnasium

gymnasium.register(
    "SuperTux-v0",
    entry_point="examples.supertux.env:SuperTuxEnv",
    nondeterministic=True,  # because the game has no seed and runs on its own clock
)
