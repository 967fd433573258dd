"""Measures launches, ends of processes, closed sockets, and the speed of an ageing process.

Rule: core files and logs that a measurement causes are examined, and deleted with their folder.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import psutil
from s2clientprotocol import debug_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.doctor.checks import launches as checks
from sc2pool.doctor.checks.launches import QUIT, Closed, Ended, Launched, Window
from sc2pool.doctor.lab import Client, Lab, carried_out, debug_request, refusal
from sc2pool.errors import GameFault
from sc2pool.platform import WINDOWS
from sc2pool.processes.spawn import describe_exit
from sc2pool.processes.tree import usable_cores
from sc2pool.protocol import requests
from sc2pool.protocol.replies import Status

_WATCH_S, _SHORT_WATCH_S = 3.0, 2.0
"""How long a game is watched after its socket was closed."""
_ENDS_WITHIN_S: Final = 5.0
_CORE_BYTES: Final = 1_000_000
"""Limit of a core file; its first part is enough to prove that a core file is written."""
_SOME_LOOPS: Final = 1_000
_CROWD: Final = 8
_GAME_BYTES: Final = 1_200_000_000
"""Memory that a game may take while it loads."""
_SPEED_S, _SHORT_SPEED_S = 36.0, 9.0
_WINDOWS_OF_TIME: Final = 9
_LONG_STEP: Final = 240


# ---- closed sockets (D10) -----------------------------------------------------------------------


async def measure_closed_sockets(lab: Lab) -> None:
    """Close the socket while each kind of request is pending; in the last case kill first."""
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
        carried_out(await client.ask(create), "create_game")
        client.post(requests.join_game(setup))

    measured: list[Closed] = []
    for pend, kill_first in (
        (step, False),
        (observation, False),
        (create_game, False),
        (join_game, False),
        (step, True),
    ):
        if measured and lab.deadline.remaining_s() < 3 * _WATCH_S:
            break
        client = await lab.launch(core_file_bytes=_CORE_BYTES)
        await pend(client)
        measured.append(await _close_socket(lab, client, pend.__name__, kill_first=kill_first))
        client.close()
        lab.findings.note(checks.closed_socket, measured)


async def _close_socket(lab: Lab, client: Client, pending: str, *, kill_first: bool) -> Closed:
    printed = client.process.printed_bytes()
    known = len(client.process.log_tail(lines=1000).splitlines())
    began_s = time.monotonic()
    if kill_first:
        client.process.kill()
    client.hang_up()
    watch_s = _WATCH_S if lab.patient else _SHORT_WATCH_S
    has_ended = await client.ends_within(watch_s - 1.0)
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
    """End games in several ways, in several states."""

    async def launched(client: Client) -> None:
        """The state after the launch: nothing is done."""

    async def in_game(client: Client) -> None:
        await client.begin(*lab.mini())

    async def loading(client: Client) -> None:
        setup, path = lab.mini()
        client.post(requests.create_game(setup, path, None), requests.join_game(setup))

    async def in_replay(client: Client) -> None:
        await client.begin(*lab.mini())
        await client.step(_SOME_LOOPS)
        saved = carried_out(await client.ask(requests.save_replay()), "save_replay")
        await client.leave()
        start = sc_pb.RequestStartReplay(
            replay_data=saved.save_replay.data,
            observed_player_id=1,
            options=sc_pb.InterfaceOptions(raw=True),
        )
        await client.ask(sc_pb.Request(start_replay=start), 60.0)

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
    for way, end, where in plan:
        if measured and lab.deadline.remaining_s() < 3 * _ENDS_WITHIN_S:
            break
        client = await lab.launch()
        await where(client)
        began_s = time.monotonic()
        end(client)
        await client.ends_within(_ENDS_WITHIN_S)
        code = client.process.exit_code()
        left = [file for file in lab.folder.rglob("*") if file.is_file()]
        measured.append(
            Ended(
                way=way,
                where=where.__name__.replace("_", " "),
                ended="" if code is None else describe_exit(code),
                after_s=time.monotonic() - began_s,
                files=sum(1 for file in left if file.suffix != ".log"),
            )
        )
        client.close()
        lab.findings.note(checks.ends, measured)


# ---- launches (D12) -----------------------------------------------------------------------------


async def measure_launches(lab: Lab) -> None:
    """Launch games alone, together and a little apart; then let all of them join together."""
    measured = [await _launch(lab, 1, 0.0)]
    for number, apart_s in ((2, 0.0), (2, 0.0), (2, 0.5), (_crowd(), 0.0)):
        if lab.deadline.remaining_s() < 20.0:
            break
        lab.close_games()
        measured.append(await _launch(lab, number, apart_s))
    clients = lab.running()
    alone_s = min([*await _joins(lab, clients[:1]), *await _joins(lab, clients[:1])], default=0.0)
    joins_s = await _joins(lab, clients)
    lab.findings.note(checks.launches_at_once, measured, alone_s, joins_s, usable_cores())


async def _joins(lab: Lab, clients: Sequence[Client]) -> list[float]:
    """The duration of each join if all games join at the same time, each in its own game."""
    setup, path = lab.mini()
    for client in clients:
        await client.leave()
        create = requests.create_game(setup, path, None)
        carried_out(await client.ask(create, 60.0), "create_game")

    async def join(client: Client) -> float:
        began_s = time.monotonic()
        await client.join(setup)
        return time.monotonic() - began_s

    return await asyncio.gather(*map(join, clients))


def _crowd() -> int:
    """How many games to launch at the same time: half of those that fit into the memory."""
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
    """Step one process for a while, and measure the CPU time of a loop in several windows."""
    client = await lab.launch()
    await client.begin(*lab.mining())
    window_s = (_SPEED_S if lab.patient else _SHORT_SPEED_S) / _WINDOWS_OF_TIME
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
    lab.findings.note(checks.speed, windows)
