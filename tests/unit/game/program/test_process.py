"""The small parts of a game's process: environment, log, kill."""

from __future__ import annotations

import os
import select
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from sc2pool.game.program.installation import Installation
from sc2pool.game.program.lease import PortLease
from sc2pool.game.program.process import GameProcess, game_environment, log_left_in
from sc2pool.processes import follower


def test_environment_is_an_allow_list():
    given = {"PATH": "/bin", "LC_ALL": "C", "API_TOKEN": "secret", "LD_PRELOAD": "x", "TMPDIR": "/"}
    assert game_environment(given, Path("/own")) == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "TMPDIR": "/own",
        "TEMP": "/own",
        "TMP": "/own",
    }


@pytest.fixture
def spawn(tmp_path):
    """Starts a shell script as a game."""
    started = []

    def start(script: str) -> GameProcess:
        executable = tmp_path / "SC2_x64"
        executable.write_text(f"#!/bin/sh\n{script}\n")
        executable.chmod(0o755)
        lease = PortLease.acquire(tmp_path)
        game = GameProcess.spawn(Installation(tmp_path, executable, 1, None, None), lease)
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
    game = spawn("sleep 60")
    directory = game._temp_dir
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    game.close()
    assert not directory.exists()
    assert game.exit_code() == -9


def test_a_worker_s_game_stays_in_its_process_group(spawn, monkeypatch):
    monkeypatch.setattr(follower, "_follows", True)
    game = spawn("sleep 60")
    assert os.getpgid(game.pid) == os.getpgid(0)


def test_another_program_s_game_has_a_group_of_its_own(spawn):
    game = spawn("sleep 60")
    assert os.getpgid(game.pid) == game.pid


def test_kill_ends_children_and_stopped_processes(spawn):
    game = spawn("sleep 60 & sleep 60 & echo ready; kill -STOP $$")
    process = psutil.Process(game.pid)
    while process.status() != psutil.STATUS_STOPPED:
        assert game.exit_code() is None
    family = game.family()
    assert len(family) == 3
    game.kill()
    _, alive = psutil.wait_procs(family, timeout=5)
    assert alive == []


def test_log_tail(spawn):
    game = spawn('for i in $(seq 500); do echo "line $i"; done; echo to stderr >&2; exit 3')
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
    game = spawn("exit 0")
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
    Installation(root, root / "SC2_x64", 1, None, None), PortLease.acquire(root)
)
print(game.pid, flush=True)
sys.stdin.read()
"""
    executable = tmp_path / "SC2_x64"
    executable.write_text("#!/bin/sh\nexec sleep 60\n")
    executable.chmod(0o755)
    worker = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    game = psutil.Process(int(worker.stdout.readline()))
    worker.kill()
    worker.communicate()
    assert psutil.wait_procs([game], timeout=2)[1] == []
