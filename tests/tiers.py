"""Which tests run when: the tier of a test follows from its folder.

    ./scripts/test          fast: what a change breaks most often, in this order
    ./scripts/test --all    fast, and all that takes minutes or has libraries of its own
    ./scripts/test --long   what takes an hour: by hand, and on a schedule
    ./scripts/test --windows   what shows that it works there, by a Windows Python under Wine

A run of tests that are named (`pytest tests/ray`) has no tier: it runs what is named.
"""

from __future__ import annotations

import os

FAST = (
    "unit",
    "game",
    "faults/games",
    "contract/classes",
    "contract/players",
    "contract/steps",
    "tasks",
    "simulation",
    "package",
)
"""The quickest first, so that what fails is told early; but faults, which wait, not at the end."""
SLOW = (
    "ray",
    "realtime",
    "docs",
    "libraries",
    "faults/classes",
    "faults/replies",
    "cli",
    "audit",
    "contract/reports",
    "faults/endings",
    "faults/pools",
    "examples",
    "matches",
    "standin",
)
"""The longest first, so that no core is idle at the end."""
LONG = (
    "studies",
    "benchmark",
    "chaos",
    "crashes",
    "peers",
    "contract/classes",
    "contract/players",
    "contract/steps",
    "simulation",
    "ray",
    "faults/classes",
    "libraries/test_notebook.py",
)
"""From `simulation` on, these have longer forms, see LONGER. The contract plays all tempers."""
WINDOWS = (
    "windows",
    "unit/test_processes.py",
    "unit/game",
    "unit/pool",
    "unit/protocol",
    "unit/test_envs.py",
    "unit/tasks",
    "unit/test_render.py",
    "unit/test_replacing.py",
    "game/test_game.py",
    "game/test_launch.py",
    "contract/steps/test_steps.py",
    "faults/games/test_kill_and_stop.py",
)
"""What a Windows Python can run, of that what shows most in some minutes."""
FOLDERS = {"fast": FAST, "all": SLOW + FAST, "long": LONG, "windows": WINDOWS}
"""Of each tier, in the order in which they run."""
LONGER = "SC2POOL_LONG"
"""The environment variable that asks tests for their longer form; the long tier sets it."""


def is_long() -> bool:
    """Whether tests shall have their longer form."""
    return bool(os.environ.get(LONGER))


def tier_of(nodeid: str) -> str:
    """The first tier that runs this test."""
    return next(
        tier
        for tier, folders in FOLDERS.items()
        if any(nodeid.startswith(f"tests/{folder}/") for folder in folders)
    )
