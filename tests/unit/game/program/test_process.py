"""The small parts of a game's process: environment, log, kill."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from sc2pool.game.program.installation import Installation
from sc2pool.game.program.lease import PortLease
from sc2pool.game.program.process import GameProcess, game_environment, log_left_in
from sc2pool.platform import WINDOWS
from sc2pool.processes import follower
from tests.support.systems import KILLED, SLEEPS, is_private, write_program

SLEEP = "import time; time.sleep(60)"
has_groups = pytest.mark.skipif(WINDOWS, reason="it has no process groups")


def test_environment_is_an_allow_list():
    given = {"PATH": "/bin", "LC_ALL": "C", "API_TOKEN": "secret", "LD_PRELOAD": "x", "TMPDIR": "/"}
    own = Path("/own")
    assert game_environment(given, own) == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "TMPDIR": str(own),
        "TEMP": str(own),
        "TMP": str(own),
    }


@pytest.fixture
def spawn(tmp_path):
    """Starts a program of Python as a game."""
    started = []

    def start(program: str, core_file_bytes: int = 0) -> GameProcess:
        executable = write_program(tmp_path / "SC2_x64", program)
        lease = PortLease.acquire(tmp_path)
        installation = Installation(tmp_path, executable, 1, None, None)
        game = GameProcess.spawn(installation, lease, core_file_bytes=core_file_bytes)
        started.append((game, lease))
        return game

    yield start
    for game, lease in started:
        game.close()
        game.close()
        lease.release()


def ended(game: GameProcess) -> bool:
    return select.select([game.exited_fd], [], [], 5)[0] != []


def test_temp_directory_is_private_and_goes(spawn):
    game = spawn(SLEEP)
    directory = game._temp_dir
    assert is_private(directory)
    game.close()
    assert not directory.exists()
    assert game.exit_code() in KILLED


@pytest.mark.skipif(WINDOWS, reason="it has no such limit")
@pytest.mark.parametrize("size_bytes", [0, 4096])
def test_core_files_are_limited_for_the_game_alone(spawn, limited, size_bytes):
    resource = pytest.importorskip("resource")
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard != resource.RLIM_INFINITY and hard < 8192:
        pytest.skip("this process may have no larger limit")
    with limited("CORE", 8192):
        game = spawn(SLEEP, size_bytes)
        assert psutil.Process(game.pid).rlimit(psutil.RLIMIT_CORE)[0] == size_bytes
        assert resource.getrlimit(resource.RLIMIT_CORE)[0] == 8192


def test_advice_is_part_of_the_fault_if_the_cause_is_known(spawn):
    game = spawn("print('Fatal error encountered! e_fileCorruptRepairable'); raise SystemExit(9)")
    assert ended(game)
    assert "exit code 9 (the installation's files are damaged" in game.exit_fault().detail


@has_groups
def test_a_worker_s_game_stays_in_its_process_group(spawn, monkeypatch):
    monkeypatch.setattr(follower, "_follows", True)
    game = spawn(SLEEP)
    assert os.getpgid(game.pid) == os.getpgid(0)


@has_groups
def test_another_program_s_game_has_a_group_of_its_own(spawn):
    game = spawn(SLEEP)
    assert os.getpgid(game.pid) == game.pid


def test_kill_ends_children_and_stopped_processes(spawn, wait_for):
    game = spawn(
        "import subprocess, time\n"
        f"children = [subprocess.Popen({SLEEPS}) for _ in range(2)]\n"
        "print(*(child.pid for child in children), flush=True)\n"
        f"{SLEEP}"
    )
    process = psutil.Process(game.pid)
    wait_for(game.log_tail)
    process.suspend()
    wait_for(lambda: process.status() == psutil.STATUS_STOPPED)
    family = game.family()
    assert {one.pid for one in family} >= {game.pid, *map(int, game.log_tail().split())}
    assert WINDOWS or len(family) == 3  # which has consoles among them
    game.kill()
    _, alive = psutil.wait_procs(family, timeout=5)
    assert alive == []


def test_log_tail(spawn):
    game = spawn(
        "import sys\n"
        "print(*(f'line {number}' for number in range(1, 501)), sep='\\n', flush=True)\n"
        "print('to stderr', file=sys.stderr)\n"
        "sys.exit(3)"
    )
    assert ended(game)
    assert game.log_tail(2) == "line 500\nto stderr"
    assert log_left_in(game._temp_dir.parent).endswith("line 500\nto stderr")
    assert "exit code 3" in str(game.exit_fault("launch-failed"))
    game.close()
    assert game.log_tail(1) == "to stderr"
    assert log_left_in(game._temp_dir.parent) == ""


def test_refusal_of_the_system_is_no_error_of_the_user(tmp_path, limited):
    lease = PortLease.acquire(tmp_path)
    installation = Installation(Path("/"), Path("/bin/true"), 1, None, None)
    with limited("NOFILE", 0), pytest.raises(OSError, match="Too many open files"):
        GameProcess.spawn(installation, lease)
    lease.release()


def test_figures_of_a_dead_game(spawn):
    game = spawn("")
    assert ended(game)
    game.kill()
    assert game.exit_code() == 0
    assert game.cpu_seconds() == 0.0
    assert game.rss_bytes() == 0


def test_game_dies_with_its_parent(tmp_path):
    script = """
import sys
from pathlib import Path
from sc2pool.game.program.installation import Installation
from sc2pool.game.program.lease import PortLease
from sc2pool.game.program.process import GameProcess
root = Path(sys.argv[1])
game = GameProcess.spawn(
    Installation(root, Path(sys.argv[2]), 1, None, None), PortLease.acquire(root)
)
print(game.pid, flush=True)
sys.stdin.read()
"""
    executable = write_program(tmp_path / "SC2_x64", SLEEP)
    worker = subprocess.Popen(
        [sys.executable, "-c", script, tmp_path, executable],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    game = psutil.Process(int(worker.stdout.readline()))
    worker.kill()
    worker.communicate()
    assert psutil.wait_procs([game], timeout=2)[1] == []
