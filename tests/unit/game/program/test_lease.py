"""Leases of ports: between processes, across deaths, and against processes that take none."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sc2pool.errors import ConfigError, GameFault
from sc2pool.game.program import lease as lease_module
from sc2pool.game.program.lease import (
    HOST,
    PortLease,
    candidate_ports,
    ephemeral_range,
    lease_directory,
)
from sc2pool.platform import WINDOWS
from tests.support.systems import SLEEPS, is_private

HOLDER = """
import sys
from pathlib import Path
from sc2pool.game.program.lease import PortLease
leases = [PortLease.acquire(Path(sys.argv[1])) for _ in range(int(sys.argv[2]))]
print(*(lease.port for lease in leases), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("ephemeral", "ports"),
    [
        ((32768, 60999), range(10000, 32768)),
        ((1024, 60999), range(61000, 65536)),
        ((10000, 20000), range(20001, 65536)),
        ((49152, 65535), range(10000, 49152)),
    ],
)
def test_candidates_lie_outside_the_ephemeral_range(ephemeral, ports):
    assert candidate_ports(ephemeral) == ports


def test_no_candidates():
    with pytest.raises(ConfigError, match="1024-65535"):
        candidate_ports((1024, 65535))


def test_ephemeral_range_is_read():
    first, last = ephemeral_range()
    assert 1024 <= first < last <= 65535


def test_directory_is_private():
    directory = lease_directory()
    assert is_private(directory)
    if WINDOWS:
        assert directory.is_relative_to(os.environ["LOCALAPPDATA"])
    else:
        assert directory.stat().st_uid == os.getuid()


@pytest.fixture
def two_ports(monkeypatch) -> range:
    """A machine with two ports for games, free now."""
    pairs = (range(first, first + 2) for first in range(20_000, 30_000))
    free = next(pair for pair in pairs if all(lease_module._is_free(port) for port in pair))
    monkeypatch.setattr(lease_module, "candidate_ports", lambda _: free)
    return free


def test_leases_differ_and_come_back(tmp_path, two_ports):
    first, second = PortLease.acquire(tmp_path), PortLease.acquire(tmp_path)
    assert {first.port, second.port} == set(two_ports)
    with pytest.raises(GameFault, match="no free port"):
        PortLease.acquire(tmp_path)
    first.release()
    first.release()
    again = PortLease.acquire(tmp_path)
    assert again.port == first.port
    again.release()
    second.release()
    assert list(tmp_path.iterdir()) == []


def test_port_in_use_is_not_leased(tmp_path, two_ports):
    with socket.socket() as stranger:
        stranger.bind((HOST, two_ports[0]))
        stranger.listen()
        lease = PortLease.acquire(tmp_path)
        assert lease.port == two_ports[1]
        lease.release()


@contextmanager
def held(directory: Path, count: int) -> Iterator[list[str]]:
    """The ports of a process that leases so many, and is killed at the end of the block."""
    command = [sys.executable, "-c", HOLDER, str(directory), str(count)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        try:
            yield holder.stdout.readline().split()
        finally:
            holder.kill()


def test_processes_never_share_a_port(tmp_path):
    with held(tmp_path, 20) as some, held(tmp_path, 20) as others:
        assert len({*some, *others}) == 40


def test_the_files_of_killed_processes_do_not_stay(tmp_path):
    with held(tmp_path, 20):
        assert len(list(tmp_path.iterdir())) == 20
    with held(tmp_path, 3) as ports:
        lease = PortLease.acquire(tmp_path)
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {f"{port}.lock" for port in [*ports, lease.port]}
        lease.release()


@pytest.mark.skipif(WINDOWS, reason="its locks end with the process that takes them")
def test_lease_lasts_as_long_as_worker_or_game_lives(tmp_path, two_ports):
    lease = PortLease.acquire(tmp_path)
    path = tmp_path / f"{lease.port}.lock"
    game = subprocess.Popen(SLEEPS, pass_fds=(lease.fd,))
    os.close(lease.fd)  # as if the worker had died
    try:
        assert lease_module.try_lock(path) is None
    finally:
        game.kill()
        game.wait()
    fd = lease_module.try_lock(path)
    assert fd is not None
    os.close(fd)


def make_unsafe(directory: Path, kind: str) -> None:
    """What another user can have put there, as far as this user can make it."""
    if kind == "open to all":
        directory.mkdir()
        directory.chmod(0o777)
    elif kind == "a file":
        directory.touch(0o600)
    elif kind == "a dangling link":
        directory.symlink_to("nowhere")
    else:
        directory.mkdir(0o700)
        os.chown(directory, 4_000_000, -1)


@pytest.mark.skipif(WINDOWS, reason="its folders for applications are each user's own")
@pytest.mark.parametrize("kind", ["open to all", "a file", "a dangling link", "another user's"])
def test_unsafe_directory(tmp_path, monkeypatch, kind):
    """It keeps no pool from its ports: there is another place, the same one for all trainers."""
    if kind == "another user's" and os.getuid() != 0:
        pytest.skip("only root gives a folder to another user")
    places = [tmp_path / "first", tmp_path / "missing" / "second", tmp_path / "third"]
    make_unsafe(places[0], kind)
    monkeypatch.setattr(lease_module, "_places", lambda _: places)
    for _ in range(2):
        assert lease_directory() == places[2]
    assert is_private(places[2])
    monkeypatch.setattr(lease_module, "_places", lambda _: places[:2])
    with pytest.raises(ConfigError, match=r"first must be .* 0700, .*; .*second cannot be made"):
        lease_directory()


@pytest.mark.skipif(WINDOWS, reason="its folders for applications are each user's own")
def test_the_places_of_the_directory_are_this_users():
    pwd = pytest.importorskip("pwd")
    uid = os.getuid()
    usual, *others = lease_module._places(uid)
    assert usual == Path(f"/tmp/sc2pool-ports-{uid}")
    assert Path(pwd.getpwuid(uid).pw_dir, ".cache", "sc2pool-ports") in others
