"""Measures which ends a game reports, when and in which form, and how a game runs in real time.

Rule: a game that does not reply is closed, and the next sample is taken with a new game.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypedDict

from s2clientprotocol import debug_pb2, error_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import commands
from sc2pool.config import GameSetup
from sc2pool.deadline import Deadline
from sc2pool.doctor.checks import CATCHES_UP_ABOVE, FREEZES_BELOW
from sc2pool.doctor.findings import Judgement, Section, differs, expect, ok, seconds
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
    stopped,
    units_of,
)
from sc2pool.protocol import LOOPS_PER_S, requests
from sc2pool.protocol.replies import Status

FIRST_LOOP_MAX: Final = int(LOOPS_PER_S)
"""The first observation of a real-time game is usually of this loop or an earlier one."""

ENDS = Section("ends of games, and real time", needed=False)


class AwaitedEnd(TypedDict):
    """A request for a later loop's observation; the real-time game ends before that loop."""

    way: str
    """The way in which the game ended."""
    ahead: int
    """The requested loop minus the loop of the newest observation."""
    after_s: float | None
    """Seconds from the request to the reply; None if no reply came."""
    loop: int
    status: str
    told: bool
    """Whether the reply has the game's result."""
    refused: str
    """The text of the game's refusal; empty if the game replied with an observation."""


class End(TypedDict):
    """The end of a game, and the game's replies after its end."""

    way: str
    told_in: int
    """The number of observations with the result."""
    told_first: int | None
    """How many observations come between the end and the result; None if no result came."""
    stubs: int
    """The number of observations without content."""
    status: str
    after: dict[str, str]
    """For each kind of request: "answered", or the text of the game's refusal."""


class MatchEnd(TypedDict):
    """The end of a match, as seen by both sides."""

    realtime: bool
    results: list[str]
    """The results of the host and the guest; "" for a side that never got its result."""
    statuses: list[str]
    loops_after: int
    """How many loops the host's game played in the one second after `watched_s`."""
    watched_s: float
    """How many seconds both sides were observed after the end."""
    action_result: str
    """The result of an action of the host after the end; empty if no action was sent."""


class Stop(TypedDict):
    """A real-time game that was stopped and resumed."""

    stopped_s: float
    missed: float
    """The number of loops that the game would have played during the stop."""
    made_up: float
    """How many of the missed loops the game made up for after it was resumed."""


def after_stop(stops: Sequence[Stop]) -> str:
    """How a real-time game treats the loops missed in a stop: "freeze", "catch-up" or "in part"."""
    shares = [stop["made_up"] / stop["missed"] for stop in stops]
    if max(shares) <= FREEZES_BELOW:
        return "freeze"
    return "catch-up" if min(shares) >= CATCHES_UP_ABOVE else "in part"


@ENDS.check(
    "D01 awaited end", "in real time: is a request for a later loop answered if the game ends?"
)
def awaited_end(samples: Sequence[AwaitedEnd], waited_s: float) -> Judgement:
    """Judge the samples; a request without a reply within `waited_s` counts as unanswered."""
    silent = [sample for sample in samples if sample["after_s"] is None]
    if silent:
        ways = sorted({f"{sample['way']}, {sample['ahead']} loops ahead" for sample in silent})
        return differs(
            f"no: {len(silent)} of {len(samples)} were not answered within {waited_s:g} s of the "
            f"end ({'; '.join(ways)})",
            "a client must not wait in the game for a later loop; a pool then waits by its own "
            "clock",
        )
    refused = sorted({sample["refused"] for sample in samples} - {""})
    told = sum(sample["told"] for sample in samples)
    longest_s = max(sample["after_s"] or 0.0 for sample in samples)
    figure = f"yes: {len(samples)} of {len(samples)}, {told} with the result, "
    figure += f"the slowest after {seconds(longest_s)}"
    if refused:
        figure += f"; refused: {', '.join(refused)}"
    return expect(
        not refused and told == len(samples), figure, "a client must observe again for the result"
    )


@ENDS.check(
    "D02 polled end", "in real time: do observations tell the end, and are they answered after it?"
)
def polled_end(samples: Sequence[End]) -> Judgement:
    untold = sum(sample["told_first"] is None for sample in samples)
    refused = Counter(
        f"{sample['after'].get('observation')} (status {sample['status']})"
        for sample in samples
        if sample["after"].get("observation") != "answered"
    )
    figure = f"the result was told in {len(samples) - untold} of {len(samples)} ends"
    if refused:
        figure += f"; after the end an observation is refused: {', '.join(refused)}"
    return expect(
        not untold and not refused,
        figure + _after(samples),
        "a result may never come: a pool keeps the last observation, and ends such an episode "
        "without a result",
    )


