"""Starts two stand-ins, and connects two clients that play one game."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from typing import Any

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import sc2api_pb2 as sc_pb

RAW = sc_pb.InterfaceOptions(raw=True, score=True)
TWO = [sc_pb.PlayerSetup(type=sc_pb.Participant)] * 2
DUEL = sc_pb.LocalMap(map_path="mini_games/MarineDuel.SC2Map")
MOVE, ATTACK = 16, 23
ARENA = {
    "format": "sc2pool-standin-scenario/1",
    "name": "Arena",
    "size": [64, 64],
    "playable_area": [[0, 0], [64, 64]],
    "players": 2,
    "fog": True,
    "time_limit_loops": 5000,
    "units": [
        {
            "type": "Marine",
            "owner": owner,
            "count": 2,
            "place": {"kind": "points", "choices": [[[x, 32], [x, 40]]]},
        }
        for owner, x in ((1, 10), (2, 54))
    ],
    "rules": [],
}
"""Two marines on each side, too far away from each other to be seen."""


def local_map(**changes: Any) -> sc_pb.LocalMap:
    """ARENA with changes, as the map of a create_game request."""
    return sc_pb.LocalMap(map_data=json.dumps(ARENA | changes).encode())


def free_ports(count: int) -> list[int]:
    """Ports on which no process listens now."""
    with ExitStack() as probes:
        sockets = [probes.enter_context(socket.socket()) for _ in range(count)]
        for probe in sockets:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in sockets]


def join_request(ports: list[int], **fields: Any) -> sc_pb.RequestJoinGame:
    """A join_game request with four ports: two of the host, and two of the guest."""
    game, base, client_game, client_base = ports
    named: dict[str, Any] = {"race": common.Terran, "options": RAW}
    return sc_pb.RequestJoinGame(
        server_ports=sc_pb.PortSet(game_port=game, base_port=base),
        client_ports=[sc_pb.PortSet(game_port=client_game, base_port=client_base)],
        **named | fields,
    )


class Pair:
    """The connections of two clients of one game: the host and the guest."""

    def __init__(self, host: Any, guest: Any) -> None:
        self.wires = host, guest
        self.ports = free_ports(4)

    def begin(
        self,
        played: sc_pb.LocalMap = DUEL,
        seed: int = 1,
        interface: sc_pb.InterfaceOptions = RAW,
        **create: Any,
    ) -> None:
        """Create a game, and join it with both clients."""
        request = sc_pb.RequestCreateGame(
            local_map=played, player_setup=TWO, random_seed=seed, **create
        )
        created = self.wires[0].ask(create_game=request)
        assert created.status == sc_pb.init_game, created
        joined = self.ask(join_game=join_request(self.ports, options=interface))
        assert [reply.join_game.player_id for reply in joined] == [1, 2], joined
        assert all(reply.status == sc_pb.in_game for reply in joined)

    def ask(self, **request: Any) -> list[sc_pb.Response]:
        """Send the same request from both clients, and wait for both replies."""
        for wire in self.wires:
            wire.send(**request)
        return [wire.reply() for wire in self.wires]

    def observe(self) -> list[sc_pb.ResponseObservation]:
        """The current observations of both clients."""
        return [r.observation for r in self.ask(observation=sc_pb.RequestObservation())]

    def step(self, count: int) -> list[sc_pb.Response]:
        """Step both clients."""
        return self.ask(step=sc_pb.RequestStep(count=count))


def units_of(observed: sc_pb.ResponseObservation, owner: int) -> list[Any]:
    """The units of a player that an observation shows."""
    return [unit for unit in observed.observation.raw_data.units if unit.owner == owner]
