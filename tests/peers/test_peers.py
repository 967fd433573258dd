"""pysc2, SMAC and SMACv2, as published, play the stand-in; a missing environment is an error.

`run_pysc2.py`, `run_smac.py` and `compare_smacv2.py` make the environments, and play more games.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.peers.compare_smacv2 import ENVIRONMENT as SMACV2_ENVIRONMENT
from tests.peers.compare_smacv2 import compare
from tests.peers.run_smac import ENVIRONMENT as SMAC_ENVIRONMENT
from tests.peers.run_smac import installation, play
from tests.support.programs import run

SCRIPT = Path(__file__).with_name("run_smac.py")


def play_anew(*options: str | Path) -> subprocess.CompletedProcess[str]:
    """SMAC plays one scenario in an environment that the test makes."""
    return run(sys.executable, SCRIPT, "play", "3m", *options)


def test_a_source_that_cannot_be_had_is_named_without_a_traceback(tmp_path):
    source = (tmp_path / "nowhere").as_uri()
    ran = play_anew(
        "--environment", tmp_path / "smac", "--python", sys.executable, "--source", source
    )
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    last = ran.stderr.splitlines()[-1]
    assert last == f"pip could not install {source}; --source takes a folder, too"
    assert not (tmp_path / "smac" / "prepared").exists()


def test_a_python_that_is_not_there_is_named_without_a_traceback(tmp_path):
    python = tmp_path / "python"
    ran = play_anew("--environment", tmp_path / "smac", "--python", python)
    assert ran.returncode == 1
    assert ran.stderr == f"{python} made no environment in {tmp_path / 'smac'}\n"


ROOT = Path(__file__).parents[2]
PYSC2 = Path(os.environ.get("SC2POOL_PYSC2", ROOT / ".venv" / "pysc2"))
PYSC2_MODULES = ("ping", "step_mul_override", "easy_scripted")
PYSC2_TIMEOUT_S = 240

needs_pysc2 = pytest.mark.skipif(
    not (PYSC2 / "prepared").exists(),
    reason=f"no pysc2 in {PYSC2}: `tests/peers/run_pysc2.py tests` makes the environment",
)


@needs_pysc2
def test_pysc2s_own_game_tests_pass():
    script = [sys.executable, Path(__file__).with_name("run_pysc2.py"), "tests", *PYSC2_MODULES]
    ran = run(*script, "--environment", PYSC2, timeout_s=PYSC2_TIMEOUT_S)
    assert ran.returncode == 0 and "9 passed, 0 failed" in ran.stdout, ran.stdout + ran.stderr


SMAC = Path(os.environ.get("SC2POOL_SMAC", SMAC_ENVIRONMENT))


@pytest.mark.skipif(
    not (SMAC / "prepared").exists(),
    reason=f"no SMAC in {SMAC}: `tests/peers/run_smac.py play` makes the environment",
)
@pytest.mark.parametrize("player", ["random", "heuristic"])
def test_smac_plays_as_it_is_published(player):
    """`tests/peers/run_smac.py play` is a longer form of this test."""
    with installation() as game:
        played = play(SMAC / "bin" / "python", game, "3m", player, episodes=3, seed=1)
    assert played.forced_restarts == 0
    assert len(played.returns) == 3
    assert all(0 <= one <= 20.001 for one in played.returns)


SMACV2 = Path(os.environ.get("SC2POOL_SMACV2", SMACV2_ENVIRONMENT))


@pytest.mark.skipif(
    not (SMACV2 / "prepared").exists(),
    reason=f"no SMACv2 in {SMACV2}: `tests/peers/compare_smacv2.py` makes the environment",
)
@pytest.mark.parametrize("scenario", ["terran_5_vs_5", "protoss_5_vs_5", "zerg_5_vs_5"])
def test_smacv2_says_the_same_numbers(scenario):
    """`tests/peers/compare_smacv2.py --options` is a longer form of this test."""
    with installation() as game:
        found = compare(SMACV2 / "bin" / "python", game, scenario, {}, steps=20, seed=1)
    assert not found.different
    assert found.steps >= 20
