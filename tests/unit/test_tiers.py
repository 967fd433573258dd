"""Tests the options `--tier` and `--game`: the tests that they run, and the report of a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.tiers import FOLDERS, GivesWay, gives_way, tier_of

TESTS = Path(__file__).parents[1]
UNSTABLE = """
import pathlib
import pytest

def test_stable():
    pass

def test_unstable(pytestconfig):
    ran_before = pathlib.Path(pytestconfig.rootpath, "ran")
    if not ran_before.exists():
        ran_before.touch()
        pytest.fail("this time")
"""


def test_every_test_is_in_a_tier():
    for path in TESTS.rglob("test_*.py"):
        assert tier_of(path.relative_to(TESTS.parent).as_posix()) in FOLDERS
    assert set(FOLDERS["fast"]) < set(FOLDERS["all"])


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A checkout with only two unit tests, one of which passes only in the second run."""
    tests = tmp_path / "tests"
    for folder in FOLDERS["fast"]:
        (tests / folder).mkdir(parents=True)
    (tests / "unit" / "test_two.py").write_text(UNSTABLE)
    for name in ("conftest.py", "reporting.py", "tiers.py"):
        (tests / name).symlink_to(TESTS / name)
    (tmp_path / "pyproject.toml").symlink_to(TESTS.parent / "pyproject.toml")
    return tmp_path


def run(suite: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *arguments],
        cwd=suite,
        env=os.environ | {"PYTHONPATH": f"{TESTS.parent / 'scripts'}:{TESTS.parent}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def test_only_workers_beyond_the_fourth_wait_until_the_cores_are_not_busy(request, monkeypatch):
    assert [gives_way(f"gw{number}") for number in (0, 3, 4, 10)] == [False, False, True, True]
    busy_percent = [100.0, 90.0, 20.0]
    monkeypatch.setattr(psutil, "cpu_percent", lambda interval: busy_percent.pop(0))
    pacer = GivesWay()
    pacer.pytest_runtest_protocol(request.node)
    assert not busy_percent
    pacer.pytest_runtest_protocol(request.node)  # in the same file, the load is not checked again


def test_a_run_in_parallel_and_a_second_one_which_names_what_passes_only_now(suite):
    """A run shows its progress, the failures and the slowest tests."""
    code, out = run(suite, "--tier=fast", "-n", "2")
    assert code == 1
    assert "2 of 2 tests, 1 failed; tests/unit/test_two.py\n" in out
    assert "FAILED tests/unit/test_two.py::test_unstable (call): Failed: this time\n" in out
    slowest = out[out.index("slowest 20 tests") :]
    assert "  tests/unit/test_two.py::test_stable\n" in slowest
    code, out = run(suite, "--tier=fast", "--last-failed")
    assert code == 0
    assert out.count("test_unstable") == 1
    assert "passed only the second time: to be mended" in out
    assert "test_stable" not in out


def test_game_alone_runs_the_contract_with_the_game(suite, standin_dir):
    for folder in ("unit/protocol", "game", "tasks", "standin/assertions", "cli"):
        place = suite / "tests" / folder
        place.mkdir(parents=True, exist_ok=True)
        (place / "test_one.py").write_text("def test_one(): pass")
    code, out = run(suite, f"--game={standin_dir}", "--collect-only")
    assert code == 0
    assert [line.partition("::")[0] for line in out.splitlines() if "::" in line] == [
        "tests/unit/protocol/test_one.py",
        "tests/game/test_one.py",
        "tests/tasks/test_one.py",
        "tests/standin/assertions/test_one.py",
    ]


def test_a_wrong_path_of_a_game_is_an_error_at_once(suite, tmp_path):
    code, out = run(suite, f"--game={tmp_path}")
    assert code == 4
    assert f"{tmp_path} has no folder Versions" in out
