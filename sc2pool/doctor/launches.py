"""Measures launches, ends of processes, closed sockets, and the speed of a process over time.

Rule: core files and logs that a measurement causes are examined, then deleted with their folder.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypedDict

import psutil
from s2clientprotocol import debug_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

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
from sc2pool.doctor.lab import Client, Lab, debug_request, refusal, start_replay
from sc2pool.errors import GameFault
from sc2pool.platform import WINDOWS
from sc2pool.processes.spawn import describe_exit
from sc2pool.processes.tree import usable_cores
from sc2pool.protocol import requests
from sc2pool.protocol.replies import Status

BUSY_SHARE: Final = 0.25
"""A game without a client counts as busy if it uses at least this many CPU seconds per second."""
LOUD_BYTES: Final = 100_000
"""A normal game prints fewer bytes than this before it ends."""
LAUNCH_FACTOR, JOIN_FACTOR, MORE_S = 4.0, 2.0, 0.2
"""Simultaneous launches may take `LAUNCH_FACTOR` times as long as if they only shared the cores.
Simultaneous joins may take `JOIN_FACTOR` times as long as if they only shared the cores, plus
`MORE_S` seconds. Other programs may slow the reading of files."""
AGEING_FACTOR: Final = 1.3
"""Other programs on the machine may increase the CPU time per loop by up to this factor."""

LAUNCHES = Section("launches, ends and speed of processes", needed=False)


class Closed(TypedDict):
    """A game whose socket was closed while a request had no reply yet."""

    pending: str
    killed_first: bool
    ended: str
    """How the process ended; empty if it is still running."""
    after_s: float
    cpu_share: float
    """CPU seconds per second, measured some time after the socket was closed."""
    log_bytes: int
    words: str
    """The first printed line about an error."""
    core_bytes: int


class Ended(TypedDict):
    """A game that was asked or forced to end."""

    way: str
    where: str
    ended: str
    """How the process ended; empty if it is still running."""
    after_s: float
    files: int
    """The number of files left in the game's temporary folder; the game's log is not counted."""


class Launched(TypedDict):
    number: int
    apart_s: float
    took_s: list[float]
    failures: list[str]


class Window(TypedDict):
    """One of several equal parts of the time in which a game's process is stepped."""

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
"""The value of `Ended.way` if a request asked the game to end."""


@LAUNCHES.check("D12 launches at once", "can games be launched and begun at the same time?")
def launches_at_once(
    measured: Sequence[Launched], join_alone_s: float, joins_s: Sequence[float], cores: int
) -> Judgement:
    """Compare simultaneous launches and joins with the launch and join of a single game.

    `measured` begins with the launch of a single game; `joins_s` are times of simultaneous joins.
    """
    told, troubles = [], []
    alone_s = max(measured[0]["took_s"], default=0.0)
    slowest_s: dict[str, tuple[float, int]] = {}
    for one in measured:
        apart = f"{one['apart_s']:g} s apart" if one["apart_s"] else "at once"
        name = f"{one['number']} {apart}"
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
    """The time that each of several games takes if sharing the cores is the only delay."""
    return alone_s * max(1.0, number / cores)


@LAUNCHES.check("D24 speed", "does a game grow slower or larger with its age?")
def speed(windows: Sequence[Window]) -> Judgement:
    costs = [window["cpu_s"] / window["loops"] * 1e6 for window in windows]
    third = len(costs) // 3
    # Other programs may slow a window, so compare the slowest early window to the fastest late one.
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


_WATCH_S: Final = 2.0
"""How long a game is watched after its socket was closed; then its CPU time is measured for 1 s."""
_ENDS_WITHIN_S: Final = 5.0
_CORE_BYTES: Final = 1_000_000
"""Limit of a core file's size: even a truncated file proves that a game writes core files."""
_SOME_LOOPS: Final = 1_000
_CROWD: Final = 8
_GAME_BYTES: Final = 1_200_000_000
"""The memory that a game may need while it loads, in bytes."""
_SPEED_S: Final = 36.0
_WINDOWS_OF_TIME: Final = 9
_LONG_STEP: Final = 240


