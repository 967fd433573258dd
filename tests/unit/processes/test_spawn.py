from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import sc2pool
from sc2pool.processes.spawn import run_python

PACKAGE = Path(sc2pool.__file__).parent


def test_a_child_gets_no_path_that_depends_on_the_working_directory(tmp_path, monkeypatch):
    """`export PYTHONPATH=$PYTHONPATH:/folder` may leave an empty entry, which means it."""
    folder = tmp_path / "folder"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", ".", "relative", str(folder)]))
    monkeypatch.chdir(tmp_path)
    printed = run_python("site", timeout_s=60).stdout
    assert repr(str(folder)) in printed
    assert repr(str(tmp_path)) not in printed
    assert "relative" not in printed


def test_a_child_ends_where_the_users_own_program_would_not(monkeypatch):
    monkeypatch.setenv("PYTHONINSPECT", "1")
    assert run_python("base64", "-h", timeout_s=60).returncode == 0


def test_what_is_printed_may_have_any_letter(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")  # as Windows in Western Europe
    done = run_python("sc2standin", "install", str(tmp_path / "Łukasz"), timeout_s=60)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.rstrip("\n")).is_file()


def test_a_child_that_takes_too_long_is_killed():
    with pytest.raises(subprocess.TimeoutExpired):
        run_python("timeit", "-n", "1", "-s", "import time", "time.sleep(60)", timeout_s=0.5)


def test_no_other_place_starts_a_python():
    starting = {
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if "sys.executable" in file.read_text()
    }
    assert starting == {"processes/spawn.py", "shell.py"}  # the second tells its user of it


def test_an_interrupt_leaves_no_zombie(monkeypatch):
    started: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen[bytes]):
        def communicate(self, *_: object) -> tuple[bytes, bytes]:
            started.append(self)
            self._sigint_wait_secs = 0.0
            raise KeyboardInterrupt

    monkeypatch.setattr("sc2pool.processes.spawn.subprocess.Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_python("timeit", "-s", "import time", "time.sleep(60)", timeout_s=60)
    assert started[0].returncode is not None
