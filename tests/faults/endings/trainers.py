"""Training programs as the tests hold them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

TRAINER = Path(__file__).with_name("trainer.py")
TRAINER_OF_ENVS = Path(__file__).with_name("trainer_of_envs.py")
_TASKS = str(Path(__file__).parents[1])
"""Where they find the tasks that they play."""


def _with_tasks(search_path: str | None) -> str:
    return _TASKS if search_path is None else os.pathsep.join([_TASKS, search_path])


class Trainer:
    """A running training program."""

    def __init__(self, program: Path, *arguments: str | Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, program, *arguments],
            env=os.environ | {"PYTHONPATH": _with_tasks(os.environ.get("PYTHONPATH"))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.children: list[psutil.Process] = []

    def wait_for_stage(self, stage: str) -> dict[str, Any]:
        """What the program says when it gets there."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said: dict[str, Any] = json.loads(line)
            if said["stage"] == stage:
                self.children = [psutil.Process(pid) for pid in said.get("children", [])]
                return said
        raise AssertionError(f"it never got to {stage!r}: {self.process.communicate()[1]}")

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()