# ---- closed sockets (D10) -----------------------------------------------------------------------


async def measure_closed_sockets(lab: Lab) -> None:
    """Close sockets while requests are pending; kill the last game before closing its socket."""
    setup, path = lab.mini()
    create = requests.create_game(setup, path, None)

    async def step(client: Client) -> None:
        await client.begin(setup, path)
        client.post(requests.step(_SOME_LOOPS))

    async def observation(client: Client) -> None:
        await client.begin(*lab.mini(realtime=True))
        client.post(requests.observation(await client.loop() + _SOME_LOOPS))

    async def create_game(client: Client) -> None:
        client.post(create)

    async def join_game(client: Client) -> None:
        await client.carry_out(create)
        client.post(requests.join_game(setup))

    measured: list[Closed] = []
    plan = [(pend, False) for pend in (step, observation, create_game, join_game)]
    for pend, kill_first in lab.while_time([*plan, (step, True)], 9.0):
        client = await lab.launch(core_file_bytes=_CORE_BYTES)
        await pend(client)
        measured.append(await _close_socket(lab, client, pend.__name__, kill_first=kill_first))
        client.close()
        lab.findings.note(closed_socket, measured)


async def _close_socket(lab: Lab, client: Client, pending: str, *, kill_first: bool) -> Closed:
    printed = client.process.printed_bytes()
    known = len(client.process.log_tail(lines=1000).splitlines())
    began_s = time.monotonic()
    if kill_first:
        client.process.kill()
    client.api.connection.abort()
    has_ended = await client.ends_within(lab.paced(_WATCH_S))
    cpu_s, cpu_from_s = client.process.cpu_seconds(), time.monotonic()
    if not has_ended:
        has_ended = await client.ends_within(1.0)
    used_s = client.process.cpu_seconds() - cpu_s
    after_s = time.monotonic() - began_s
    code = client.process.exit_code()
    new_lines = client.process.log_tail(lines=1000).splitlines()[known:]
    cores = list(lab.folder.glob("core*"))
    core_bytes = sum(core.stat().st_size for core in cores)
    for core in cores:
        core.unlink()
    return Closed(
        pending=pending,
        killed_first=kill_first,
        ended="" if code is None else describe_exit(code),
        after_s=after_s,
        cpu_share=0.0 if has_ended else used_s / (time.monotonic() - cpu_from_s),
        log_bytes=client.process.printed_bytes() - printed,
        words=next((line for line in new_lines if re.search("error", line, re.I)), ""),
        core_bytes=core_bytes,
    )


# ---- ends (D11) ---------------------------------------------------------------------------------


async def measure_ends(lab: Lab) -> None:
    """End games in several ways, and in several states of the game."""

    async def launched(client: Client) -> None:
        """Do nothing, because the game has just been launched."""

    async def in_game(client: Client) -> None:
        await client.begin(*lab.mini())

    async def loading(client: Client) -> None:
        setup, path = lab.mini()
        client.post(requests.create_game(setup, path, None), requests.join_game(setup))

    async def in_replay(client: Client) -> None:
        await client.begin(*lab.mini())
        await client.step(_SOME_LOOPS)
        saved = await client.carry_out(requests.save_replay())
        await client.leave()
        await client.ask(start_replay(saved.save_replay.data), 60.0)

    def terminate(client: Client) -> None:
        psutil.Process(client.pid).terminate()

    def ask_to_quit(client: Client) -> None:
        client.post(sc_pb.Request(quit=sc_pb.RequestQuit()))

    def kill(client: Client) -> None:
        psutil.Process(client.pid).kill()

    def crash(client: Client) -> None:
        test = debug_pb2.DebugTestProcess(test=debug_pb2.DebugTestProcess.crash)
        client.post(debug_request(debug_pb2.DebugCommand(test_process=test)))

    plan: list[tuple[str, Callable[[Client], None], Callable[[Client], Awaitable[None]]]] = [
        ("crash", crash, in_game),
        (QUIT, ask_to_quit, in_game),
        (QUIT, ask_to_quit, in_replay),
        ("SIGKILL", kill, in_game),
    ]
    if not WINDOWS:
        plan += [("SIGTERM", terminate, where) for where in (launched, in_game, loading)]
    measured: list[Ended] = []
    for way, end, where in lab.while_time(plan, 3 * _ENDS_WITHIN_S):
        client = await lab.launch()
        await where(client)
        began_s = time.monotonic()
        end(client)
        await client.ends_within(_ENDS_WITHIN_S)
        code = client.process.exit_code()
        measured.append(
            Ended(
                way=way,
                where=where.__name__.replace("_", " "),
                ended="" if code is None else describe_exit(code),
                after_s=time.monotonic() - began_s,
                files=sum(f.is_file() and f.suffix != ".log" for f in lab.folder.rglob("*")),
            )
        )
        client.close()
        lab.findings.note(ends, measured)


