"""Measures real time and the ends of games: which ends a game reports, when, and in which form.

Rules: a game that does not reply is closed, and the next sample gets a new game. A stopped game is
always resumed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from s2clientprotocol import debug_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import commands
from sc2pool.commands import as_actions
from sc2pool.config import GameSetup
from sc2pool.deadline import Deadline
from sc2pool.doctor.checks import ends as checks
from sc2pool.doctor.checks.ends import AwaitedEnd, End, MatchEnd, Stop
from sc2pool.doctor.lab import (
    STUB_LOOP,
    Client,
    Lab,
    NotPossible,
    Pair,
    both,
    debug_request,
    end_game,
    kill,
    refusal,
    status_of,
    units_of,
)
from sc2pool.processes.tree import STOPS_WITHIN_S, ProcessTree
from sc2pool.protocol import LOOPS_PER_S, requests
from sc2pool.protocol.replies import Status

_SILENT_S, _SHORT_SILENT_S = 10.0, 3.0
"""A request counts as unanswered if the reply is missing this long after the game's end."""
_ENOUGH_SILENT: Final = 2
"""The measurement stops after this many silent ends, because each costs its limit and a launch."""
_LONGEST_TIMER_LOOPS: Final = 2600
"""The timer's end is awaited in real time only on shorter maps: about two minutes."""
_ENDS_WITHIN_LOOPS: Final = 45
"""A caused end comes within this many loops, or never."""
_OBSERVATIONS_AFTER_END: Final = 4
_MATCH_S: Final = 6.0
"""How long both sides of an ended match are observed for the result."""
_PACE_S: Final = 1.0
BY_SURRENDER, BY_VICTORY = "a surrender by command", "a victory by command"
BY_LOSS, BY_TIMER = "the loss of all units", "the map's timer"


def _cause(way: str, seen: sc_pb.ResponseObservation) -> debug_pb2.DebugCommand:
    """The debug command that ends the game in this way."""
    if way == BY_LOSS:
        return kill(units_of(seen, raw_pb2.Self))
    return end_game(victory=way == BY_VICTORY)


# ---- requests for a later loop (D01) ------------------------------------------------------------


async def measure_awaited_ends(lab: Lab) -> None:
    """Request the observation of a later loop, and end the game before that loop."""
    samples: list[AwaitedEnd] = []
    wait_s = _SILENT_S if lab.patient else _SHORT_SILENT_S
    plan = [(BY_SURRENDER, ahead) for ahead in (5, 100, 2000)] * 2
    plan += [(BY_LOSS, ahead) for ahead in (5, 100)]
    if lab.patient:
        plan.append((BY_TIMER, 50))
    client: Client | None = None
    for way, ahead in plan:
        silent = sum(sample["after_s"] is None for sample in samples)
        if silent >= _ENOUGH_SILENT or (samples and lab.deadline.remaining_s() < 3 * wait_s):
            break
        client = client or await lab.launch()
        await_end = _await_timer if way == BY_TIMER else _await_caused_end
        sample = await await_end(lab, client, way, ahead, wait_s)
        if sample is None:
            continue
        samples.append(sample)
        if sample["after_s"] is None:
            client.close()
            client = None
    if not samples:
        raise NotPossible("no game could be ended")
    lab.findings.note(checks.awaited_end, samples, wait_s)


async def _await_caused_end(
    lab: Lab, client: Client, way: str, ahead: int, wait_s: float
) -> AwaitedEnd | None:
    """One sample; None if the game does not end in this way."""
    await client.begin(*lab.mini(realtime=True))
    seen = await client.observe()
    # In one burst, because the game ends with its next loop.
    cause = debug_request(_cause(way, seen))
    awaited = requests.observation(seen.observation.game_loop + ahead)
    began_s = time.monotonic()
    client.post(cause, awaited)
    if await client.reply(wait_s) is None:
        return _silent(way, ahead)
    # If the game continues, it reaches the loop in this time.
    goes_on_s = ahead / LOOPS_PER_S if way == BY_LOSS else 0.0
    reply = await client.reply(goes_on_s + wait_s)
    if reply is None:
        return _silent(way, ahead)
    if way == BY_LOSS and client.status is Status.IN_GAME and not reply.observation.player_result:
        return None
    return _answered(way, ahead, reply, time.monotonic() - began_s)


