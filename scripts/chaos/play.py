"""Plays one round, and reports its problems."""

from __future__ import annotations

import gc
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from chaos.adapters import ADAPTERS, Kind
from chaos.arena import Arena, UnplayableError
from chaos.attacks import ATTACKS
from chaos.rounds import Round
from sc2pool.pool.machine import sweep
from tests.support.audit.belongings import Belongings
from tests.support.audit.faulty import Faulty

if TYPE_CHECKING:
    from chaos.nodes import Cluster


def possible(kind: Kind, available: set[str]) -> set[str]:
    """The attacks that are possible on an adapter, if the machine meets these requirements."""
    has = set(available)
    has |= {"games"} if kind.games else set()
    has |= {"guests"} if kind.players > 1 else set()
    has |= set() if kind.on_nodes else {"local"}
    has |= set() if kind.one else {"pending"}
    return {name for name, attack in ATTACKS.items() if attack.needs <= has}


def attacks_by_adapter(available: set[str], only: str = "") -> dict[str, set[str]]:
    """The possible attacks on each adapter. With "nodes" in `available`, only Ray's adapters count.

    Args:
        available: the requirements of attacks (`Attack.needs`) that the machine meets.
        only: text that the adapters' names must contain.
    """
    return {
        name: possible(kind, available)
        for name, kind in ADAPTERS.items()
        if kind.on_nodes == ("nodes" in available) and only in name
    }


def play(
    given: Round, games: Faulty, reports: Path, cluster: Cluster | None = None
) -> dict[str, Any]:
    """Play a round, and return its report as plain data."""
    if cluster is not None:
        cluster.bring_back()
    before = cluster or Belongings(Path(tempfile.gettempdir()))
    arena = Arena(given.adapter, given.n, given.spares, games, reports, cluster)
    done: Counter[str] = Counter()
    began_s = time.monotonic()
    with all_exceptions(arena.problems):
        try:
            _play(given, arena, done)
        except UnplayableError:
            pass
        except Exception:
            arena.problems.append(f"the suite itself failed: {traceback.format_exc()}")
        finally:
            arena.close()
            arena.wait_for_attacks()
        games.orders.unlink(missing_ok=True)
        gc.collect()
    sweep(Path(tempfile.gettempdir()))  # deletes the files that killed trainers have left
    left = before.what_stays()
    before.end_new_processes()
    for path in Path(tempfile.gettempdir()).iterdir():
        shutil.rmtree(path, ignore_errors=True)
    return {
        "took_s": round(time.monotonic() - began_s, 1),
        "attacks": dict(done),
        "transitions": arena.transitions,
        "counts": dict(arena.counts),
        "problems": arena.problems,
        "left": left,
    }


def _play(given: Round, arena: Arena, done: Counter[str]) -> None:
    strikes = list(given.strikes)
    arena.open()
    for step in range(given.steps):
        while strikes and strikes[0].step <= step:
            strike = strikes.pop(0)
            attack = ATTACKS[strike.attack]
            arena.may = max(arena.may, attack.may)
            done[strike.attack] += 1
            attack.do(arena, Random(strike.seed))
        arena.step()
    arena.settle()


@contextmanager
def all_exceptions(problems: list[str]) -> Iterator[None]:
    """Collect exceptions that Python would only print: those of threads and finalizers."""

    def unraisable(given: Any) -> None:
        if not isinstance(given.exc_value, KeyboardInterrupt):
            lines = traceback.format_exception(given.exc_value)
            problems.append(f"ignored in {given.object!r}: {''.join(lines)}")

    def in_thread(given: Any) -> None:
        lines = traceback.format_exception(given.exc_value)
        problems.append(f"in the thread {given.thread}: {''.join(lines)}")

    before = sys.unraisablehook, threading.excepthook
    sys.unraisablehook, threading.excepthook = unraisable, in_thread
    try:
        yield
    finally:
        sys.unraisablehook, threading.excepthook = before
