"""The folder of a run, and the sweep of those whose trainer is gone."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys

import pytest

from sc2pool.errors import ConfigError
from sc2pool.pool.run_dir import RunDir, sweep


@pytest.fixture
def temp(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_it_is_private_and_goes_with_the_run(temp):
    run = RunDir()
    folder = run.instance_dir(0)
    (folder / "file").touch()
    for path in (run.path, folder):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    run.close()
    run.close()
    assert list(temp.iterdir()) == []


def test_living_runs_and_what_is_not_ours_are_left_alone(temp):
    run = RunDir()
    (temp / "sc2pool-run-begins").mkdir()  # no lock yet
    (temp / "other").mkdir()
    sweep(temp)
    assert {path.name for path in temp.iterdir()} == {
        run.path.name,
        "sc2pool-run-begins",
        "other",
    }
    run.close()


def test_the_folder_of_a_killed_trainer_is_swept_by_the_next(temp):
    program = (
        "import time; from sc2pool.pool.run_dir import RunDir; run = RunDir();"
        "run.instance_dir(0); print(run.path, flush=True); time.sleep(60)"
    )
    trainer = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temp)},
    )
    with trainer:
        left = trainer.stdout.readline().strip()
        sweep(temp)
        assert [str(path) for path in temp.iterdir()] == [left], "its trainer lives"
        trainer.send_signal(signal.SIGKILL)
        trainer.wait(10)
    run = RunDir()
    assert list(temp.iterdir()) == [run.path]
    run.close()


def test_no_place_for_it_is_a_config_error(temp, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(temp / "missing"))
    with pytest.raises(ConfigError, match="cannot make a folder for temporary files"):
        RunDir()
