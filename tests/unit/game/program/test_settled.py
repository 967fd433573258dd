"""Facts that the doctor settled: kept for the same executable, and trusted only if private."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sc2pool.game.program.installation import Installation
from sc2pool.game.program.settled import SMALL_BYTES, Settled, settle, settled_on
from sc2pool.platform import WINDOWS

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


@pytest.mark.skipif(WINDOWS, reason="its folders for programs' data are each user's own")
@pytest.mark.parametrize("mode", [0o620, 0o602], ids=oct)
def test_a_file_that_others_may_write_is_no_fact(mode: int, game: Installation) -> None:
    settle(game, FACTS).chmod(mode)
    assert settled_on(game) == Settled()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("{}")
    path.symlink_to(other)


@pytest.mark.skipif(WINDOWS, reason="it has no such files")
@pytest.mark.parametrize("make", [pipe, link, Path.mkdir], ids=["pipe", "link", "folder"])
def test_only_a_regular_file_is_read(make: Callable[[Path], None], game: Installation) -> None:
    path = settle(game, FACTS)
    path.unlink()
    make(path)
    assert settled_on(game) == Settled()


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
