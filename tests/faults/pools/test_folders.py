"""Folders mounted read-only or without permission to execute, as administrators mount them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.programs import run

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
import numpy as np
from sc2pool import SC2VectorEnv
from sc2pool.config import Limits, PoolConfig
from sc2pool.errors import ConfigError
try:
    env = SC2VectorEnv(
        n=2, task="MoveToBeacon", game=sys.argv[1], config=PoolConfig(limits=Limits(launch_s=5.0))
    )
except ConfigError as error:
    print("ConfigError:", error)
else:
    env.reset()
    env.step(np.zeros(2, np.int64))
    env.close()
    print("played")
"""


def can_mount() -> bool:
    return run("unshare", "-m", "true").returncode == 0


pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0 or not can_mount(), reason="needs a mount of its own"),
    pytest.mark.standin("the stand-in is installed in one of the folders"),
]


def play(folder: Path, options: str, variable: str, game: object) -> str:
    """The output of the program if `variable` names this folder, mounted with these options."""
    folder.mkdir()
    mount = f'mount -t tmpfs -o {options},size=64m none "$0" && exec "$@"'
    environment = os.environ | {variable: str(folder), "PYTHONPATH": str(ROOT)}
    mounted = ("unshare", "-m", "sh", "-c", mount, folder)
    done = run(*mounted, sys.executable, "-c", PROGRAM, game, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("options", "variable"), [("noexec", "TMPDIR"), ("ro", "TMPDIR"), ("ro", "XDG_CACHE_HOME")]
)
def test_a_folder_that_a_pool_can_do_without(standin_dir, tmp_path, options, variable):
    """Like Python's own `tempfile`, the pool takes the next temporary folder that is writable.

    Fault reports need no cache.
    """
    assert play(tmp_path / "folder", options, variable, standin_dir) == "played"


def test_a_cache_that_is_read_only_is_named(tmp_path):
    said = play(tmp_path / "cache", "ro", "XDG_CACHE_HOME", "auto")
    assert said.startswith("ConfigError: cannot write the stand-in")
    assert str(tmp_path / "cache") in said


def test_a_cache_that_executes_nothing_is_named(tmp_path):
    said = play(tmp_path / "cache", "noexec", "XDG_CACHE_HOME", "auto")
    assert said.startswith("ConfigError: ")
    assert "SC2_x64" in said
    assert "noexec" in said
