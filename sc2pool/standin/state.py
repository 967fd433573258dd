"""What one game process remembers between two requests.

The handlers in `requests` change it; `session` enforces its status machine; `server` carries out
the `Fate` a handler has decided on. Handlers themselves have no effect outside this object.
"""

from __future__ import annotations

import secrets
import zlib
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import numpy as np
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.protocol.status import Status
from sc2pool.standin.clock import RealtimeClock
from sc2pool.standin.game import Game
from sc2pool.standin.prepared import PreparedObservation
from sc2pool.standin.scenario import Scenario
from sc2pool.standin.world import ME

PLAYER_ID = ME
"""The one participant; the API counts players from 1."""


class RequestRefused(Exception):
    """A protocol error: the reply carries this text and nothing else."""


class Fate(Enum):
    """How a request ends the process, or stops it from answering."""

    EXIT = "exit"
    CRASH = "crash"
    HANG = "hang"


@dataclass(frozen=True)
class Setup:
    """What create_game fixed for all episodes until the next create_game."""

    scenario: Scenario
    map_path: str
    seed: int
    fog: bool
    realtime: bool
    computer: sc_pb.PlayerSetup | None


@dataclass
class Provenance:
    """What a stamped observation tells of its origin; kept up on maps that ask for it only."""

    instance: int = field(default_factory=lambda: secrets.randbits(48))
    """Drawn once per process, for process ids are used again."""
    episode: int = 0
    """Episodes begun in this process, however they were begun."""
    actions: int = 0
    """Action requests carried out in this episode."""
    checksum: int = 0
    """CRC-32 of the newest of them, 0 before the first."""

    def begin_episode(self) -> None:
        """A new episode, nothing done in it yet."""
        self.episode += 1
        self.actions = self.checksum = 0

    def note_action(self, content: bytes) -> None:
        """An action request was carried out."""
        self.actions += 1
        self.checksum = zlib.crc32(content)

    def text(self, loop: int) -> str:
        """The stamp itself."""
        return f"stamp {self.instance} {self.episode} {loop} {self.actions} {self.checksum}"


@dataclass
class State:
    """The process as its client sees it."""

    data_dir: Path
    status: Status = Status.LAUNCHED
    setup: Setup | None = None
    episodes: int = 0
    """Episodes begun since create_game."""
    game: Game | None = None
    clock: RealtimeClock | None = None
    """Set while a real-time episode runs."""
    options: sc_pb.InterfaceOptions = field(default_factory=sc_pb.InterfaceOptions)
    race: common.Race.ValueType = common.Terran
    player_name: str = ""
    action_errors: list[sc_pb.ActionError] = field(default_factory=list)
    """Errors of unit commands since the last observation."""
    provenance: Provenance = field(default_factory=Provenance)
    canned: bool = False
    """Whether the episode is one of a canned map."""
    prepared: PreparedObservation | None = None
    """The episode's observation on a canned map, once it was asked for."""
    fate: Fate | None = None
    fate_delay_s: float = 0.0

    def playing(self) -> Game:
        """The current episode; only requests that are legal without one may not call it."""
        if self.game is None:
            raise RequestRefused("Not in a game")
        return self.game

    def created(self) -> Setup:
        """What create_game fixed."""
        if self.setup is None:
            raise RequestRefused("No game has been created")
        return self.setup

    def begin_episode(self, loops_before: int) -> None:
        """Start the next episode of the created game, with a seed that follows from its own."""
        setup = self.created()
        seed = np.random.SeedSequence(setup.seed, spawn_key=(self.episodes,))
        self.game = Game(setup.scenario, seed, fog=setup.fog, loops_before=loops_before)
        self.episodes += 1
        self.provenance.begin_episode()
        self.clock = RealtimeClock() if setup.realtime else None
        self.canned = setup.scenario.canned
        self.prepared = None
        self.action_errors.clear()
        self.status = Status.IN_GAME

    def advance(self, loops: int) -> None:
        """Play on, and notice the end."""
        game = self.playing()
        game.advance(loops)
        if game.result is not None:
            self.status = Status.ENDED
            self.clock = None

    def step(self, loops: int) -> None:
        """Play on as a step asks for it, at the price the map names."""
        self.advance(loops)
        cost = self.created().scenario.step_cost
        if cost is not None:
            cost.pay()

    def catch_up(self) -> None:
        """In real time: play the loops that are due."""
        if self.clock is not None and self.game is not None:
            self.advance(self.clock.loops_due() - self.game.world.loop)
