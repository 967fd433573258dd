"""Measures restarts and resets: their effects, their leftovers, and how long a game can be played.

Rule: observations of restarted and of created games are compared without the fog of war.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypedDict

import psutil
from s2clientprotocol import common_pb2, debug_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import commands
from sc2pool.config import GameSetup
from sc2pool.doctor.findings import MB, Judgement, Section, differs, expect, megabytes, ok, seconds
from sc2pool.doctor.lab import (
    VERY_EASY,
    WORKERS,
    Client,
    Lab,
    NotPossible,
    debug_request,
    refusal,
    units_of,
)
from sc2pool.errors import GameFault
from sc2pool.protocol import requests
from sc2pool.protocol.replies import HARD_RESET_LOOP, LAST_LOOP, Status

GROWTH_BYTES: Final = 2 * MB
"""The report mentions memory growth if it exceeds this many bytes per reset."""
RESTARTS_TO_TELL: Final = 4
"""If this many restarts show one race, it counts as kept; the chance of an error is 1 in 27."""

RESETS = Section("restarts and resets", needed=False)


class Beginning(TypedDict):
    """The beginning of an episode against a computer."""

    restarted: bool
    own_race: str
    enemy_race: str
    units: str
    """Counts of all units by owner and type, in one text."""
    growth: int
    """How many units the computer gained in the first `_COMPUTER_LOOPS` loops."""


class Step(TypedDict):
    """One step of many loops."""

    loops: int
    took_s: float
    refused: str


class Resets(TypedDict):
    """Resets of one kind in one process."""

    kind: str
    done: int
    took_s: float
    first_bytes: int
    last_bytes: int
    threads: int
    """How many more threads the game had after the resets than before."""
    files: int
    """How many files the resets added to the folders to which the game writes."""
    failure: str
    """Why the last reset failed; empty if no reset failed."""


@RESETS.check("D05 restart restores", "does restart_game restore used-up resources?")
def restart_restores(
    mined: int, exhausted: int, loops: int, differences: Sequence[str]
) -> Judgement:
    figure = f"{mined} minerals mined and {exhausted} field(s) exhausted in {loops:,} loops, "
    figure += "units and upgrades given"
    if not differences:
        proof = "" if exhausted else " (without an exhausted field this proves little)"
        return ok(f"yes: {figure}; all is as at first{proof}")
    return differs(
        f"no: {figure}; after the restart {'; '.join(differences)}",
        "a restarted episode keeps changes of the previous one: a pool creates a new game for "
        "each episode of such a task, which takes longer",
    )


def _against_computer(random_side: str, beginnings: Sequence[Beginning], refused: str) -> Judgement:
    """Compare restarted games with created games; `random_side` is the key of the random race."""
    advice = "a pool creates a new game for each such episode, which takes longer"
    if refused:
        return differs(f"restart_game is refused: {refused}", advice)
    restarted = [one for one in beginnings if one["restarted"]]
    created = [one for one in beginnings if not one["restarted"]]
    known: dict[tuple[str, str], set[str]] = {}
    for one in created:
        known.setdefault((one["own_race"], one["enemy_race"]), set()).add(one["units"])
    odd = [
        one
        for one in restarted
        if (seen := known.get((one["own_race"], one["enemy_race"]))) and one["units"] not in seen
    ]
    still = [one for one in restarted if one["growth"] <= 0]
    if any(one["growth"] <= 0 for one in created):
        still = []
    races = {
        name: Counter(one[random_side] for one in group)  # type: ignore[literal-required]
        for name, group in (("restarts", restarted), ("creations", created))
    }
    figure = f"{len(restarted)} restarts and {len(created)} creations; races: " + "; ".join(
        f"{name} {', '.join(f'{count} × {race}' for race, count in counts.items())}"
        for name, counts in races.items()
    )
    stays = len(races["restarts"]) == 1 < len(races["creations"])
    if odd:
        return differs(
            f"no: {len(odd)} began with other units than created games; {figure}", advice
        )
    if still:
        return differs(f"no: the computer does nothing in {len(still)} of them; {figure}", advice)
    if stays and len(restarted) >= RESTARTS_TO_TELL:
        return differs(f"no: the race stays the same; {figure}", advice)
    return ok(f"yes: {figure}")


@RESETS.check(
    "D06 computer restarts", "is a restarted game against a computer as good as a created one?"
)
def computer_restarts(beginnings: Sequence[Beginning], refused: str = "") -> Judgement:
    return _against_computer("enemy_race", beginnings, refused)


@RESETS.check("D07 random race", "the same with a random own race: is the race drawn again?")
def random_race(beginnings: Sequence[Beginning], refused: str = "") -> Judgement:
    return _against_computer("own_race", beginnings, refused)


@RESETS.check("D08 many resets", "what do hundreds of resets in one process leave behind?")
def many_resets(measured: Sequence[Resets]) -> Judgement:
    parts, troubles = [], []
    for one in measured:
        grown = one["last_bytes"] - one["first_bytes"]
        parts.append(
            f"{one['done']} × {one['kind']} in {seconds(one['took_s'])}: "
            f"{megabytes(one['last_bytes'])} ({grown / MB:+.1f} MB), {one['threads']:+d} threads, "
            f"{one['files']:+d} files"
        )
        if one["failure"]:
            troubles.append(f"{one['kind']} {one['done'] + 1} fails: {one['failure']}")
        elif grown > GROWTH_BYTES * max(one["done"], 1):
            troubles.append(f"{one['kind']} makes it grow")
        elif one["files"] > one["done"] // 2:
            troubles.append(f"{one['kind']} leaves files")
    figure = "; ".join([*troubles, *parts])
    return expect(
        not troubles, figure, "a process must be replaced earlier: RecyclePolicy(episodes=…)"
    )


@RESETS.check("D25 limits", "how far can a game be stepped, and does need_hard_reset come?")
def limits(
    steps: Sequence[Step],
    reached: int,
    hard_reset_at: int | None,
    ended: str,
    observation_bytes: int,
) -> Judgement:
    """Judge how many loops a game can play; `ended` is the game's refusal of a restart, or ""."""
    parts = [f"{step['loops']:,} loops in {seconds(step['took_s'])}" for step in steps]
    figure = f"steps of {', '.join(parts)}; {reached:,} loops played with restarts"
    if ended:
        figure += f", then: {ended}"
    figure += f"; an observation has {observation_bytes:,} bytes; "
    if hard_reset_at is not None:
        figure += f"a hard reset is asked for after {hard_reset_at:,} loops"
    elif reached < HARD_RESET_LOOP:
        figure += f"2^18 = {HARD_RESET_LOOP:,} loops took too long"
    else:
        figure += "a hard reset is never asked for"
    refused = [f"a step of {one['loops']:,}: {one['refused']}" for one in steps if one["refused"]]
    if refused:
        return differs(f"refused: {'; '.join(refused)}; {figure}", "such steps must be split")
    if hard_reset_at is not None and hard_reset_at < HARD_RESET_LOOP:
        return differs(f"{figure}, before 2^18", "the pool replaces games more often")
    return ok(figure)


