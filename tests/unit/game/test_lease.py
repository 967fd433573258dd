"""Tests the files that a user's programs share: leases of ports, and facts found by the doctor."""

from __future__ import annotations

import logging
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sc2pool.errors import ConfigError, GameFault
from sc2pool.game.program import lease as lease_module
from sc2pool.game.program.builds import SMALL_BYTES, Settled, settle, settled_on
from sc2pool.game.program.installation import Installation
from sc2pool.game.program.lease import (
    HOST,
    PortLease,
    candidate_ports,
    ephemeral_range,
    lease_directory,
)
from sc2pool.platform import WINDOWS
from tests.support.programs import talking
from tests.support.systems import SLEEPS, is_private

# ---- leases of ports -----------------------------------------------------------------------------


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
    """Simulates a machine that has only two ports for games, both of them free."""
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
    """Yields the ports that another process leases; the process is killed at the block's end."""
    with talking(sys.executable, "-c", HOLDER, directory, count) as holder:
        yield holder.stdout.readline().split()


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
    """Make an unsafe directory, a file or a link at this path, as another user can do."""
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
    """If the directory is unsafe, all trainers go to the same other directory for their ports."""
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


# ---- settled facts -------------------------------------------------------------------------------


FACTS = Settled(
    restart_faithful=False,
    restart_with_computer=None,
    bursts_in_matches=True,
    silent_end=True,
    after_stop="in part",
    measured="2026-11-28",
)


@pytest.fixture
def game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """An installation with a start script, and an empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("WIN_PD_OVERRIDE_LOCAL_APPDATA", str(tmp_path / "cache"))
    executable = tmp_path / "SC2_x64"
    executable.write_text("#!/bin/sh\nexec game\n")
    return Installation(tmp_path, executable, 75689, None, None)


def test_facts_are_kept(game: Installation) -> None:
    assert settled_on(game) == Settled()
    path = settle(game, Settled(silent_end=False))
    assert settle(game, FACTS) == path
    assert settled_on(game) == FACTS
    assert list(path.parent.iterdir()) == [path]
    if not WINDOWS:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_another_start_script_is_another_game(game: Installation) -> None:
    settle(game, FACTS)
    before = game.executable.stat()
    game.executable.write_text("#!/bin/sh\nexec gamf\n")
    os.utime(game.executable, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert settled_on(game) == Settled()


def test_the_same_start_script_is_the_same_game_at_any_time(game: Installation) -> None:
    settle(game, FACTS)
    os.utime(game.executable, (1, 1))
    assert settled_on(game) == FACTS


def test_an_updated_program_is_another_game(game: Installation) -> None:
    game.executable.write_bytes(bytes(SMALL_BYTES))
    settle(game, FACTS)
    assert settled_on(game) == FACTS
    os.utime(game.executable, (1, 1))
    assert settled_on(game) == Settled()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 60_000,
        b'{"silent_end": 1}',
        b'{"silent_end": "yes"}',
        b'{"after_stop": "runs"}',
        b'{"after_stop": []}',
        b'{"measured": null}',
        b'{"of_a_later_version": true}',
        b" " * 70_000 + b"{}",
    ],
    ids=lambda content: repr(content[:30]),
)
def test_broken_content_is_no_fact_and_is_said_once(
    content: bytes, game: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    settle(game, FACTS).write_bytes(content)
    with caplog.at_level(logging.WARNING, "sc2pool"):
        assert [settled_on(game), settled_on(game)] == [Settled(), Settled()]
    assert len([r for r in caplog.records if "is broken" in r.getMessage()]) == 1


def link(path: Path) -> None:
    path.rename(path.with_name("other")).chmod(0o600)
    path.symlink_to("other")


@pytest.mark.skipif(WINDOWS, reason="it has no such files")
@pytest.mark.parametrize(
    "change",
    [
        *(lambda path, mode=mode: path.chmod(mode) for mode in (0o620, 0o602)),
        lambda path: (path.unlink(), os.mkfifo(path)),
        lambda path: (path.unlink(), path.mkdir()),
        link,
    ],
    ids=["its group may write", "others may write", "pipe", "folder", "link"],
)
def test_only_a_regular_file_of_ones_own_is_read(
    change: Callable[[Path], None], game: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    change(settle(game, FACTS))
    assert settled_on(game) == Settled()
    assert "is broken" not in caplog.text, "its content was not read"


def test_nothing_is_raised_without_executable_or_cache_folder(
    game: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(game, FACTS)
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    monkeypatch.setenv("WIN_PD_OVERRIDE_LOCAL_APPDATA", os.devnull)
    assert settled_on(game) == Settled()
    monkeypatch.undo()
    game.executable.unlink()
    assert settled_on(game) == Settled()
