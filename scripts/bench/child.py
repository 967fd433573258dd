"""Starts the programs of this package, each in a Python of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from sc2pool.processes.with_parent import die_with_parent


def start(module: str, *arguments: object, **options: Any) -> subprocess.Popen[Any]:
    """Run `python -m module`; the kernel kills it when this thread ends.

    Args:
        module: such as `bench.baselines.wire`.
        arguments: of its command line.
        options: more for `Popen`.
    """
    return subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        preexec_fn=die_with_parent(),  # noqa: PLW1509  # it takes no lock
        start_new_session=True,
        **options,
    )