_NEAR: Final = 12.0
"""A mineral field belongs to a town if it is at most this many cells from the workers."""
_MINING_LOOPS: Final = 13_500
"""The most loops of mining; must be below 14,400, at which an episode of BuildMarines ends."""
_LOOK_EACH_LOOPS: Final = 60
"""Loops between two orders to workers; a worker leaves for another field if its own is busy."""
_MULE: Final = 268
_MULE_LOOPS: Final = 1_440
"""About the length of a MULE's life in loops; a MULE is a temporary mining robot."""
_COMPUTER_LOOPS: Final = 1_000
"""A computer that is playing trains at least one worker within this many loops."""
_RESETS: Final = 200
_LONG_STEP: Final = 5_000


# ---- restored state (D05) -----------------------------------------------------------------------


async def measure_restores(lab: Lab) -> None:
    """Exhaust a mineral field, add units and upgrades, restart, and compare both beginnings."""
    client = await lab.launch()
    await client.begin(*lab.mining())
    first = await client.observe(disable_fog=True)
    loops = await _mine(lab, client, first)
    last = await client.observe(disable_fog=True)
    mined = _contents(first) - _contents(last)
    exhausted = len(_fields(first)) - len(_fields(last))
    if mined <= 0:
        raise NotPossible("the workers of this map mined nothing")
    await _give(client, last)
    if (await client.restart()).need_hard_reset:
        raise NotPossible("the game asks for a hard reset instead of a restart")
    again = await client.observe(disable_fog=True)
    differences = _differences(_inventory(first), _inventory(again))
    lab.findings.note(restart_restores, mined, exhausted, loops, differences)


