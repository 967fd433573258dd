"""What is handed out is the trainer's own: whatever it writes there, what comes later is true."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from every_class import LIBRARIES, MODES
from tested import TESTED

from tests.tiers import is_long

PROGRAM = Path(__file__).with_name("scribbling.py")
TRANSITIONS = 20_000 if is_long() else 150
ALL_CASES = [
    *((name, mode, "task") for name in LIBRARIES for mode in MODES[name]),
    *(("SubprocSC2VecEnv", "", space) for space in ("dict", "no layout")),
    ("SC2VectorEnv", "SameStep", "no layout"),
    ("SC2TianshouVectorEnv", "", "dict"),
]
CASES = [case for case in ALL_CASES if case[0] in TESTED]


@pytest.mark.timeout(660)
@pytest.mark.parametrize(("name", "mode", "envs"), CASES)
def test_every_last_observation_is_true(  # noqa: PLR0917
    name: str,
    mode: str,
    envs: str,
    python_with: Callable[[str], str],
    standin_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SC2PATH", str(standin_dir))
    python = python_with(LIBRARIES[name]) if LIBRARIES[name] else sys.executable
    done = subprocess.run(
        [python, PROGRAM, name, mode, envs, str(TRANSITIONS)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["faults"] > 0