async def _await_timer(
    lab: Lab, client: Client, way: str, ahead: int, wait_s: float
) -> AwaitedEnd | None:
    """One sample of a map that ends by its timer; lock-step shows the loop of the end first."""
    await client.begin(*lab.mini())
    lasts = await client.step_to_end(_LONGEST_TIMER_LOOPS, at_a_time=40)
    if lasts is None or lab.deadline.remaining_s() < lasts / LOOPS_PER_S + 3 * wait_s:
        return None
    await client.begin(*lab.mini(realtime=True))
    await asyncio.sleep(max(0.0, (lasts - 60 - await client.loop()) / LOOPS_PER_S))
    left_s = (lasts - await client.loop()) / LOOPS_PER_S
    began_s = time.monotonic()
    client.post(requests.observation(lasts + ahead))
    reply = await client.reply(left_s + wait_s)
    if reply is None:
        return _silent(way, ahead)
    return _answered(way, ahead, reply, time.monotonic() - began_s - left_s)


def _silent(way: str, ahead: int) -> AwaitedEnd:
    return AwaitedEnd(way=way, ahead=ahead, after_s=None, loop=0, status="", told=False, refused="")


def _answered(way: str, ahead: int, reply: sc_pb.Response, after_s: float) -> AwaitedEnd:
    return AwaitedEnd(
        way=way,
        ahead=ahead,
        after_s=max(0.0, after_s),
        loop=reply.observation.observation.game_loop,
        status=status_of(reply),
        told=bool(reply.observation.player_result),
        refused=refusal(reply),
    )


# ---- observed ends (D02, D04) -------------------------------------------------------------------


async def measure_polled_ends(lab: Lab) -> None:
    """End games in real time, and observe them repeatedly, without waiting for a loop."""
    client = await lab.launch()
    samples = []
    for way in (BY_SURRENDER, BY_LOSS, BY_VICTORY):
        sample = await _observe_end(lab, client, way, realtime=True)
        if sample is not None:
            samples.append(sample)
    if not samples:
        raise NotPossible("no game could be ended")
    lab.findings.note(checks.polled_end, samples)


async def measure_stepped_ends(lab: Lab) -> None:
    """End games in lock-step, also by the map's timer."""
    client = await lab.launch()
    samples = []
    for way in (BY_SURRENDER, BY_VICTORY, BY_LOSS, BY_TIMER):
        sample = await _observe_end(lab, client, way, realtime=False)
        if sample is not None:
            samples.append(sample)
    if not samples:
        raise NotPossible("no game could be ended")
    lab.findings.note(checks.stepped_end, samples)


async def _observe_end(lab: Lab, client: Client, way: str, *, realtime: bool) -> End | None:
    """End a game and observe it; None if it does not end in this way."""
    await client.begin(*lab.mini(realtime=realtime))
    seen = await client.observe()
    tags = [unit.tag for unit in units_of(seen, raw_pb2.Self)]
    within = Deadline.after(_ENDS_WITHIN_LOOPS / LOOPS_PER_S)
    if way == BY_TIMER:
        if await client.step_to_end(_LONGEST_TIMER_LOOPS) is None:
            return None
    else:
        await client.debug(_cause(way, seen))
    told_first, told_in, stubs, after_end = None, 0, 0, 0
    steps = 0
    while after_end < _OBSERVATIONS_AFTER_END:
        if realtime:
            await asyncio.sleep(1 / LOOPS_PER_S)
        elif client.status is Status.IN_GAME and steps < _ENDS_WITHIN_LOOPS:
            steps += 1
            await client.step(1)
        reply = await client.ask(requests.observation())
        told = bool(reply.observation.player_result)
        has_ended = told or bool(refusal(reply)) or client.status is not Status.IN_GAME
        if told and told_first is None:
            told_first = after_end
        told_in += told
        stubs += reply.observation.observation.game_loop == STUB_LOOP
        after_end += has_ended
        if not has_ended and (within.expired() if realtime else steps >= _ENDS_WITHIN_LOOPS):
            if way == BY_LOSS:
                return None
            break
    status = client.status.name.lower()
    return End(
        way=way,
        told_in=told_in,
        told_first=told_first,
        stubs=stubs,
        status=status,
        after=await _answers_after(client, tags),
    )


async def _answers_after(client: Client, tags: Sequence[int]) -> dict[str, str]:
    """By kind of request: "answered", or the game's words of refusal after its end."""
    query = sc_pb.Request()
    query.query.abilities.add(unit_tag=tags[0] if tags else 1)
    walk = as_actions([commands.move(tags or [1], (10.0, 10.0))])
    asked = {
        "observation": requests.observation(),
        "action": requests.action(walk),
        "step": requests.step(1),
        "query": query,
        "game_info": requests.game_info(),
        "save_replay": requests.save_replay(),
    }
    return {
        kind: refusal(await client.ask(request)) or "answered" for kind, request in asked.items()
    }


# ---- ends of matches (D03) ----------------------------------------------------------------------


