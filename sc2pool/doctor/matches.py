"""Measures matches: bursts, several matches in the same processes, lost sides, pauses, ports.

Rule: a side that was killed, or does not reply, is closed and replaced by a new game.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Sequence
from typing import Final

from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import commands
from sc2pool.commands import as_actions
from sc2pool.deadline import Deadline
from sc2pool.doctor.checks import matches as checks
from sc2pool.doctor.checks.ends import result_name
from sc2pool.doctor.checks.matches import STOPPED, Loss, Pause, Taken
from sc2pool.doctor.lab import Client, Lab, Pair, both, carried_out, refusal
from sc2pool.doctor.stepping import first_difference
from sc2pool.errors import GameFault
from sc2pool.game.program.lease import HOST
from sc2pool.processes.tree import STOPS_WITHIN_S, ProcessTree
from sc2pool.protocol import requests

_SEED: Final = 20_240_601
_STEP_MUL: Final = 8
_STEPS: Final = 60
_REALTIME_S: Final = 3.0
_MATCHES: Final = 20
_WAIT_S: Final = 8.0
"""How long to wait for a reply that depends on the other side."""
_STOPPED_S: Final = 2.0
_IDLE_S: Final = 5.0


# ---- bursts (D09) -------------------------------------------------------------------------------

_Played = tuple[list[sc_pb.Observation], list[sc_pb.Observation]]
"""The host's observations and the guest's."""


async def measure_match_bursts(lab: Lab) -> None:
    """Play one seed four times, in bursts and by single requests; then bursts in real time."""
    setup, path = lab.melee(participants=2)
    pair = await lab.pair()
    played: dict[bool, list[_Played]] = {True: [], False: []}
    for burst in (True, False, True, False):
        await pair.begin(setup, path, _SEED)
        played[burst].append(await _play(pair, burst=burst))
    undetermined = _difference(*played[True]) or _difference(*played[False])
    difference = "" if undetermined else _difference(played[True][0], played[False][0])
    compared = sum(map(len, played[True][0]))
    setup, path = lab.melee(participants=2, realtime=True)
    await pair.begin(setup, path)
    bursts = 0
    until_s = time.monotonic() + _REALTIME_S
    while time.monotonic() < until_s:
        deeds = [side.ask_all([requests.action([]), requests.observation()]) for side in pair.sides]
        for replies in await both(*deeds):
            carried_out(replies[-1], "observation")
        bursts += 2
    lab.findings.note(checks.match_bursts, compared, undetermined, difference, bursts)


async def _play(pair: Pair, *, burst: bool) -> _Played:
    ask = _burst if burst else _one_by_one
    first = await both(*(side.observe() for side in pair.sides))
    played: _Played = [first[0].observation], [first[1].observation]
    for number in range(_STEPS):
        deeds = [
            ask(side, _walk(seen[-1], number))
            for side, seen in zip(pair.sides, played, strict=True)
        ]
        for seen, observation in zip(played, await both(*deeds), strict=True):
            seen.append(observation)
    return played


def _walk(seen: sc_pb.Observation, number: int) -> list[sc_pb.Request]:
    """In every tenth step, an action that sends the own units to and fro; else no request."""
    own = [unit for unit in seen.raw_data.units if unit.alliance == raw_pb2.Self]
    if number % 10 or not own:
        return []
    away = 6.0 if number % 20 else -6.0
    target = own[0].pos.x + away, own[0].pos.y + away
    return [requests.action(as_actions([commands.move([unit.tag for unit in own], target)]))]


async def _burst(side: Client, action: list[sc_pb.Request]) -> sc_pb.Observation:
    asked = [*action, requests.step(_STEP_MUL), requests.observation()]
    return _last(await side.ask_all(asked))


async def _one_by_one(side: Client, action: list[sc_pb.Request]) -> sc_pb.Observation:
    asked = [*action, requests.step(_STEP_MUL), requests.observation()]
    return _last([await side.ask(one) for one in asked])


def _last(replies: Sequence[sc_pb.Response]) -> sc_pb.Observation:
    return carried_out(replies[-1], "observation").observation.observation


def _difference(ours: _Played, theirs: _Played) -> str:
    for side, one, other in zip(("host", "guest"), ours, theirs, strict=True):
        difference = first_difference(one, other)
        if difference:
            return f"{side}: {difference}"
    return ""


# ---- processes that are used again (D13) --------------------------------------------------------


async def measure_matches_in_a_row(lab: Lab) -> None:
    """Play up to `_MATCHES` short matches in the same two processes, as time permits."""
    setup, path = lab.melee(participants=2)
    pair = await lab.pair()
    starts_s: list[float] = []
    first_bytes, failure = 0, ""
    while len(starts_s) < _MATCHES and lab.deadline.remaining_s() > 2 * max([5.0, *starts_s]):
        began_s = time.monotonic()
        try:
            await pair.begin(setup, path)
            starts_s.append(time.monotonic() - began_s)
            for _ in range(10):
                await pair.step(_STEP_MUL)
        except GameFault as fault:
            failure = fault.detail
            break
        first_bytes = first_bytes or _rss_bytes(pair)
    lab.findings.note(
        checks.matches_in_a_row, len(starts_s), starts_s, first_bytes, _rss_bytes(pair), failure
    )


def _rss_bytes(pair: Pair) -> int:
    return sum(side.process.rss_bytes() for side in pair.sides)


# ---- lost sides (D14) ---------------------------------------------------------------------------


async def measure_lost_sides(lab: Lab) -> None:
    """Lose the guest of a match in several ways, while the host steps."""
    losses: list[Loss] = []
    pair = await lab.pair()
    for way in (LEAVES, STOPPED, QUITS, KILLED):
        if losses and lab.deadline.remaining_s() < 3 * _WAIT_S:
            break
        losses.append(await _lose(lab, pair, way))
        if losses[-1]["reply"] == "nothing":
            pair.host.close()
            pair.host = await lab.launch()
        if way in {QUITS, KILLED}:
            pair.guest.close()
            pair.guest = await lab.launch()
    lab.findings.note(checks.lost_side, losses)


LEAVES, QUITS, KILLED = "it leaves", "it quits", "it is killed"


async def _lose(lab: Lab, pair: Pair, way: str) -> Loss:
    setup, path = lab.melee(participants=2)
    await pair.begin(setup, path)
    await pair.step(_STEP_MUL)
    began_s = time.monotonic()
    if way == STOPPED:
        tree = ProcessTree(pair.guest.pid)
        tree.stop(Deadline.after(STOPS_WITHIN_S))
        try:
            pair.guest.post(requests.step(_STEP_MUL))
            pair.host.post(requests.step(_STEP_MUL))
            reply = await pair.host.reply(_STOPPED_S)
        finally:
            tree.resume()
    else:
        if way == LEAVES:
            await pair.guest.leave()
        elif way == QUITS:
            pair.guest.post(sc_pb.Request(quit=sc_pb.RequestQuit()))
        else:
            pair.guest.close()
        pair.host.post(requests.step(_STEP_MUL))
        reply = None
    reply = reply or await pair.host.reply(_WAIT_S)
    after_s = time.monotonic() - began_s
    if way == STOPPED:
        await pair.guest.reply(_WAIT_S)
    result = ""
    if reply is not None:
        for _ in range(3):
            seen = await pair.host.ask(requests.observation())
            for one in seen.observation.player_result:
                if one.player_id == pair.host.player_id:
                    result = result_name(one.result)
    return Loss(
        way=way,
        reply="nothing" if reply is None else refusal(reply) or "answered",
        after_s=after_s,
        status=pair.host.status.name.lower(),
        result=result,
    )


# ---- pauses (D15) -------------------------------------------------------------------------------


async def measure_idle(lab: Lab) -> None:
    """Send no requests for a while, after the launch and in a match."""
    pair = await lab.pair()
    pauses: list[Pause] = []

    async def wait(where: str) -> None:
        began_s, failure = time.monotonic(), ""
        await asyncio.sleep(_IDLE_S)
        waited_s = time.monotonic() - began_s
        try:
            if where == "in a match":
                await pair.step(_STEP_MUL)
            else:
                await both(*(side.ask(requests.ping()) for side in pair.sides))
        except GameFault as fault:
            failure = fault.detail
        pauses.append(Pause(where=where, waited_s=waited_s, failure=failure))
        lab.findings.note(checks.idle, pauses)

    await wait("after the launch")
    setup, path = lab.melee(participants=2)
    await pair.begin(setup, path)
    await wait("in a match")


# ---- ports and other clients (D23) --------------------------------------------------------------


async def measure_ports(lab: Lab) -> None:
    """Take a port of a match before the match begins."""
    setup, path = lab.melee(participants=2)
    measured: list[Taken] = []
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        pair = await lab.pair()
        began_s = time.monotonic()
        with socket.socket(socket.AF_INET, kind) as stranger:
            stranger.bind((HOST, pair.ports.server_game))
            if kind == socket.SOCK_STREAM:
                stranger.listen()
            try:
                async with asyncio.timeout(_WAIT_S):
                    await pair.begin(setup, path)
                outcome = "it begins as usual"
            except TimeoutError:
                outcome = f"join_game is not answered within {_WAIT_S:g} s"
            except GameFault as fault:
                outcome = fault.detail.partition("\n")[0]
        measured.append(
            Taken(
                port="the host's game port",
                kind="TCP" if kind == socket.SOCK_STREAM else "UDP",
                outcome=outcome,
                took_s=time.monotonic() - began_s,
            )
        )
        lab.close_games()
    lab.findings.note(checks.taken_ports, measured)


async def measure_second_client(lab: Lab) -> None:
    """Connect a second client to a game while it is idle, and while a request is pending."""
    client = await lab.launch()
    await client.begin(*lab.mini(realtime=True))
    idle_outcome = await _connect(client.api.port)
    client.post(requests.observation(await client.loop() + 40))
    waiting_outcome = await _connect(client.api.port)
    answers = await client.reply(_WAIT_S) is not None
    lab.findings.note(checks.second_client, idle_outcome, waiting_outcome, answers)


async def _connect(port: int) -> str:
    """Try a websocket handshake with a game that has a client; the outcome in words."""
    try:
        async with asyncio.timeout(2.0):
            reader, writer = await asyncio.open_connection(HOST, port)
            try:
                writer.write(_HANDSHAKE % port)
                line = await reader.readline()
            finally:
                writer.transport.abort()
    except TimeoutError:
        return "it is not answered within 2 s"
    except OSError as error:
        return f"the connection fails ({error.strerror})"
    code = line.split(b" ")[1].decode(errors="replace") if line.count(b" ") else ""
    if code == "101":
        return "it is accepted"
    return f"it is refused (HTTP {code})" if code else "the connection is closed"


_HANDSHAKE: Final = (
    b"GET /sc2api HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    b"Sec-WebSocket-Version: 13\r\n\r\n"
)