@ENDS.check(
    "D04 stepped end", "in lock-step: when is the result told, and what is answered after it?"
)
def stepped_end(samples: Sequence[End]) -> Judgement:
    stubs = sum(sample["stubs"] for sample in samples)
    told = Counter(
        "never" if (first := sample["told_first"]) is None else f"in observation {first + 1}"
        for sample in samples
    )
    figure = "; ".join(f"{count} × {when}" for when, count in sorted(told.items()))
    if stubs:
        figure += f"; {stubs} observation(s) with the end are stubs (no state, loop 2^32 − 1)"
    late = any(sample["told_first"] not in (0, 1) for sample in samples)
    return expect(
        not stubs and not late,
        figure + _after(samples),
        "the last state of an episode may be missing: a pool uses the observation before it",
    )


@ENDS.check("D03 match end", "in real time: are two clients told of the end?")
def match_end(ends: Sequence[MatchEnd]) -> Judgement:
    untold = [end for end in ends if not all(end["results"])]
    if not untold:
        return ok(f"yes, in {len(ends)} of {len(ends)} matches")
    end = untold[0]
    goes = "stands still" if end["loops_after"] == 0 else f"goes on (+{end['loops_after']} loops)"
    figure = (
        f"no: {len(untold)} of {len(ends)} ends were not told to both within "
        f"{end['watched_s']:.0f} s (status {' and '.join(end['statuses'])}; the loop {goes}"
    )
    if end["action_result"]:
        figure += f"; an action gets {end['action_result']}"
    return differs(
        figure + ")", "a match in real time must be ended by another sign, or by its time limit"
    )


@ENDS.check("D03 match results", "do the two sides of a match agree on its result?")
def match_results(ends: Sequence[MatchEnd]) -> Judgement:
    told = [tuple(end["results"]) for end in ends if all(end["results"])]
    if not told:
        return differs("no match told both results", "a win cannot be told from a loss")
    odd = Counter(pair for pair in told if pair not in _OPPOSITE)
    if not odd:
        return ok(f"yes: {len(told)} of {len(told)} are opposite")
    named = ", ".join(
        f"{count} × both {a}" if a == b else f"{count} × {a} and {b}"
        for (a, b), count in odd.items()
    )
    return differs(f"no: {named}, of {len(told)}", "such a match counts as one without a winner")


_OPPOSITE: Final = {
    ("Victory", "Defeat"),
    ("Defeat", "Victory"),
    ("Tie", "Tie"),
    ("Undecided", "Undecided"),
}


def _stops(measured: Sequence[Stop]) -> Judgement:
    parts = [
        f"{stop['made_up'] / stop['missed']:z.0%} of {stop['missed']:.0f} loops "
        f"({stop['stopped_s']:.0f} s)"
        for stop in measured
    ]
    kind = after_stop(measured)
    return expect(
        kind == "freeze",
        f"{kind}: made up {', '.join(parts)}",
        "a pause does not stop this game's time: the missed loops are played without actions",
    )


stops = ENDS.check("D16 stops", "in real time: does a stopped game make up for missed loops?")(
    _stops
)
match_stops = ENDS.check("D16 match stops", "the same for a match whose games were both stopped")(
    _stops
)


@ENDS.check("D17 first loop", "in real time: how late is the first observation?")
def first_loop(alone: Sequence[int], loaded: Sequence[int]) -> Judgement:
    figure = f"loop {max(alone)} at the latest"
    if loaded:
        figure += f", {max(loaded)} beside games that compute"
    return expect(
        max([*alone, *loaded]) <= FIRST_LOOP_MAX,
        figure,
        "an episode in real time has lost its first loops when it begins",
    )


def _after(samples: Sequence[End]) -> str:
    """The kinds of request that the game refuses after an end, with the texts of its refusals."""
    kinds_by_words: dict[str, dict[str, None]] = {}
    for sample in samples:
        for kind, words in sample["after"].items():
            kinds_by_words.setdefault(words, {})[kind] = None
    kinds_by_words.pop("answered", None)
    told = [f"{', '.join(kinds)}: {words}" for words, kinds in kinds_by_words.items()]
    return f"; after the end {'; '.join(told)}" if told else ""


