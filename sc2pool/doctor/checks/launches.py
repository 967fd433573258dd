"""The checks of `--full` about launches, ends of processes and speed; `launches` measures them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, TypedDict

from sc2pool.doctor.findings import (
    MB,
    Judgement,
    Section,
    differs,
    expect,
    megabytes,
    ok,
    seconds,
    shortened,
)

BUSY_SHARE: Final = 0.25
"""A game without a client is busy if it uses at least this many CPU seconds per second."""
LOUD_BYTES: Final = 100_000
"""A normal game prints less than this in its whole life."""
LAUNCH_FACTOR, JOIN_FACTOR, MORE_S = 4.0, 2.0, 0.2
"""Several games at one time may take this multiple of the time that the cores explain, and this
much longer. The factor of launches is larger, because other programs disturb the reading of files.
"""
AGEING_FACTOR: Final = 1.3
"""The CPU time per loop may grow by this factor in the measurement, because the machine is shared.
"""

LAUNCHES = Section("launches, ends and speed of processes", needed=False)


class Closed(TypedDict):
    """A game whose socket was closed with a request pending."""

    pending: str
    killed_first: bool
    ended: str
    """How the process ended; empty if it still lives."""
    after_s: float
    cpu_share: float
    """CPU seconds per second at the end of the watch."""
    log_bytes: int
    words: str
    """The first line about an error that the game printed."""
    core_bytes: int


class Ended(TypedDict):
    """A game that was asked or forced to end."""

    way: str
    where: str
    ended: str
    """How the process ended; empty if it still lives."""
    after_s: float
    files: int
    """The number of files in its temporary folder, except its log."""


class Launched(TypedDict):
    """Several launches."""

    number: int
    apart_s: float
    took_s: list[float]
    failures: list[str]


class Window(TypedDict):
    """A part of the time for which one process was stepped."""

    loops: int
    cpu_s: float
    wall_s: float
    rss_bytes: int


@LAUNCHES.check(
    "D10 closed socket", "what does a game do whose socket closes while a reply is due?"
)
def closed_socket(measured: Sequence[Closed]) -> Judgement:
    told, bad = [], False
    for one in measured:
        words = [f"ends ({one['ended']})" if one["ended"] else "lives on"]
        if one["cpu_share"] >= BUSY_SHARE:
            words.append(f"uses {one['cpu_share']:.0%} of a core")
        if one["log_bytes"] >= LOUD_BYTES:
            words.append(f"prints {megabytes(one['log_bytes'])} in {seconds(one['after_s'])}")
        if one["core_bytes"]:
            words.append("leaves a core file")
        if one["words"]:
            words.append(f"says {one['words']!r}")
        odd = len(words) > 1 or one["ended"].startswith("signal")
        first = "SIGKILL first, then " * one["killed_first"]
        told.append(f"{first}{one['pending']} pending: {', '.join(words)}")
        bad = bad or (odd and not one["killed_first"])
    return expect(
        not bad,
        "; ".join(told),
        "a game must be killed before its socket is closed; otherwise the client itself causes "
        "its log lines and its core file",
    )


@LAUNCHES.check("D11 ends", "how fast does a game end, and what is left?")
def ends(measured: Sequence[Ended]) -> Judgement:
    told = [
        f"{one['way']} {one['where']}: "
        + (f"{one['ended']} after {seconds(one['after_s'])}" if one["ended"] else "lives on")
        + (f", {one['files']} file(s) left" if one["files"] else "")
        for one in measured
    ]
    live_on = [f"{one['way']} {one['where']}" for one in measured if not one["ended"]]
    crashes = [one for one in measured if one["way"] == QUIT and one["ended"].startswith("signal")]
    figure = "; ".join(told)
    if live_on:
        waited = max(one["after_s"] for one in measured)
        advice = f"it lives for {waited:.0f} s and more, without a reply: only a kill ends it"
        return differs(f"{', '.join(live_on)}: the process stays; {figure}", advice)
    return expect(not crashes, figure, "it crashes when it quits; a pool kills games instead")


QUIT: Final = "quit"
"""The `way` of a game that was asked to end by a request."""


@LAUNCHES.check("D12 launches at once", "can games be launched and begun at the same time?")
def launches_at_once(
    measured: Sequence[Launched], join_alone_s: float, joins_s: Sequence[float], cores: int
) -> Judgement:
    """Judge launches and joins at the same time, by those of a single game.

    Args:
        measured: the launches; the first is of a single game.
        join_alone_s: the time of a single join.
        joins_s: the time of each of several joins at the same time.
        cores: the number of usable cores.
    """
    told, troubles = [], []
    alone_s = max(measured[0]["took_s"], default=0.0)
    slowest_s: dict[str, tuple[float, int]] = {}
    for one in measured:
        name = (
            f"{one['number']} {one['apart_s']:g} s apart"
            if one["apart_s"]
            else f"{one['number']} at once"
        )
        if one["failures"]:
            failed = f"{len(one['failures'])} of {name} failed"
            troubles.append(f"{failed} ({shortened(one['failures'][0], 120)})")
        known = slowest_s.get(name, (math.inf, 0))[0]
        slowest_s[name] = min(known, max(one["took_s"], default=0.0)), one["number"]
    for name, (took_s, number) in slowest_s.items():
        told.append(f"{name} {seconds(took_s)}")
        if took_s > LAUNCH_FACTOR * _fair_s(alone_s, number, cores):
            troubles.append(
                f"{name} take up to {seconds(took_s)} each, one alone {seconds(alone_s)}"
            )
    figure = f"launches: {', '.join(told)}; joins: 1 alone {seconds(join_alone_s)}"
    if joins_s:
        figure += f", {len(joins_s)} at once {seconds(max(joins_s))}"
        if max(joins_s) > JOIN_FACTOR * _fair_s(join_alone_s, len(joins_s), cores) + MORE_S:
            troubles.append(
                f"{len(joins_s)} joins at once take up to {seconds(max(joins_s))} each, one alone "
                f"{seconds(join_alone_s)}"
            )
    return expect(
        not troubles,
        "; ".join([*troubles, figure]),
        "several games at the same time are slower than the cores explain, or fail: set "
        "PoolConfig(limits=Limits(concurrent_launches=1)), and a longer create_join_s",
    )


def _fair_s(alone_s: float, number: int, cores: int) -> float:
    """The time that each of several games takes if sharing the cores is the only reason."""
    return alone_s * max(1.0, number / cores)


@LAUNCHES.check("D24 speed", "does a game grow slower or larger with its age?")
def speed(windows: Sequence[Window]) -> Judgement:
    costs = [window["cpu_s"] / window["loops"] * 1e6 for window in windows]
    third = len(costs) // 3
    # The best late window against the worst early one, because other programs disturb some.
    first, last = max(costs[:third]), min(costs[-third:])
    wall_s = sum(window["wall_s"] for window in windows)
    loops = sum(window["loops"] for window in windows)
    grown = windows[-1]["rss_bytes"] - windows[0]["rss_bytes"]
    figure = (
        f"{loops / wall_s:,.0f} loops/s over {wall_s:.0f} s; a loop costs {first:.1f} µs of CPU "
        f"time at first and {last:.1f} µs at last; memory {grown / MB:+.1f} MB"
    )
    advice = "it slows down with its age: replace games from time to time, RecyclePolicy(age_s=…)"
    if last > AGEING_FACTOR * first:
        return differs(f"{figure}: {last / first:.1f} times as much", advice)
    return ok(f"{figure} (hours are not tried)")