async def measure_match_ends(lab: Lab) -> None:
    """End matches in real time and in lock-step; the host and the guest surrender in turns."""
    setup, path = lab.melee(participants=2)
    pair = await lab.pair()
    ends: list[MatchEnd] = []
    for realtime in (True, False):
        for loser in pair.sides:
            if not ends or lab.deadline.remaining_s() > 4 * _MATCH_S:
                ends.append(await _end_match(pair, setup, path, loser, realtime=realtime))
    lab.findings.note(checks.match_end, [end for end in ends if end["realtime"]])
    lab.findings.note(checks.match_results, ends)


async def _end_match(
    pair: Pair, setup: GameSetup, path: Path, loser: Client, *, realtime: bool
) -> MatchEnd:
    await pair.begin(replace(setup, realtime=realtime), path)
    seen, _ = await both(*(side.observe() for side in pair.sides))
    tags = [unit.tag for unit in units_of(seen, raw_pb2.Self)]
    await loser.debug(end_game())
    results = dict.fromkeys(pair.sides, "")
    began_s = time.monotonic()
    loop = 0
    for _ in range(int(_MATCH_S * LOOPS_PER_S)):
        if realtime:
            await asyncio.sleep(1 / LOOPS_PER_S)
        elif all(side.status is Status.IN_GAME for side in pair.sides):
            await pair.step(1)
        for side in pair.sides:
            reply = await side.ask(requests.observation())
            if side is pair.host:
                loop = reply.observation.observation.game_loop
            for one in reply.observation.player_result:
                if one.player_id == side.player_id:
                    results[side] = checks.result_name(one.result)
        if all(results.values()):
            break
    watched_s = time.monotonic() - began_s
    statuses = [side.status.name.lower() for side in pair.sides]
    loops_after, action_result = 0, ""
    if realtime and not all(results.values()):
        await asyncio.sleep(_PACE_S)
        loops_after = await pair.host.loop() - loop
        walk = requests.action(as_actions([commands.move(tags, (10.0, 10.0))]))
        reply = await pair.host.ask(walk)
        action_result = refusal(reply) or checks.action_result_name(reply.action.result[0])
    return MatchEnd(
        realtime=realtime,
        results=list(results.values()),
        statuses=statuses,
        loops_after=loops_after,
        watched_s=watched_s,
        action_result=action_result,
    )


# ---- stops and the first loop, in real time (D16, D17) ------------------------------------------


async def measure_stops(lab: Lab) -> None:
    """Stop real-time games, and compare the loops that they play afterwards with their pace."""
    client = await lab.launch()
    await client.begin(*lab.mini(realtime=True))
    stopped = [await _stop([client], stopped_s) for stopped_s in (1.0, 4.0)]
    lab.findings.note(checks.stops, stopped)
    client.close()
    setup, path = lab.melee(participants=2, realtime=True)
    pair = await lab.pair()
    await pair.begin(setup, path)
    lab.findings.note(checks.match_stops, [await _stop(pair.sides, 2.0)])


async def _stop(clients: Sequence[Client], stopped_s: float) -> Stop:
    first, first_s = await clients[0].loop(), time.monotonic()
    await asyncio.sleep(_PACE_S)
    before, before_s = await clients[0].loop(), time.monotonic()
    pace = (before - first) / (before_s - first_s)
    if not pace:
        raise NotPossible("the game does not move by itself")
    tree = ProcessTree(*(client.pid for client in clients))
    stopped_at_s = time.monotonic()
    tree.stop(Deadline.after(STOPS_WITHIN_S))
    try:
        await asyncio.sleep(stopped_s)
    finally:
        tree.resume()
    was_stopped_s = time.monotonic() - stopped_at_s
    await clients[0].loop()
    await asyncio.sleep(_PACE_S)
    after, after_s = await clients[0].loop(), time.monotonic()
    ran_s = after_s - before_s - was_stopped_s
    return Stop(
        stopped_s=was_stopped_s,
        missed=pace * was_stopped_s,
        made_up=after - before - pace * ran_s,
    )


async def measure_first_loops(lab: Lab) -> None:
    """Measure a real-time game's first observed loop, alone and beside busy games."""
    client = await lab.launch()
    loops: dict[bool, list[int]] = {False: [], True: []}
    for loaded, seen in loops.items():
        others = [await lab.launch() for _ in range(2)] if loaded else []
        busy = [asyncio.ensure_future(_compute(lab, other)) for other in others]
        try:
            for _ in range(2):
                await client.begin(*lab.mini(realtime=True))
                seen.append(await client.loop())
        finally:
            for task in busy:
                task.cancel()
            await asyncio.gather(*busy, return_exceptions=True)
    lab.findings.note(checks.first_loop, loops[False], loops[True])


async def _compute(lab: Lab, client: Client) -> None:
    """Keep a game busy until the task is cancelled."""
    while True:
        await client.begin(*lab.mini())
        await client.step_to_end(_LONGEST_TIMER_LOOPS)
