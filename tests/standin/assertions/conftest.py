"""Games for the assertions of other clients' tests: one client against a computer, or two clients.

The numbers in the tests' names refer to `sc2standin/README.md`, where P stands for pysc2's tests,
and S for tests of Blizzard's C++ API; those tests ran against the real game. Each test here is
written from a description of an assertion. A test plays the stand-in, or the installation that
`--game` names, on a map that the real game and the stand-in have.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.deadline import Deadline
from sc2pool.game.program.installation import Installation, find_installation, find_map
from sc2pool.game.program.lease import PortLease
from sc2pool.game.program.process import GameProcess
from sc2pool.units import unit_id
from tests.standin.sessions import Client, Spawn, Wire, against
from tests.support.duels import Pair
from tests.support.fuzz.wire import HandshakeRefused

FIELD = "Flat64"
"""A flat map of Blizzard's Melee pack, for two players."""
LAUNCH_S, REPLY_S = 180.0, 120.0
"""Time limits in seconds for a game's launch, and for its reply to create_game or join_game."""
_POLL_S = 0.02
Begin = Callable[..., Wire]


@dataclass
class Running:
    """A game process, and the clients' connections to it."""

    installation: Installation
    process: GameProcess
    lease: PortLease
    wires: list[Wire] = field(default_factory=list)

    def connect(self) -> Wire:
        """Wait until the game accepts a client."""
        deadline = Deadline.after(LAUNCH_S)
        while True:
            try:
                wire = Wire(self.lease.port)
            except (OSError, HandshakeRefused):
                assert self.process.exit_code() is None, self.process.log_tail()
                assert not deadline.expired(), self.process.log_tail()
                select.select([self.process.exited_fd], [], [], _POLL_S)
            else:
                wire.socket.settimeout(REPLY_S)
                self.wires.append(wire)
                return wire

    def let_go(self) -> None:
        """Leave the current game, and end all connections."""
        while self.wires:
            self.wires.pop().close()
        wire = self.connect()
        wire.ask(leave_game=sc_pb.RequestLeaveGame())
        wire.close()
        self.wires.clear()


@contextmanager
def running(installation: Installation, folder: Path) -> Iterator[Running]:
    """A game process that is ended at the end of the `with` block."""
    lease = PortLease.acquire()
    try:
        with closing(GameProcess.spawn(installation, lease, folder)) as process:
            game = Running(installation, process, lease)
            game.connect().close()
            game.wires.clear()
            yield game
            for wire in game.wires:
                wire.socket.close()
    finally:
        lease.release()


@pytest.fixture(scope="module")
def first_game(
    game_installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    with running(game_installation, tmp_path_factory.mktemp("first")) as game:
        yield game


@pytest.fixture(scope="module")
def second_game(
    game_installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    with running(game_installation, tmp_path_factory.mktemp("second")) as game:
        yield game


@pytest.fixture
def own_game(
    game_installation: Installation,
    standin_dir: Path,
    tempered: Callable[[str], Path],
    tmp_path: Path,
) -> Iterator[Running]:
    """A game process for this test alone, which the test may end.

    The stand-in has its default tempers; with `recorded` tempers, a crashed process would not end.
    """
    is_standin = game_installation == find_installation(standin_dir)
    installation = find_installation(tempered("default")) if is_standin else game_installation
    with running(installation, tmp_path) as game:
        yield game


@pytest.fixture
def local_map(game_installation: Installation) -> Callable[[str], sc_pb.LocalMap]:
    """A function that returns the installation's map of a given name."""
    return lambda name: sc_pb.LocalMap(map_path=str(find_map(game_installation, name)))


@pytest.fixture
def wire(first_game: Running) -> Iterator[Wire]:
    """A connection to a game in which no episode has begun."""
    yield first_game.connect()
    first_game.let_go()


@pytest.fixture
def begin(wire: Wire, local_map: Callable[[str], sc_pb.LocalMap]) -> Begin:
    """Begin a game of one client, by default on the map FIELD against a computer."""

    def begin_game(map_name: str = FIELD, **fields: Any) -> Wire:
        setup = {"player_setup": against(sc_pb.VeryEasy)} if map_name == FIELD else {}
        wire.start("", **{"local_map": local_map(map_name)} | setup | fields)
        return wire

    return begin_game


@pytest.fixture
def pair(first_game: Running, second_game: Running) -> Iterator[Pair]:
    """Two clients of one game, which is not yet created."""
    games = first_game, second_game
    yield Pair(*(game.connect() for game in games))
    for game in games:
        game.let_go()


@pytest.fixture
def begin_duel(
    pair: Pair, local_map: Callable[[str], sc_pb.LocalMap]
) -> Callable[..., tuple[Wire, Wire]]:
    """Begin a game of two clients on the map FIELD."""

    def begin(**fields: Any) -> tuple[Wire, Wire]:
        pair.begin(local_map(FIELD), **fields)
        return pair.wires

    return begin


def units(*named: tuple[Any, ...]) -> list[Spawn]:
    """Units to create; each entry has a name, owner, x, y and, for several units, their number."""
    return [(unit_id(one[0]), *one[1:]) for one in named]


def put(client: Client, *named: tuple[Any, ...], loops: int = 2) -> None:
    """Create these units, and play some loops; see `units`."""
    client.spawn(*units(*named))
    client.step(loops)


def of(client: Client, name: str, owner: int = 1) -> list[Any]:
    """The units of this type and owner in the client's next observation."""
    return [unit for unit in client.units(unit_id(name)) if unit.owner == owner]
