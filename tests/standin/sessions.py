"""Clients of a stand-in, over a websocket or without one, with requests that tests often need.

The websocket client uses no client library, because such libraries forbid some messages that tests
send: garbage, fragments, an Origin header, and a second connection.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import query_pb2 as query_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.process import session
from sc2standin.process.state import State
from tests.support.duels import RAW
from tests.support.fuzz.wire import TIMEOUT_S
from tests.support.fuzz.wire import Wire as BareWire

EMPTY_MAP = {
    "format": "sc2pool-standin-scenario/1",
    "name": "Arena",
    "size": [64, 64],
    "playable_area": [[8, 8], [56, 56]],
    "fog": False,
    "time_limit_loops": 5000,
    "units": [],
    "rules": [],
}
COLLECT = {
    "kind": "collect",
    "target": "Beacon_Terran",
    "count": 2,
    "reach": 2.0,
    "place": "random",
    "score": 1,
    "minerals": 0,
    "taken": "moves",
}
"""A rule of a map with two beacons: a beacon moves away when a unit reaches it."""
STARTED = "Startup Phase 3 complete. Ready for commands.\n"
Spawn = tuple[float, ...]
"""Units to create: the type, owner, x, y and, for several units, their number."""
ALONE = [sc_pb.PlayerSetup(type=sc_pb.Participant)]
Units = raw_pb.Unit | int | Iterable[raw_pb.Unit] | Iterable[int]
"""One or several units, or their tags."""
Launch = Callable[..., "GameProcess"]


class Client:
    """A client that can begin games and play them."""

    ask: Callable[..., sc_pb.Response]

    def start(
        self,
        played: str | bytes = "MoveToBeacon",
        seed: int | None = 1,
        *,
        interface: sc_pb.InterfaceOptions = RAW,
        race: common.Race.ValueType = common.Terran,
        **create: Any,
    ) -> None:
        """Begin a game on a map; see `create_request`."""
        created = self.ask(create_game=create_request(played, seed, **create))
        assert not created.create_game.HasField("error"), created
        joined = self.ask(join_game=sc_pb.RequestJoinGame(race=race, options=interface))
        assert (joined.join_game.player_id, joined.status) == (1, sc_pb.in_game), joined

    def spawn(self, *units: Spawn) -> None:
        """Create these units in the next loop."""
        self.debug(*(debug_pb.DebugCommand(create_unit=_spawn(*unit)) for unit in units))

    def kill(self, units: Units) -> None:
        """Kill these units in the next loop."""
        self.debug(debug_pb.DebugCommand(kill_unit=debug_pb.DebugKillUnit(tag=_tags(units))))

    def set_value(self, unit: raw_pb.Unit, name: str, value: float) -> None:
        """Set a unit's "Life", "Shields" or "Energy" in the next loop."""
        kind = debug_pb.DebugSetUnitValue.UnitValue.Value(name)
        change = debug_pb.DebugSetUnitValue(unit_value=kind, value=value, unit_tag=unit.tag)
        self.debug(debug_pb.DebugCommand(unit_value=change))

    def money(self) -> tuple[int, int]:
        """The player's minerals and gas."""
        player = self.observe().player_common
        return player.minerals, player.vespene

    def debug(self, *commands: debug_pb.DebugCommand) -> None:
        assert not self.ask(debug=sc_pb.RequestDebug(debug=commands)).error

    def toggle(self, *states: debug_pb.DebugGameState.ValueType) -> None:
        """Switch cheats on or off in the next loop."""
        self.debug(*(debug_pb.DebugCommand(game_state=one) for one in states))

    def end_game(self, result: str) -> None:
        """End the game in the next loop, by "Surrender" or "DeclareVictory"."""
        end = debug_pb.DebugEndGame(end_result=debug_pb.DebugEndGame.EndResult.Value(result))
        self.debug(debug_pb.DebugCommand(end_game=end))

    def game_info(self) -> sc_pb.ResponseGameInfo:
        return self.ask(game_info=sc_pb.RequestGameInfo()).game_info

    def observe(self) -> sc_pb.Observation:
        return self.observed().observation

    def observed(self, **fields: Any) -> sc_pb.ResponseObservation:
        """The whole reply to an observation request, with actions, errors, chat and results."""
        return self.ask(observation=sc_pb.RequestObservation(**fields)).observation

    def units(self, unit_type: int) -> list[raw_pb.Unit]:
        return [u for u in self.observe().raw_data.units if u.unit_type == unit_type]

    def one(self, unit_type: int) -> raw_pb.Unit:
        """The only unit of a type."""
        (unit,) = self.units(unit_type)
        return unit

    def step(self, count: int = 1) -> sc_pb.Response:
        return self.ask(step=sc_pb.RequestStep(count=count))

    def act(self, *actions: sc_pb.Action) -> list[int]:
        reply = self.ask(action=sc_pb.RequestAction(actions=actions))
        assert not reply.error, reply
        return list(reply.action.result)

    def order(self, units: Units, ability_id: int, *where: Any, **how: Any) -> int:
        """Send one command, as `command` makes it; returns its result."""
        (result,) = self.act(command(units, ability_id, *where, **how))
        return result

    def can_place(self, ability_id: int, *places: tuple[float, float]) -> list[int]:
        """The results of placement queries, one for each of these places."""
        asked = [
            query_pb.RequestQueryBuildingPlacement(
                ability_id=ability_id, target_pos=common.Point2D(x=x, y=y)
            )
            for x, y in places
        ]
        reply = self.ask(query=query_pb.RequestQuery(placements=asked))
        return [one.result for one in reply.query.placements]

    def way(self, start: tuple[float, float], end: tuple[float, float]) -> float:
        """The length of the path from one point to another point; 0 if there is no path."""
        query = query_pb.RequestQuery()
        path = query.pathing.add()
        path.start_pos.x, path.start_pos.y = start
        path.end_pos.x, path.end_pos.y = end
        return self.ask(query=query).query.pathing[0].distance

    def replay(self) -> bytes:
        """The replay of the episode so far."""
        reply = self.ask(save_replay=sc_pb.RequestSaveReplay())
        assert not reply.error, reply
        return reply.save_replay.data

    def start_replay(self, replay: bytes, **fields: Any) -> sc_pb.Response:
        """Ask to play a replay, seen by the first player unless the fields say otherwise."""
        named = {"observed_player_id": 1, "options": RAW, "replay_data": replay} | fields
        return self.ask(start_replay=sc_pb.RequestStartReplay(**named))

    def watch(self, replay: bytes, **fields: Any) -> None:
        """Start a replay, and return its information."""
        reply = self.start_replay(replay, **fields)
        assert reply.status == sc_pb.in_replay, reply
        assert not reply.start_replay.HasField("error"), reply