async def _mine(lab: Lab, client: Client, first: sc_pb.ResponseObservation) -> int:
    """Let all workers mine one field until it is exhausted; returns how many loops were played.

    MULEs (mining robots) help, because workers alone would need more loops than an episode has.
    """
    workers = [unit for unit in units_of(first, raw_pb2.Self) if unit.unit_type in WORKERS]
    if not workers:
        raise NotPossible("there are no workers on this map")
    x, y = (sum(getattr(unit.pos, axis) for unit in workers) / len(workers) for axis in "xy")
    near = [
        field
        for field in _fields(first)
        if (field.pos.x - x) ** 2 + (field.pos.y - y) ** 2 <= _NEAR**2
    ]
    if not near:
        raise NotPossible("there are no mineral fields near the workers")
    field = min(near, key=lambda field: (field.mineral_contents, field.tag))
    target, others = field.tag, {other.tag for other in _fields(first)} - {field.tag}
    mules = debug_pb2.DebugCreateUnit(unit_type=_MULE, owner=client.player_id, quantity=4)
    mules.pos.x, mules.pos.y = workers[0].pos.x, workers[0].pos.y
    sent = [worker.tag for worker in workers]
    loops = 0
    while loops < _MINING_LOOPS:
        if loops % _MULE_LOOPS == 0:  # if the game refuses MULEs, the workers mine alone
            await client.ask(debug_request(debug_pb2.DebugCommand(create_unit=mules)))
        loops += _LOOK_EACH_LOOPS
        asked = [requests.step(_LOOK_EACH_LOOPS), requests.observation(disable_fog=True)]
        if sent:
            gather = commands.as_actions([commands.gather(sent, target)])
            asked.insert(0, requests.action(gather))
        *_, reply = await client.ask_all(asked, 60.0)
        seen = reply.observation
        if target not in {field.tag for field in _fields(seen)}:
            break
        if client.status is not Status.IN_GAME or lab.deadline.remaining_s() < 20.0:
            break
        # In later rounds, send only workers that left for another field, and idle MULEs.
        sent = [
            worker.tag
            for worker in units_of(seen, raw_pb2.Self)
            if (worker.orders[:1] and worker.orders[0].target_unit_tag in others)
            or (worker.unit_type == _MULE and not worker.orders)
        ]
    return loops


async def _give(client: Client, seen: sc_pb.ResponseObservation) -> None:
    """Make changes that a restart should undo; the game may refuse some of them."""
    if client.status is not Status.IN_GAME:
        return
    place = units_of(seen, raw_pb2.Self)[0].pos
    marines = debug_pb2.DebugCreateUnit(unit_type=48, owner=client.player_id, quantity=3)
    marines.pos.x, marines.pos.y = place.x, place.y
    for command in (
        debug_pb2.DebugCommand(create_unit=marines),
        debug_pb2.DebugCommand(game_state=debug_pb2.upgrade),
        debug_pb2.DebugCommand(game_state=debug_pb2.all_resources),
    ):
        await client.ask(debug_request(command))
    await client.step(8)


def _fields(seen: sc_pb.ResponseObservation) -> list[raw_pb2.Unit]:
    return [unit for unit in seen.observation.raw_data.units if unit.mineral_contents > 0]


def _contents(seen: sc_pb.ResponseObservation) -> int:
    return sum(field.mineral_contents for field in _fields(seen))


def _inventory(seen: sc_pb.ResponseObservation) -> dict[str, int]:
    """Counts that are the same at every episode's beginning, unless the map itself varies them."""
    observation = seen.observation
    counts = Counter(
        f"{raw_pb2.Alliance.Name(unit.alliance).lower()} units of type {unit.unit_type}"
        for unit in observation.raw_data.units
        if not unit.mineral_contents
    )
    return {
        **counts,
        "mineral fields": len(_fields(seen)),
        "minerals in fields": _contents(seen),
        "gas in geysers": sum(unit.vespene_contents for unit in observation.raw_data.units),
        "upgrades": len(observation.raw_data.player.upgrade_ids),
        "own minerals": observation.player_common.minerals,
        "own gas": observation.player_common.vespene,
        "score": observation.score.score,
    }


def _differences(before: dict[str, int], after: dict[str, int]) -> list[str]:
    return [
        f"{name}: {after.get(name, 0):,} instead of {before.get(name, 0):,}"
        for name in {**before, **after}
        if before.get(name, 0) != after.get(name, 0)
    ]


# ---- computers and random races (D06, D07) ------------------------------------------------------


async def measure_computers(lab: Lab) -> None:
    """Restart games against a computer of a random race, and create the same number of games."""
    made = await _beginnings(lab, *lab.melee(opponents=(VERY_EASY,)))
    lab.findings.note(computer_restarts, *made)


async def measure_random_race(lab: Lab) -> None:
    """Restart and create games in which the player's and the computer's races are random."""
    made = await _beginnings(lab, *lab.melee(opponents=(VERY_EASY,), race=common_pb2.Random))
    lab.findings.note(random_race, *made)


