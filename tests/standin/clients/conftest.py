"""Programs with python-sc2's bots that play on the stand-in and print what they saw as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TIMEOUT_S = 300
Program = subprocess.Popen[str]


@pytest.fixture
def run(installation: Path) -> Callable[..., Program]:
    """Runs a program of this folder."""

    def start(name: str, *arguments: object) -> Program:
        path = Path(__file__).with_name(f"{name}.py")
        fixed = {"SC2PATH": str(installation), "SC2PF": "Linux", "PYTHONHASHSEED": "1"}
        return subprocess.Popen(
            [sys.executable, path, *map(str, arguments)],
            env=os.environ | fixed,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def said(program: Program, *, quiet: bool = False) -> Any:
    """What it printed last, as JSON; if it is quiet, it logs no traceback."""
    try:
        out, errors = program.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        program.kill()
        out, errors = program.communicate()  # which says how far it came
    assert program.returncode == 0, errors[-3000:] + out[-3000:]
    assert not (quiet and "Traceback" in errors), errors[-3000:]
    return json.loads(out.splitlines()[-1])