class Wire(Client, BareWire):
    """A client over a bare websocket connection."""


@dataclass
class GameProcess:
    """A game process, started by the installed script."""

    process: subprocess.Popen[str]
    port: int
    wires: list[Wire] = field(default_factory=list)

    def connect(self, **options: Any) -> Wire:
        wire = Wire(self.port, **options)
        self.wires.append(wire)
        return wire

    def let_go(self) -> None:
        """End all connections and the current game, so that the process is as if just started."""
        while self.wires:
            self.wires.pop().close()
        wire = Wire(self.port)
        wire.ask(leave_game=sc_pb.RequestLeaveGame())
        wire.close()

    def end(self) -> None:
        for wire in self.wires:
            wire.socket.close()
        self.process.kill()
        self.process.wait(TIMEOUT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


class OfflineSession(Client):
    """A client that calls the session without a socket, with the same requests and bytes."""

    def __init__(self, data_dir: Path) -> None:
        self.state = State(data_dir)

    def ask_bytes(self, **request: Any) -> bytes:
        return self.ask_frame(sc_pb.Request(**request).SerializeToString())

    def ask_frame(self, frame: bytes) -> bytes:
        decoded = session.decode(frame)
        session.wait_s(self.state, decoded)
        return session.answer(self.state, decoded, frame)

    def ask(self, **request: Any) -> sc_pb.Response:
        return sc_pb.Response.FromString(self.ask_bytes(**request))

    def arena(self, *units: Spawn, interface: sc_pb.InterfaceOptions = RAW, **changes: Any) -> None:
        """Begin a game on a map that is empty except for these units."""
        self.start(json.dumps(EMPTY_MAP | changes).encode(), interface=interface)
        self.create(*units)

    def create(self, *units: Spawn) -> None:
        """Create these units at once; a client would have to play a loop for that."""
        self.spawn(*units)
        self.state.playing().do_asked()

    def brought(self) -> int:
        """The minerals that workers have brought home."""
        return self.state.playing().economy.earnings.collected[0]

    def rich(self, minerals: int = 5000) -> None:
        """Set the client's minerals."""
        self.state.playing().world.minerals = minerals

    def look(self, **fields: Any) -> bytes:
        """Returns the updated observation; a newly made observation must have the same bytes."""
        request = sc_pb.RequestObservation(**fields)
        first = self.ask_bytes(observation=request)  # only the first reply has deaths and errors
        assert first == sc_pb.Response.FromString(first).SerializeToString(deterministic=True)
        seen = self.ask_bytes(observation=request)
        kept, self.state.view = self.state.view, None
        assert seen == self.ask_bytes(observation=request)
        self.state.view = kept
        return seen


def options(**changes: Any) -> sc_pb.InterfaceOptions:
    """An interface with 84 × 84 pixels (24 cells wide), and a minimap of 64 × 64 pixels."""
    wanted = sc_pb.InterfaceOptions(raw=True, score=True)
    layers = wanted.feature_layer
    layers.width = 24
    layers.resolution.x = layers.resolution.y = 84
    layers.minimap_resolution.x = layers.minimap_resolution.y = 64
    layers.MergeFrom(sc_pb.SpatialCameraSetup(**changes))
    return wanted


def against(difficulty: sc_pb.Difficulty.ValueType) -> list[sc_pb.PlayerSetup]:
    """The players of a game against a computer."""
    computer = sc_pb.PlayerSetup(type=sc_pb.Computer, race=common.Zerg, difficulty=difficulty)
    return [*ALONE, computer]


def create_request(
    played: str | bytes, seed: int | None = 1, **fields: Any
) -> sc_pb.RequestCreateGame:
    """A request for a bundled map (a mini-game's if no folder is named) or a map's content."""
    if isinstance(played, bytes):
        local_map = sc_pb.LocalMap(map_data=played)
    else:
        path = played if "/" in played else f"mini_games/{played}"
        local_map = sc_pb.LocalMap(map_path=f"{path}.SC2Map")
    named = {"local_map": local_map, "player_setup": ALONE, "random_seed": seed}
    return sc_pb.RequestCreateGame(**named | fields)


def _spawn(
    unit_type: int, owner: int, x: float, y: float, quantity: int = 1
) -> debug_pb.DebugCreateUnit:
    return debug_pb.DebugCreateUnit(
        unit_type=unit_type, owner=owner, pos=common.Point2D(x=x, y=y), quantity=quantity
    )


def command(
    units: Units,
    ability_id: int,
    point: tuple[float, float] | None = None,
    *,
    target: raw_pb.Unit | int = 0,
    queued: bool = False,
) -> sc_pb.Action:
    """An action with one unit command."""
    action = sc_pb.Action()
    raw = action.action_raw.unit_command
    raw.ability_id = ability_id
    raw.unit_tags.extend(_tags(units))
    raw.queue_command = queued
    if point is not None:
        raw.target_world_space_pos.x, raw.target_world_space_pos.y = point
    if target:
        (raw.target_unit_tag,) = _tags(target)
    return action


def _tags(units: Units) -> list[int]:
    several = units if isinstance(units, Iterable) else [units]
    return [unit if isinstance(unit, int) else unit.tag for unit in several]


def place_of(unit: raw_pb.Unit) -> tuple[float, float]:
    return unit.pos.x, unit.pos.y


def apart(one: raw_pb.Unit, other: raw_pb.Unit) -> float:
    """The distance of two units."""
    return math.dist(place_of(one), place_of(other))


def results(observed: sc_pb.ResponseObservation) -> dict[int, int]:
    """Each player's result, by the player's id; empty before the end."""
    return {one.player_id: one.result for one in observed.player_result}


def step_until(
    session: Any, condition: Callable[[], object], limit: int = 3000, each: int = 8
) -> int:
    """Step, `each` loops at a time, until the condition holds; returns the number of loops."""
    for loops in range(0, limit, each):
        if condition():
            return loops
        session.step(each)
    raise AssertionError(f"not within {limit} loops")


def abilities(session: Any, unit: raw_pb.Unit, *, free: bool = False) -> set[int]:
    """The abilities that a unit can use now; with `free`, even those that it cannot pay for."""
    asked = [query_pb.RequestQueryAvailableAbilities(unit_tag=unit.tag)]
    query = query_pb.RequestQuery(abilities=asked, ignore_resource_requirements=free)
    (reply,) = session.ask(query=query).query.abilities
    return {one.ability_id for one in reply.abilities}


PLACES = [(24.5, 45.5), (30.5, 45.5), (24.5, 50.5), (30.5, 50.5), (30.5, 41.5)]
"""Free places beside a natural expansion; each has room for an add-on."""


def saved(session: Any) -> tuple[int, int]:
    """The player's minerals, less those that workers brought home, and the player's gas."""
    minerals, vespene = session.money()
    return minerals - session.brought(), vespene


def cheat(session: Any, *states: debug_pb.DebugGameState.ValueType) -> None:
    """Switch cheats on or off, and play a loop."""
    session.toggle(*states)
    session.step()


def look(camera: tuple[float, float]) -> sc_pb.Action:
    """Move the camera to a place."""
    action = sc_pb.Action()
    point = action.action_raw.camera_move.center_world_space
    point.x, point.y = camera
    return action
