"""Without the compiled step path in the workers: the rules of episodes, and replies that are wrong.

A game of its own is played so by `tests/game` (`event_loop_kind`), the pool's ends by `tests/unit`
(`step_path`). The rest of the suite plays with it, if it is built; tests/README.md says how to run
it without.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.programs import run

ROOT = Path(__file__).parents[3]
FILES = ("tests/tasks/test_episode_rules.py", "tests/faults/replies/test_bad_replies.py")
TESTS = "in_the_pool or stepping-close or stepping-swapped or stepping-slow"
"""Which of their tests, as pytest's `-k`: the compiled path is that of a step."""
TIMEOUT_S = 500.0


@pytest.mark.skipif(find_spec("sc2pool._fast") is None, reason="all tests run without it")
@pytest.mark.timeout(TIMEOUT_S + 30)
def test_the_same_tests_pass(tmp_path: Path) -> None:
    pytest_ = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    chosen = ("-m", "not timing", "-k", TESTS, *FILES)
    done = run(
        *(*pytest_, f"--basetemp={tmp_path / 'inner'}", *chosen),
        cwd=ROOT,
        env={**os.environ, "SC2POOL_PURE": "1"},
        timeout_s=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
