"""Measures matches of two clients: bursts of requests, matches in a row, lost sides, pauses, ports.

Rule: if a game was killed or does not reply, it is closed, and a new game takes its side.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Sequence
from typing import Final, TypedDict

from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import commands
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
from sc2pool.doctor.lab import Client, Lab, Pair, both, carried_out, refusal, stopped
from sc2pool.doctor.stepping import first_difference
from sc2pool.errors import GameFault
from sc2pool.game.program.lease import HOST
from sc2pool.protocol import requests

MATCHES = Section("matches of two clients", needed=False)


class Loss(TypedDict):
    """What one side of a match sees after the other side was lost."""

    way: str
    """How the other side was lost."""
    reply: str
    """The reply to the next step: "answered", "nothing", or the text of the game's refusal."""
    after_s: float
    """Seconds until the reply to the next step, or until the wait for it ended."""
    status: str
    result: str
    """The side's result; empty if the side got no result."""


class Pause(TypedDict):
    """A time in which games get no requests."""

    where: str
    waited_s: float
    failure: str
    """Why the next request after the pause failed; empty if the game answered it."""


class Taken(TypedDict):
    """A match for which another program occupies one of the ports."""

    port: str
    kind: str
    outcome: str
    took_s: float


@MATCHES.check(
    "D09 match bursts", "do bursts give the same observations as single requests in a match?"
)
def match_bursts(
    compared: int, undetermined: str, difference: str, realtime_bursts: int
) -> Judgement:
    """Judge matches in which requests were sent in bursts.

    `undetermined` is the first difference between two matches with the same seed and requests.
    `difference` is the first difference between matches with and without bursts; "" for none.
    """
    if undetermined:
        return differs(
            f"it cannot be said: the same seed and requests do not give the same match "
            f"({undetermined}); {realtime_bursts} bursts in real time were answered",
            "a match with a seed cannot be repeated exactly",
        )
    if difference:
        advice = "matches must be stepped by single requests, which takes longer"
        return differs(f"no: {difference}", advice)
    return ok(
        f"yes: {compared} observations of both sides are the same; {realtime_bursts} bursts in "
        "real time"
    )


@MATCHES.check("D13 matches in a row", "can two processes play match after match?")
def matches_in_a_row(
    played: int, starts_s: Sequence[float], first_bytes: int, last_bytes: int, failure: str
) -> Judgement:
    grown = (last_bytes - first_bytes) / MB / max(1, played - 1)
    figure = f"{played} matches"
    if starts_s:
        figure += (
            f", a start takes {seconds(starts_s[0])} at first, {seconds(starts_s[-1])} at last"
        )
    figure += f"; both games {megabytes(last_bytes)} ({grown:+.1f} MB a match)"
    if failure:
        return differs(
            f"match {played + 1} fails: {failure}; {figure}",
            "the processes of a match must be replaced earlier: RecyclePolicy(episodes=…)",
        )
    return ok(figure)


@MATCHES.check(
    "D14 lost side", "what does a side see when the other one leaves, quits, dies or stops?"
)
def lost_side(losses: Sequence[Loss]) -> Judgement:
    told = [
        f"{one['way']}: {one['reply']} after {seconds(one['after_s'])}, status {one['status']}, "
        + (one["result"] or "no result")
        for one in losses
    ]
    waits = [one["way"] for one in losses if one["reply"] == "nothing" and one["way"] != STOPPED]
    return expect(
        not waits,
        "; ".join(told),
        f"the other side waits for ever ({', '.join(waits)}): a pool ends it by its time limit",
    )


STOPPED = "it is stopped"
"""The `way` of a side whose process is stopped; only such a side is resumed later."""


@MATCHES.check("D15 idle", "does a game survive a time without requests?")
def idle(pauses: Sequence[Pause]) -> Judgement:
    figure = "; ".join(
        f"{one['waited_s']:.0f} s {one['where']}: {one['failure'] or 'answered'}" for one in pauses
    )
    return expect(
        not any(one["failure"] for one in pauses),
        f"{figure} (longer pauses are not tried)",
        "a long update of the learner ends the games: send them requests during an update",
    )


@MATCHES.check("D23 taken ports", "what if another program has taken a port of a match?")
def taken_ports(measured: Sequence[Taken]) -> Judgement:
    told = [
        f"{one['port']} ({one['kind']}): {shortened(one['outcome'])}, {seconds(one['took_s'])}"
        for one in measured
    ]
    return ok("; ".join(told))


@MATCHES.check("D23 second client", "can a second client connect to the same game?")
def second_client(idle: str, waiting: str, first_answers: bool) -> Judgement:
    figure = f"{idle} while the game is idle, {waiting} while it has a request"
    if not first_answers:
        return differs(
            f"{figure}; then the first client gets no answer", "nothing else may connect"
        )
    return ok(figure)


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
"""The observations of the host's game and of the guest's game."""


async def measure_match_bursts(lab: Lab) -> None:
    """Play four matches of one seed, two of them in bursts; then play bursts in real time."""
    setup, path = lab.melee(participants=2)
    pair = await lab.pair()
    played: dict[bool, list[_Played]] = {True: [], False: []}
    for burst in (True, False, True, False):
        await pair.begin(setup, path, _SEED)
        played[burst].append(await _play(pair, burst=burst))
    undetermined = _difference(*played[True]) or _difference(*played[False])
    difference = "" if undetermined else _difference(played[True][0], played[False][0])
    compared = sum(map(len, played[True][0]))
    await pair.begin(*lab.melee(participants=2, realtime=True))
    bursts = 0
    until_s = time.monotonic() + _REALTIME_S
    while time.monotonic() < until_s:
        deeds = [side.ask_all([requests.action([]), requests.observation()]) for side in pair.sides]
        for replies in await both(*deeds):
            carried_out(replies[-1], "observation")
        bursts += 2
    lab.findings.note(match_bursts, compared, undetermined, difference, bursts)


