"""The tests of env classes whose libraries have an environment of their own, where this is."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

TIMEOUT_S = 500.0


@pytest.mark.timeout(TIMEOUT_S + 30)
@pytest.mark.parametrize("library", ["pettingzoo", "tianshou"])
def test_all_of_its_tests_pass(
    library: str, python_with: Callable[[str], str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [
            python_with(library),
            "-m",
            "pytest",
            Path(__file__).parent / "programs" / f"{library}_env.py",
            "-p",
            "no:cacheprovider",
            f"--basetemp={tmp_path / 'its own'}",
        ],
        cwd=Path(__file__).parents[2],
        # tianshou would compile a few functions for seven seconds of CPU time.
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
