"""By whatever door a program leaves the interpreter, no worker and no game stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from doors import DOORS

from tests.support.programs import PER_GAME, Trainer, assert_gone, by_the_kernel

ENDS_WITHIN_S = 60.0
"""By itself; a program that has lost something it needs gets the time that `close` is allowed."""


@pytest.mark.timing
@pytest.mark.usefixtures("swept")
@pytest.mark.parametrize(
    "door",
    [
        pytest.param(door, marks=by_the_kernel if door == "it becomes a daemon" else ())
        for door in DOORS
    ],
)
def test_nothing_stays(start_trainer: Callable[..., Trainer], standin_dir: Path, door: str) -> None:
    program = start_trainer("doors.py", standin_dir, door)
    program.wait_for_stage("playing")
    assert len(program.children) == 1 + PER_GAME, "a worker and a game"
    assert program.process.stdin is not None
    program.process.stdin.write("\n")
    program.process.stdin.flush()
    if "another program" not in door:
        program.process.wait(ENDS_WITHIN_S)
    assert_gone(program.children)