async def _beginnings(lab: Lab, setup: GameSetup, path: Path) -> tuple[list[Beginning], str]:
    """The beginnings of created and restarted games, and the game's refusal of a restart, or ""."""
    client = await lab.launch()
    beginnings: list[Beginning] = []
    for restarted in (False, True):
        for _ in lab.while_time(range(RESTARTS_TO_TELL), 15.0):
            if not restarted:
                await client.begin(setup, path)
            else:
                try:
                    await client.restart()
                except GameFault as fault:
                    return beginnings, fault.detail
            beginnings.append(await _beginning(client, restarted=restarted))
    return beginnings, ""


async def _beginning(client: Client, *, restarted: bool) -> Beginning:
    first = await client.observe(disable_fog=True)
    info = (await client.ask(requests.game_info())).game_info
    own = next(one for one in info.player_info if one.player_id == client.player_id)
    enemies = units_of(first, raw_pb2.Enemy)
    races = [race for unit in enemies if (race := WORKERS.get(unit.unit_type))]
    await client.step(_COMPUTER_LOOPS)
    later = await client.observe(disable_fog=True)
    counts = {k: v for k, v in _inventory(first).items() if not k.startswith("neutral")}
    return Beginning(
        restarted=restarted,
        own_race=common_pb2.Race.Name(own.race_actual or own.race_requested),
        enemy_race=races[0] if races else "unknown",
        units=", ".join(f"{count} {name}" for name, count in sorted(counts.items())),
        growth=len(units_of(later, raw_pb2.Enemy)) - len(enemies),
    )


# ---- many resets (D08) --------------------------------------------------------------------------


async def measure_many_resets(lab: Lab) -> None:
    """Reset a game in each way, up to `_RESETS` times if time permits."""
    setup, path = lab.mini()
    client = await lab.launch()
    await client.begin(setup, path)
    content = path.read_bytes()
    measured = []
    for share, kind in ((3, "restart"), (1, "create")):
        until_s = time.monotonic() + (lab.deadline.remaining_s() - 5.0) / share
        begun_s, done, failure = time.monotonic(), 0, ""
        before = _left_by(lab, client)
        while done < _RESETS and time.monotonic() < until_s and not failure:
            try:
                if kind == "restart":
                    await client.restart()
                else:  # every second time, send the map file, as if it were outside the map folder
                    await client.begin(setup, path, None, content if done % 2 else b"")
                await client.observe()
                await client.step(1)
                done += 1
            except GameFault as fault:
                failure = fault.detail
        after = _left_by(lab, client)
        measured.append(
            Resets(
                kind=kind,
                done=done,
                took_s=time.monotonic() - begun_s,
                first_bytes=before["bytes"],
                last_bytes=after["bytes"],
                threads=after["threads"] - before["threads"],
                files=after["files"] - before["files"],
                failure=failure,
            )
        )
        lab.findings.note(many_resets, measured)


def _left_by(lab: Lab, client: Client) -> dict[str, int]:
    """A game's memory and threads, and the number of files in folders to which games write."""
    places = [lab.folder, Path.home() / "Documents" / "StarCraft II"]
    process = psutil.Process(client.pid)
    return {
        "bytes": client.process.rss_bytes(),
        "threads": process.num_threads(),
        "files": sum(1 for place in places for file in place.rglob("*") if file.is_file()),
    }


# ---- limits (D25) -------------------------------------------------------------------------------


async def measure_limits(lab: Lab) -> None:
    """Step a game and restart it at each end, until it refuses a restart or the time is up.

    Loops are counted from the game's creation; a restart does not reset the count.
    """
    client = await lab.launch()
    await client.begin(*lab.mining())
    # Make the units invulnerable, so that the computer cannot end the game.
    await client.ask(debug_request(debug_pb2.DebugCommand(game_state=debug_pb2.god)))
    seen = await client.observe()
    steps = [await _step(client, loops) for loops in (1, 1_000, 10_000)]
    played = sum(step["loops"] for step in steps)
    hard_reset_at, ended = None, ""
    far_enough = LAST_LOOP if lab.patient else HARD_RESET_LOOP + 2 * _LONG_STEP
    while played < far_enough and not ended and lab.deadline.remaining_s() > 10.0:
        if client.status is Status.IN_GAME:
            reply = await client.step(_LONG_STEP)
            played = max(played + 1, reply.step.simulation_loop)
            continue
        reply = await client.ask(requests.restart_game())
        ended = refusal(reply)
        if reply.restart_game.need_hard_reset and hard_reset_at is None:
            hard_reset_at = played
    lab.findings.note(limits, steps, played, hard_reset_at, ended, seen.ByteSize())


async def _step(client: Client, loops: int) -> Step:
    began_s = time.monotonic()
    reply = await client.step(loops)
    return Step(loops=loops, took_s=time.monotonic() - began_s, refused=refusal(reply))
