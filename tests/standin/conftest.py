"""Stand-ins to which clients connect (`game`), and stand-ins without a socket (`session_for`)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.install import install
from tests.standin.sessions import (
    ALONE,
    PLACES,
    STARTED,
    GameProcess,
    Launch,
    OfflineSession,
    against,
    look,
    options,
)
from tests.support.duels import Pair, free_ports


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("games") / "Star Craft's II"  # needs quoting
    install(directory)
    return directory


@pytest.fixture(scope="session")
def executable(installation: Path) -> Path:
    return next(installation.glob("Versions/Base*/SC2_x64"))


@contextmanager
def launcher(installation: Path, executable: Path, temp_dir: Path) -> Iterator[Launch]:
    """A function that starts a game process with the given flags, and waits until it is ready.

    At the end of the `with` block, all processes that the function started are ended.
    """
    games: list[GameProcess] = []

    def start(*flags: str, data_dir: Path | None = installation) -> GameProcess:
        named = () if data_dir is None else ("-dataDir", str(data_dir))
        while True:
            (port,) = free_ports(1)
            game = spawn(port, *flags, *named)
            games.append(game)
            assert game.process.stdout is not None
            said = game.process.stdout.readline()
            if "already in use" in said:
                continue  # another program took the port first
            assert said == f"Listening on: 127.0.0.1:{port}\n"
            assert game.process.stdout.readline() == STARTED
            return game

    def spawn(port: int, *flags: str) -> GameProcess:
        arguments = f"-listen 127.0.0.1 -port {port} -displayMode 0 -verbose -dataVersion B89B"
        process = subprocess.Popen(
            [executable, *arguments.split(), *flags, "-tempDir", temp_dir],
            stdout=subprocess.PIPE,
            text=True,
        )
        return GameProcess(process, port)

    try:
        yield start
    finally:
        for game in games:
            game.end()


@pytest.fixture
def launch(installation: Path, executable: Path, tmp_path: Path) -> Iterator[Launch]:
    """Starts game processes for this test alone."""
    with launcher(installation, executable, tmp_path) as start:
        yield start


@pytest.fixture
def game(launch: Launch) -> GameProcess:
    return launch()


@pytest.fixture(scope="module")
def games_of_module(
    installation: Path, executable: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[GameProcess, GameProcess]]:
    with launcher(installation, executable, tmp_path_factory.mktemp("temp")) as start:
        yield start(), start()


@pytest.fixture
def shared_games(
    games_of_module: tuple[GameProcess, GameProcess],
) -> Iterator[tuple[GameProcess, GameProcess]]:
    """Two game processes that all tests of the file share, so no test may end or harm them."""
    yield games_of_module
    for game in games_of_module:
        game.let_go()


@pytest.fixture
def shared_game(shared_games: tuple[GameProcess, GameProcess]) -> GameProcess:
    """The first of the two shared processes, for tests that need only one."""
    return shared_games[0]


@pytest.fixture
def pair(shared_games: tuple[GameProcess, GameProcess]) -> Pair:
    """The two clients of one match, each connected to one of the shared game processes."""
    return Pair(*(game.connect() for game in shared_games))


@pytest.fixture
def offline(installation: Path) -> OfflineSession:
    return OfflineSession(installation)


@pytest.fixture
def session_for(installation: Path) -> Callable[[], OfflineSession]:
    return lambda: OfflineSession(installation)


@pytest.fixture
def changed(installation: Path) -> Callable[..., bytes]:
    """A function that returns the content of a bundled map with changes."""

    def content(name: str, **changes: Any) -> bytes:
        scenario = json.loads((installation / "Maps" / f"{name}.SC2Map").read_text())
        return json.dumps(scenario | changes).encode()

    return content


@pytest.fixture
def field(changed: Callable[..., bytes], offline: OfflineSession) -> OfflineSession:
    """A melee without an opponent, which cannot be lost, on flat ground and with fog."""
    offline.start(changed("Melee/Flat64", endless=True))
    return offline


@pytest.fixture
def melee(session_for: Callable[[], OfflineSession]) -> Callable[..., OfflineSession]:
    """A function that begins a melee against a computer or without an opponent."""

    def begin(
        difficulty: sc_pb.Difficulty.ValueType | None = sc_pb.VeryEasy,
        *,
        any_race: bool = False,
        **start: Any,
    ) -> OfflineSession:
        session = session_for()
        session.state.any_race = any_race
        players = ALONE if difficulty is None else against(difficulty)
        session.start("Melee/Simple64", player_setup=players, **start)
        return session

    return begin


@pytest.fixture
def town(melee: Any) -> Callable[..., Any]:
    """A function that begins a melee without an opponent, with money and structures at PLACES."""

    def begin(*kinds: int, money: int = 2000, **options: Any) -> Any:
        session = melee(None, **options)
        session.create(*((kind, 1, *place) for kind, place in zip(kinds, PLACES, strict=False)))
        session.state.game.world.minerals = session.state.game.economy.vespene = money
        session.step()
        return session

    return begin


@pytest.fixture
def arena(offline: OfflineSession) -> Callable[..., OfflineSession]:
    """A function that begins a game on an empty map of 64 × 64 cells with the given units."""

    def begin(
        *units: Any, camera: Any = (32.0, 32.0), interface: Any = None, **changes: Any
    ) -> OfflineSession:
        offline.arena(*units, interface=interface or options(), **changes)
        offline.act(look(camera))
        offline.step()
        return offline

    return begin