# ---- launches (D12) -----------------------------------------------------------------------------


async def measure_launches(lab: Lab) -> None:
    """Launch one game, several at once, and two in succession; then let the last games join."""
    measured: list[Launched] = []
    crowd = _crowd() if lab.patient else 3
    plan = ((1, 0.0), (2, 0.0), (2, 0.0), (2, 0.5), (crowd, 0.0))
    for number, apart_s in lab.while_time(plan, 20.0):
        lab.close_games()
        measured.append(await _launch(lab, number, apart_s))
    alone = lab.clients[:1]
    alone_s = min([*await _joins(lab, alone), *await _joins(lab, alone)], default=0.0)
    joins_s = await _joins(lab, lab.clients)
    lab.findings.note(launches_at_once, measured, alone_s, joins_s, usable_cores())


async def _joins(lab: Lab, clients: Sequence[Client]) -> list[float]:
    """Let each client join its own game, all at the same time; return the duration of each join."""
    setup, path = lab.mini()
    for client in clients:
        await client.leave()
        await client.create(setup, path)

    async def join(client: Client) -> float:
        began_s = time.monotonic()
        await client.join(setup)
        return time.monotonic() - began_s

    return await asyncio.gather(*map(join, clients))


def _crowd() -> int:
    """How many games to launch at once: 3 to `_CROWD`, at most half of what fits into memory."""
    room = psutil.virtual_memory().available // (2 * _GAME_BYTES)
    return max(3, min(_CROWD, room))


async def _launch(lab: Lab, number: int, apart_s: float) -> Launched:
    async def one(place: int) -> Client:
        await asyncio.sleep(place * apart_s)
        return await lab.launch(in_turn=False)

    outcomes = await asyncio.gather(*map(one, range(number)), return_exceptions=True)
    failures = []
    for outcome in outcomes:
        if isinstance(outcome, GameFault):
            failures.append("; ".join(outcome.detail.splitlines()))
        elif isinstance(outcome, BaseException):
            raise outcome
    took_s = [outcome.launched_s for outcome in outcomes if isinstance(outcome, Client)]
    return Launched(number=number, apart_s=apart_s, took_s=took_s, failures=failures)


# ---- speed (D24) --------------------------------------------------------------------------------


async def measure_speed(lab: Lab) -> None:
    """Step one game, and measure CPU time and loops in each of several windows of time."""
    client = await lab.launch()
    await client.begin(*lab.mining())
    window_s = lab.paced(_SPEED_S) / _WINDOWS_OF_TIME
    windows: list[Window] = []
    while len(windows) < _WINDOWS_OF_TIME:
        began_s, cpu_s, loops = time.monotonic(), client.process.cpu_seconds(), 0
        while time.monotonic() < began_s + window_s:
            if client.status is not Status.IN_GAME:
                reply = await client.ask(requests.restart_game(), 60.0)
                if refusal(reply) or reply.restart_game.need_hard_reset:
                    await client.begin(*lab.mining())
            await client.step(_LONG_STEP)
            loops += _LONG_STEP
        windows.append(
            Window(
                loops=loops,
                cpu_s=client.process.cpu_seconds() - cpu_s,
                wall_s=time.monotonic() - began_s,
                rss_bytes=client.process.rss_bytes(),
            )
        )
    lab.findings.note(speed, windows)
