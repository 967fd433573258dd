from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import sc2pool
from sc2pool.processes.spawn import run_python

PACKAGE = Path(sc2pool.__file__).parent


def test_a_child_gets_no_path_that_depends_on_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`export PYTHONPATH=$PYTHONPATH:/folder` may leave an empty entry, which means it."""
    folder = tmp_path / "folder"
    monkeypatch.setenv("PYTHONPATH", f":.:relative:{folder}")
    monkeypatch.chdir(tmp_path)
    printed = run_python("site", timeout_s=60).stdout
    assert f"'{folder}'" in printed
    assert f"'{tmp_path}'" not in printed
    assert "relative" not in printed


def test_a_child_that_takes_too_long_is_killed() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_python("timeit", "-n", "1", "-s", "import time", "time.sleep(60)", timeout_s=0.5)


def test_no_other_place_starts_a_python() -> None:
    starting = {
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if "sys.executable" in file.read_text()
    }
    assert starting == {"processes/spawn.py"}