_SILENT_S: Final = 10.0
"""A request counts as unanswered if no reply comes within this time after the game's end."""
_ENOUGH_SILENT: Final = 2
"""The measurement stops after this many ends without a reply: each costs a wait and a launch."""
_LONGEST_TIMER_LOOPS: Final = 2600
"""The end by the map's timer is measured only if it comes within this many loops (two minutes)."""
_ENDS_WITHIN_LOOPS: Final = 45
"""If a game plays this many loops after the command to end it, it is assumed to continue."""
_OBSERVATIONS_AFTER_END: Final = 4
_MATCH_S: Final = 6.0
"""How long to observe both sides of an ended match, unless their results come sooner."""
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
    wait_s = lab.paced(_SILENT_S)
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
    lab.findings.note(awaited_end, samples, wait_s)


async def _await_caused_end(
    lab: Lab, client: Client, way: str, ahead: int, wait_s: float
) -> AwaitedEnd | None:
    """Measure one end of a game; None if the game does not end in this way."""
    await client.begin(*lab.mini(realtime=True))
    seen = await client.observe()
    # Send both requests in one burst, because the first one ends the game in the next loop.
    cause = debug_request(_cause(way, seen))
    awaited = requests.observation(seen.observation.game_loop + ahead)
    began_s = time.monotonic()
    client.post(cause, awaited)
    if await client.reply(wait_s) is None:
        return _sample(way, ahead, None)
    # Even a game that continues after the command reaches the requested loop in this time.
    goes_on_s = ahead / LOOPS_PER_S if way == BY_LOSS else 0.0
    reply = await client.reply(goes_on_s + wait_s)
    sample = _sample(way, ahead, reply, time.monotonic() - began_s)
    goes_on = reply is not None and client.status is Status.IN_GAME and not sample["told"]
    return None if way == BY_LOSS and goes_on else sample


async def _await_timer(
    lab: Lab, client: Client, way: str, ahead: int, wait_s: float
) -> AwaitedEnd | None:
    """Measure one end by the map's timer; a lock-step game first finds the loop of this end."""
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
    return _sample(way, ahead, reply, time.monotonic() - began_s - left_s)


def _sample(way: str, ahead: int, reply: sc_pb.Response | None, after_s: float = 0.0) -> AwaitedEnd:
    seen = sc_pb.ResponseObservation() if reply is None else reply.observation
    return AwaitedEnd(
        way=way,
        ahead=ahead,
        after_s=None if reply is None else max(0.0, after_s),
        loop=seen.observation.game_loop,
        status="" if reply is None else status_of(reply),
        told=bool(seen.player_result),
        refused="" if reply is None else refusal(reply),
    )


# ---- observed ends (D02, D04) -------------------------------------------------------------------


async def measure_polled_ends(lab: Lab) -> None:
    """End real-time games, and repeatedly request the current observation."""
    ways = (BY_SURRENDER, BY_LOSS, BY_VICTORY)
    lab.findings.note(polled_end, await _observe_ends(lab, ways, realtime=True))


async def measure_stepped_ends(lab: Lab) -> None:
    """End games in lock-step, in all ways including the map's timer."""
    ways = (BY_SURRENDER, BY_VICTORY, BY_LOSS, BY_TIMER)
    lab.findings.note(stepped_end, await _observe_ends(lab, ways, realtime=False))


async def _observe_ends(lab: Lab, ways: Iterable[str], *, realtime: bool) -> list[End]:
    client = await lab.launch()
    observed = [await _observe_end(lab, client, way, realtime=realtime) for way in ways]
    samples = [sample for sample in observed if sample is not None]
    if not samples:
        raise NotPossible("no game could be ended")
    return samples


async def _observe_end(lab: Lab, client: Client, way: str, *, realtime: bool) -> End | None:
    """End a game in this way and observe the end; None if the game does not end."""
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
    return End(
        way=way,
        told_in=told_in,
        told_first=told_first,
        stubs=stubs,
        status=client.status.name.lower(),
        after=await _answers_after(client, tags),
    )


async def _answers_after(client: Client, tags: Sequence[int]) -> dict[str, str]:
    """Try each kind of request after the end; returns "answered" or the refusal's text for each."""
    query = sc_pb.Request()
    query.query.abilities.add(unit_tag=tags[0] if tags else 1)
    walk = commands.as_actions([commands.move(tags or [1], (10.0, 10.0))])
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
    """End matches in real time and in lock-step; host and guest surrender alternately."""
    setup, path = lab.melee(participants=2)
    pair = await lab.pair()
    plan = [(realtime, loser) for realtime in (True, False) for loser in pair.sides]
    watch_s = lab.paced(_MATCH_S)
    ends = [
        await _end_match(pair, replace(setup, realtime=realtime), path, loser, watch_s)
        for realtime, loser in lab.while_time(plan, 4 * watch_s)
    ]
    lab.findings.note(match_end, [end for end in ends if end["realtime"]])
    lab.findings.note(match_results, ends)


