"""Measures installed maps, odd map files, units from debug commands, and waves of enemies.

Rule: nothing is written into the installation; odd map files are written into the lab's folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypedDict

from s2clientprotocol import common_pb2, debug_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import Computer, GameSetup
from sc2pool.doctor.findings import Judgement, Section, differs, expect, ok, shortened
from sc2pool.doctor.lab import Client, Lab, NotPossible, kill, refusal, status_of, units_of
from sc2pool.doctor.machine import locate
from sc2pool.errors import GameFault
from sc2pool.game.program.installation import MAP_SUFFIX
from sc2pool.protocol import requests
from sc2pool.protocol.replies import Status

LATE_LOOPS: Final = 2
"""Units should appear within this many loops of an episode's beginning or a debug command."""

MAPS = Section("maps and their scripts", needed=False)


class Opened(TypedDict):
    """An attempt to play a map, which can be given to the game in several ways."""

    what: str
    outcome: str
    bad: bool
    """Whether the game failed without naming the map as the cause."""


class Appearance(TypedDict):
    """The loops at which an installed map first shows the units of each side."""

    map_name: str
    reset: str
    own: int | None
    """The loop for the player's own units; None if they do not appear."""
    enemy: int | None


@MAPS.check("D20 debug units", "how many loops until created or killed units are observed?")
def debug_units(created: int | None, killed: int | None) -> Judgement:
    told = [
        f"{name} after {loops} loop(s)" if loops is not None else f"{name}: not seen"
        for name, loops in (("created", created), ("killed", killed))
    ]
    late = created is None or killed is None or max(created, killed) > LATE_LOOPS
    return expect(not late, ", ".join(told), "tests that change a game must step it further")


@MAPS.check("D21 installed maps", "can they be loaded, and when do their units appear?")
def installed_maps(appearances: Sequence[Appearance], failures: dict[str, str]) -> Judgement:
    late: dict[str, int] = {}
    for one in appearances:
        loop = max(one["own"] or 0, one["enemy"] or 0)
        if loop > LATE_LOOPS:
            late[one["map_name"]] = max(loop, late.get(one["map_name"], 0))
    empty = sorted({one["map_name"] for one in appearances if one["own"] is None})
    names = {one["map_name"] for one in appearances}
    told = [f"{name} fails: {shortened(words)}" for name, words in failures.items()]
    if late:
        many = "" if len(late) <= 3 else ", …"
        listed = ", ".join(f"{name} at loop {loop}" for name, loop in list(late.items())[:3])
        told.append(f"units of {len(late)} maps appear late: {listed}{many}")
    if empty:
        told.append(f"no own units within the time: {', '.join(empty)}")
    told.append(f"{len(names)} loaded")
    advice = "a task waits for its units" if late and not failures else ""
    if failures:
        advice = (
            "a map that ends the game, or cannot be joined, may come from a newer editor, or its "
            "file may be damaged"
        )
    return expect(not late and not failures, "; ".join(told), advice)


@MAPS.check("D21 waves", "does a new wave come if the last two enemies die in the same loop?")
def waves(usual_loops: int | None, same_loop_loops: int | None, watched_loops: int) -> Judgement:
    """Judge when a map creates a new wave of enemies.

    `usual_loops` is the time to the new wave if the last two enemies die one by one, and
    `same_loop_loops` the time if they die in the same loop. A time is None if no wave comes within
    `watched_loops`.
    """
    if usual_loops is None:
        return differs(
            f"no wave comes within {watched_loops} loops, however they die",
            "the map's script fails",
        )
    if same_loop_loops is None:
        return differs(
            f"no: the map stalls for {watched_loops} loops and more; one by one they are replaced "
            f"after {usual_loops}",
            "an episode may have no enemies until its end: this is a fault of the map, and lowers "
            "a policy's score",
        )
    return ok(f"yes, after {same_loop_loops} loop(s); one by one after {usual_loops}")


@MAPS.check("D22 odd maps", "what does the game say of a map that it cannot read?")
def odd_maps(opened: Sequence[Opened]) -> Judgement:
    told = [f"{one['what']}: {shortened(one['outcome'])}" for one in opened]
    bad = [one["what"] for one in opened if one["bad"]]
    return expect(
        not bad,
        "; ".join(told),
        f"the game does not name the map as the cause ({', '.join(bad)}): after such a failure, "
        "look at the map's file",
    )


