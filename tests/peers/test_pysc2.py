"""pysc2 as it is published plays the stand-in: a few of its own game tests.

`tests/peers/run_pysc2.py` makes its environment and runs all of them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.programs import run

ROOT = Path(__file__).parents[2]
ENVIRONMENT = Path(os.environ.get("SC2POOL_PYSC2", ROOT / ".venv" / "pysc2"))
MODULES = ("ping", "step_mul_override", "easy_scripted")
TIMEOUT_S = 240

pytestmark = pytest.mark.skipif(
    not (ENVIRONMENT / "prepared").exists(),
    reason=f"no pysc2 in {ENVIRONMENT}: `tests/peers/run_pysc2.py tests` makes the environment",
)


def test_pysc2s_own_game_tests_pass():
    script = [sys.executable, Path(__file__).with_name("run_pysc2.py"), "tests", *MODULES]
    ran = run(*script, "--environment", ENVIRONMENT, timeout_s=TIMEOUT_S)
    assert ran.returncode == 0 and "9 passed, 0 failed" in ran.stdout, ran.stdout + ran.stderr