async def _end_match(
    pair: Pair, setup: GameSetup, path: Path, loser: Client, watch_s: float
) -> MatchEnd:
    realtime = setup.realtime
    await pair.begin(setup, path)
    seen, _ = await both(*(side.observe() for side in pair.sides))
    tags = [unit.tag for unit in units_of(seen, raw_pb2.Self)]
    await loser.debug(end_game())
    results = dict.fromkeys(pair.sides, "")
    began_s = time.monotonic()
    loop = 0
    for _ in range(int(watch_s * LOOPS_PER_S)):
        if realtime:
            await asyncio.sleep(1 / LOOPS_PER_S)
        elif all(side.status is Status.IN_GAME for side in pair.sides):
            await pair.step(1)
        for side in pair.sides:
            reply = await side.ask(requests.observation())
            if side is pair.host:
                loop = reply.observation.observation.game_loop
            results[side] = side.result(reply.observation) or results[side]
        if all(results.values()):
            break
    watched_s = time.monotonic() - began_s
    statuses = [side.status.name.lower() for side in pair.sides]
    loops_after, action_result = 0, ""
    if realtime and not all(results.values()):
        await asyncio.sleep(_PACE_S)
        loops_after = await pair.host.loop() - loop
        walk = requests.action(commands.as_actions([commands.move(tags, (10.0, 10.0))]))
        reply = await pair.host.ask(walk)
        action_result = refusal(reply) or error_pb2.ActionResult.Name(reply.action.result[0])
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
    """Stop a real-time game twice, and compare the played loops with a time without a stop."""
    client = await lab.launch()
    await client.begin(*lab.mini(realtime=True))
    times_s = (1.0, lab.paced(4.0))
    lab.findings.note(stops, [await _stop([client], stopped_s) for stopped_s in times_s])


async def measure_match_stops(lab: Lab) -> None:
    """Stop both games of a match, and compare the played loops as in `measure_stops`."""
    pair = await lab.pair()
    await pair.begin(*lab.melee(participants=2, realtime=True))
    lab.findings.note(match_stops, [await _stop(pair.sides, 2.0)])


async def _stop(clients: Sequence[Client], stopped_s: float) -> Stop:
    first, first_s = await clients[0].loop(), time.monotonic()
    await asyncio.sleep(_PACE_S)
    pace = (await clients[0].loop() - first) / (time.monotonic() - first_s)
    if not pace:
        raise NotPossible("the game does not move by itself")
    pids = [client.pid for client in clients]
    before, _, after, was_stopped_s, ran_s = await stop_and_watch(
        clients[0].loop, pids, stopped_s, _PACE_S
    )
    return Stop(
        stopped_s=was_stopped_s,
        missed=pace * was_stopped_s,
        made_up=after - before - pace * ran_s,
    )


async def stop_and_watch(
    loop: Callable[[], Awaitable[int]], pids: Iterable[int], stopped_s: float, watch_s: float
) -> tuple[int, int, int, float, float]:
    """Stop a real-time game for `stopped_s`, then let it run for `watch_s`.

    Returns the game's loop before the stop, directly after the stop, and at the end; then how many
    seconds the game was stopped, and how many seconds it ran.
    """
    before, before_s = await loop(), time.monotonic()
    with stopped(*pids):
        await asyncio.sleep(stopped_s)
    was_stopped_s = time.monotonic() - before_s
    at_once = await loop()
    await asyncio.sleep(watch_s)
    after, after_s = await loop(), time.monotonic()
    return before, at_once, after, was_stopped_s, after_s - before_s - was_stopped_s


async def measure_first_loops(lab: Lab) -> None:
    """Measure the first observed loop of a real-time game that runs alone, or beside busy games."""
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
    lab.findings.note(first_loop, loops[False], loops[True])


async def _compute(lab: Lab, client: Client) -> None:
    """Keep a game busy until this coroutine is cancelled."""
    while True:
        await client.begin(*lab.mini())
        await client.step_to_end(_LONGEST_TIMER_LOOPS)