_MARINE: Final = 48
_FEW_LOOPS: Final = 30
"""How many loops to wait for units to appear."""
_MAPS_A_FOLDER: Final = 2
"""How many maps of a folder are loaded; of the mini-games' folder, all maps are loaded."""
_WAVES_MAP: Final = "DefeatZerglingsAndBanelings"
_WAVE_LOOPS: Final = 240
_LONG_PATH: Final = 261
"""A path of this length is one character longer than the game's documentation allows."""


# ---- units by debug commands (D20) --------------------------------------------------------------


async def measure_debug_units(lab: Lab) -> None:
    """Create a unit and kill it, and count the loops until each change is observed."""
    client = await lab.launch()
    await client.begin(*lab.mini())
    before = units_of(await client.observe(), raw_pb2.Self)
    if not before:
        raise NotPossible("this map has no own units")
    marine = debug_pb2.DebugCreateUnit(unit_type=_MARINE, owner=client.player_id, quantity=1)
    marine.pos.x, marine.pos.y = before[0].pos.x, before[0].pos.y
    await client.debug(debug_pb2.DebugCommand(create_unit=marine))
    known = {unit.tag for unit in before}
    created, new = await _loops_until(client, lambda tags: tags - known)
    killed = None
    if new:
        await client.debug(debug_pb2.DebugCommand(kill_unit=debug_pb2.DebugKillUnit(tag=new)))
        killed, _ = await _loops_until(client, lambda tags: not tags & new)
    lab.findings.note(debug_units, created, killed)


async def _loops_until(client: Client, is_so: Callable[[set[int]], Any]) -> tuple[int | None, Any]:
    """Step until `is_so(own tags)` is true; returns (loops, that value), or (None, None)."""
    for loops in range(1, _FEW_LOOPS):
        await client.step(1)
        found = is_so({unit.tag for unit in units_of(await client.observe(), raw_pb2.Self)})
        if found:
            return loops, found
    return None, None


# ---- installed maps (D21) -----------------------------------------------------------------------


async def measure_installed_maps(lab: Lab) -> None:
    """Create games on installed maps, restart them, and look for units in their first loops."""
    appearances: list[Appearance] = []
    failures: dict[str, str] = {}
    client: Client | None = None
    for path in lab.while_time(_chosen(lab), 15.0):
        client = client or await lab.launch()
        try:
            await client.begin(_setup_of(path), path)
            appearances.append(await _appearance(client, path.stem, "create"))
            await client.restart()
            appearances.append(await _appearance(client, path.stem, "restart"))
        except GameFault as fault:
            failures[path.stem] = fault.detail.partition("\n")[0].rstrip(":;")
            client.close()
            client = None
        lab.findings.note(installed_maps, appearances, failures)
    if not appearances and not failures:
        raise NotPossible("no map is installed")


def _chosen(lab: Lab) -> Iterator[Path]:
    """All maps in the mini-games' folder, and some maps of each other folder."""
    maps = lab.installation.maps
    found = sorted(maps.rglob(f"*{MAP_SUFFIX}")) if maps is not None else []
    taken: dict[Path, int] = {}
    for path in sorted(found, key=lambda path: path.parent.name != "mini_games"):
        taken[path.parent] = taken.get(path.parent, 0) + 1
        if path.parent.name == "mini_games" or taken[path.parent] <= _MAPS_A_FOLDER:
            yield path


def _setup_of(path: Path) -> GameSetup:
    """A setup of one player, who plays against a computer except on a mini-game's map."""
    alone = path.parent.name == "mini_games"
    computer = Computer(common_pb2.Terran, sc_pb.VeryEasy)
    return GameSetup(path.stem, opponents=() if alone else (computer,))


async def _appearance(client: Client, name: str, reset: str) -> Appearance:
    first: dict[int, int] = {}
    for _ in range(_FEW_LOOPS):
        seen = await client.observe(disable_fog=True)
        for alliance in (raw_pb2.Self, raw_pb2.Enemy):
            if units_of(seen, alliance):
                first.setdefault(alliance, seen.observation.game_loop)
        if len(first) == 2 or client.status is not Status.IN_GAME:
            break
        await client.step(1)
    return Appearance(
        map_name=name, reset=reset, own=first.get(raw_pb2.Self), enemy=first.get(raw_pb2.Enemy)
    )


