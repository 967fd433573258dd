"""`tianshou_env.py`, the tests of `SC2TianshouVectorEnv`, in the environment that has tianshou."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

TIMEOUT_S = 300.0


@pytest.mark.timeout(TIMEOUT_S + 30)
def test_all_of_its_tests_pass(python_with: Callable[[str], str], tmp_path: Path) -> None:
    done = subprocess.run(
        [
            python_with("tianshou"),
            "-m",
            "pytest",
            Path(__file__).with_name("tianshou_env.py"),
            "-p",
            "no:cacheprovider",
            f"--basetemp={tmp_path / 'its own'}",
        ],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