async def _play(pair: Pair, *, burst: bool) -> _Played:
    first = await both(*(side.observe() for side in pair.sides))
    played: _Played = [first[0].observation], [first[1].observation]
    for number in range(_STEPS):
        deeds = [
            _step(side, _walk(seen[-1], number), burst=burst)
            for side, seen in zip(pair.sides, played, strict=True)
        ]
        for seen, observation in zip(played, await both(*deeds), strict=True):
            seen.append(observation)
    return played


def _walk(seen: sc_pb.Observation, number: int) -> list[sc_pb.Request]:
    """In every tenth step, an action that moves the own units back or forth; else an empty list."""
    own = [unit for unit in seen.raw_data.units if unit.alliance == raw_pb2.Self]
    if number % 10 or not own:
        return []
    away = 6.0 if number % 20 else -6.0
    target = own[0].pos.x + away, own[0].pos.y + away
    walk = commands.move([unit.tag for unit in own], target)
    return [requests.action(commands.as_actions([walk]))]


async def _step(side: Client, action: list[sc_pb.Request], *, burst: bool) -> sc_pb.Observation:
    asked = [*action, requests.step(_STEP_MUL), requests.observation()]
    replies = await side.ask_all(asked) if burst else [await side.ask(one) for one in asked]
    return carried_out(replies[-1], "observation").observation.observation


def _difference(ours: _Played, theirs: _Played) -> str:
    for side, one, other in zip(("host", "guest"), ours, theirs, strict=True):
        difference = first_difference(one, other)
        if difference:
            return f"{side}: {difference}"
    return ""


# ---- processes that are used again (D13) --------------------------------------------------------


async def measure_matches_in_a_row(lab: Lab) -> None:
    """Play up to `_MATCHES` short matches in the same two processes, as many as time permits."""
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
        matches_in_a_row, len(starts_s), starts_s, first_bytes, _rss_bytes(pair), failure
    )


def _rss_bytes(pair: Pair) -> int:
    return sum(side.process.rss_bytes() for side in pair.sides)


# ---- lost sides (D14) ---------------------------------------------------------------------------


async def measure_lost_sides(lab: Lab) -> None:
    """Begin matches and remove the guest in several ways, while the host steps."""
    losses: list[Loss] = []
    pair = await lab.pair()
    for way in lab.while_time((LEAVES, STOPPED, QUITS, KILLED), 3 * _WAIT_S):
        losses.append(await _lose(lab, pair, way))
        if losses[-1]["reply"] == "nothing":
            pair.host.close()
            pair.host = await lab.launch()
        if way in {QUITS, KILLED}:
            pair.guest.close()
            pair.guest = await lab.launch()
    lab.findings.note(lost_side, losses)


LEAVES, QUITS, KILLED = "it leaves", "it quits", "it is killed"


async def _lose(lab: Lab, pair: Pair, way: str) -> Loss:
    await pair.begin(*lab.melee(participants=2))
    await pair.step(_STEP_MUL)
    began_s = time.monotonic()
    if way == STOPPED:
        with stopped(pair.guest.pid):
            pair.guest.post(requests.step(_STEP_MUL))
            pair.host.post(requests.step(_STEP_MUL))
            reply = await pair.host.reply(_STOPPED_S)
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
            result = pair.host.result(seen.observation) or result
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
        await asyncio.sleep(lab.paced(_IDLE_S))
        waited_s = time.monotonic() - began_s
        try:
            if where == "in a match":
                await pair.step(_STEP_MUL)
            else:
                await both(*(side.ask(requests.ping()) for side in pair.sides))
        except GameFault as fault:
            failure = fault.detail
        pauses.append(Pause(where=where, waited_s=waited_s, failure=failure))
        lab.findings.note(idle, pauses)

    await wait("after the launch")
    await pair.begin(*lab.melee(participants=2))
    await wait("in a match")


# ---- ports and other clients (D23) --------------------------------------------------------------


async def measure_ports(lab: Lab) -> None:
    """Occupy a port of a match, once for TCP and once for UDP, before the match begins."""
    setup, path = lab.melee(participants=2)
    measured: list[Taken] = []
    for name, kind in (("TCP", socket.SOCK_STREAM), ("UDP", socket.SOCK_DGRAM)):
        pair = await lab.pair()
        began_s = time.monotonic()
        with socket.socket(socket.AF_INET, kind) as stranger:
            stranger.bind((HOST, pair.ports.server_game))
            if name == "TCP":
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
                kind=name,
                outcome=outcome,
                took_s=time.monotonic() - began_s,
            )
        )
        lab.close_games()
    lab.findings.note(taken_ports, measured)


async def measure_second_client(lab: Lab) -> None:
    """Connect a second client to a game that is idle, and to one with a pending request."""
    client = await lab.launch()
    await client.begin(*lab.mini(realtime=True))
    idle_outcome = await _connect(client.api.port)
    client.post(requests.observation(await client.loop() + 40))
    waiting_outcome = await _connect(client.api.port)
    answers = await client.reply(_WAIT_S) is not None
    lab.findings.note(second_client, idle_outcome, waiting_outcome, answers)


async def _connect(port: int) -> str:
    """Try a websocket handshake with a game that has a client; return the outcome in words."""
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