async def measure_waves(lab: Lab) -> None:
    """Kill a wave's last two enemies one by one, and those of the next wave in the same loop."""
    path = locate(lab.installation, _WAVES_MAP)
    if path is None:
        raise NotPossible(f"the map {_WAVES_MAP} is not installed")
    client = await lab.launch()
    await client.begin(GameSetup(_WAVES_MAP), path)
    usual = await _next_wave(client, at_once=False)
    same_loop = None if usual is None else await _next_wave(client, at_once=True)
    lab.findings.note(waves, usual, same_loop, _WAVE_LOOPS)


async def _next_wave(client: Client, *, at_once: bool) -> int | None:
    """Kill all enemies, the last two in one loop if `at_once`; return the loops to a new wave."""
    enemies = units_of(await client.observe(disable_fog=True), raw_pb2.Enemy)
    *others, second, last = enemies
    for group in [others, [second, last]] if at_once else [others, [second], [last]]:
        if group:
            await client.debug(kill(group))
            await client.step(2)
    killed = {unit.tag for unit in enemies}
    for loops in range(0, _WAVE_LOOPS, 4):
        seen = units_of(await client.observe(disable_fog=True), raw_pb2.Enemy)
        if any(unit.tag not in killed for unit in seen):
            return loops
        await client.step(4)
    return None


# ---- odd maps (D22) -----------------------------------------------------------------------------


async def measure_odd_maps(lab: Lab) -> None:
    """Create games on files that are not maps, and on a valid map with unusual paths."""
    _, good = lab.mini()
    opened: list[Opened] = []
    client: Client | None = None
    for what, path, data in lab.while_time(_odd(lab, good), 30.0):
        client = client or await lab.launch()
        try:
            outcome, bad = await _open(lab, client, path, data)
        except GameFault as fault:
            outcome, bad = fault.detail.partition("\n")[0].rstrip(":;"), True
            client.close()
            client = None
        outcome = outcome.replace(f"{lab.folder}{os.sep}", "")
        opened.append(Opened(what=what, outcome=outcome, bad=bad))
        lab.findings.note(odd_maps, opened)


def _odd(lab: Lab, good: Path) -> Iterator[tuple[str, Path, bytes]]:
    """Yield each odd map's description and path, and the content to send instead, if any."""
    content = good.read_bytes()
    for name, data in (
        ("an empty file", b""),
        ("arbitrary bytes", bytes(range(256)) * 64),
        ("half a map", content[: len(content) // 2]),
    ):
        path = lab.folder / f"{name.replace(' ', '_')}{MAP_SUFFIX}"
        path.write_bytes(data)
        yield f"no map but {name}", path, b""
        if data:
            yield f"no map but {name}, sent", path, data
    yield "a file that is not there", lab.folder / f"missing{MAP_SUFFIX}", b""
    long = lab.folder
    while len(str(long)) < _LONG_PATH - len(MAP_SUFFIX) - 2:
        long /= "x" * min(100, _LONG_PATH - len(MAP_SUFFIX) - 2 - len(str(long)))
    folder = lab.folder / "Karte_für_ßtarcraft_地图"
    for name, path in (
        (f"a path of {_LONG_PATH} characters", long.with_name(long.name + MAP_SUFFIX)),
        ("a path that is not ASCII", folder / good.name),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        yield name, path, b""
    if lab.installation.maps is not None and good.is_relative_to(lab.installation.maps):
        relative = good.relative_to(lab.installation.maps)
        yield "a relative path", relative, b""
        yield "a relative path in lower case", Path(str(relative).lower()), b""


async def _open(lab: Lab, client: Client, path: Path, data: bytes) -> tuple[str, bool]:
    """Play this map; returns the outcome, and True if the game failed without naming a cause."""
    setup, _ = lab.mini()
    await client.leave()
    created = await client.ask(requests.create_game(setup, path, None, data), 60.0)
    if refusal(created):
        return refusal(created), False
    joined = await client.ask(requests.join_game(setup), 60.0)
    if refusal(joined):
        return f"created; join_game: {refusal(joined)}", False
    if client.status is Status.IN_GAME:
        return "it is played", False
    seen = await client.ask(requests.observation())
    player = joined.join_game.player_id
    return (
        f"created and joined as player {player} with the status {status_of(joined)}; then "
        f"{refusal(seen) or 'observed'!r}",
        True,
    )
