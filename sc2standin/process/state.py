"""The state of one game process between two requests.

The handlers in `requests` change a `State`, after `session` has checked the status table. Handlers
have no effect outside the `State`. If a handler sets a `Fate`, `server` carries the fate out.

In real time `RealtimeClock` computes from the monotonic clock how many game loops are due. The
simulation itself reads no clock.
"""

from __future__ import annotations

import secrets
import time
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.game_time import LOOPS_PER_S
from sc2standin.layers.window import SCREENS, ClickPart, camera_action
from sc2standin.map_reader.scenario import Scenario
from sc2standin.recording import Playback, Recording
from sc2standin.simulation.console import Controls
from sc2standin.simulation.game import Game, Quirks
from sc2standin.simulation.units import ENEMY, ME
from sc2standin.status import Status
from sc2standin.tempers import Temper
from sc2standin.version import BASE_BUILD
from sc2standin.view.crop import Crop
from sc2standin.view.observation import View
from sc2standin.view.prepared import action_done

if TYPE_CHECKING:
    from sc2standin.meeting import Invitation, Meeting

KEPT = 10_000
"""The most errors, actions or messages that are kept; some clients never ask for them."""


class SharedGame(Protocol):
    """A game of two clients; see `sc2standin.match.Match`."""

    is_stepping: bool

    def wait_s(self, request: sc_pb.Request | None, loops: int) -> float: ...
    def end_step(self) -> None: ...
    def play_to(self, loop: int) -> None: ...
    def tell(self, request: bytes) -> None: ...
    def leave(self) -> None: ...


class RequestRefused(Exception):
    """A protocol error: apart from id and status, the reply has only this error's text."""


class Fate(Enum):
    """A way in which the process ends or hangs after a request."""

    EXIT = "exit"
    CRASH = "crash"
    SEGFAULT = "segmentation fault"
    HANG = "hang"


@dataclass(frozen=True)
class Setup:
    """The settings of create_game, valid until the next create_game."""

    scenario: Scenario
    map_path: str
    recording: Recording
    """The recording of the current episode."""
    seed: int
    fog: bool
    realtime: bool
    clients: int
    """The number of clients that play; 0 if a client watches two computers."""
    computer: sc_pb.PlayerSetup | None
    """The settings of player 2, if it is a computer."""
    first_computer: sc_pb.PlayerSetup | None = None
    """The settings of player 1, if it is a computer."""

    @property
    def has_opponent(self) -> bool:
        """True if the game has a player 2."""
        return self.clients > 1 or self.computer is not None


@dataclass
class Provenance:
    """The content of the stamp in each observation, on maps whose `stamp` is true."""

    instance: int = field(default_factory=lambda: secrets.randbits(48))
    """A random number that identifies this process, because process ids may be reused."""
    episode: int = 0
    """The number of episodes begun in this process, by join_game or restart_game."""
    actions: int = 0
    """The number of action requests carried out in this episode."""
    checksum: int = 0
    """The CRC-32 of the last action request's bytes; 0 before the first one."""

    def begin_episode(self) -> None:
        """Count a new episode, and begin to count its actions."""
        self.episode += 1
        self.actions = self.checksum = 0

    def note_action(self, content: bytes) -> None:
        """Count an action request that was carried out."""
        self.actions += 1
        self.checksum = zlib.crc32(content)

    def text(self, loop: int) -> str:
        """The stamp's text."""
        return f"stamp {self.instance} {self.episode} {loop} {self.actions} {self.checksum}"


class Done(NamedTuple):
    """An action that was carried out, and the loop at which observations report it."""

    action: sc_pb.Action
    loop: int

    def shown(self, options: sc_pb.InterfaceOptions) -> bytes:
        """The action in bytes, as an interface shows it; empty if the interface cannot show it."""
        hidden: list[ClickPart | Literal["action_raw"]] = [
            part
            for setup, part in SCREENS
            if self.action.HasField(part) and not options.HasField(setup)
        ]
        if self.action.HasField("action_raw") and not options.raw:
            hidden.append("action_raw")
        action = self.action
        if hidden:
            action = sc_pb.Action()
            action.CopyFrom(self.action)
            for part in hidden:
                action.ClearField(part)
            if not action.ListFields():
                return b""
        return action_done(action.SerializeToString(deterministic=True), self.loop)


CENTRED_AT = 2
"""The loop at which a melee reports the camera move with which the real game begins."""


@dataclass
class Hooks:
    """The functions of the server that a `State` calls."""

    meet: Callable[[Invitation], Meeting] | None = None
    """Begins the meeting with the other client's process."""
    wake: Callable[[], None] = lambda: None
    """Called when a waiting request may be answered."""


@dataclass
class State:
    """What a process knows of its client; `other` has what it knows of the game's second client."""

    data_dir: Path
    temp_dir: Path | None = None
    """The process's folder for temporary files, which may have maps."""
    any_race: bool = False
    """True if Zerg and Protoss may join a melee, where they get a Terran town."""
    temper: Temper = field(default_factory=Temper)
    """The chosen tempers: reported behaviours of the real game that are hard on clients."""
    hooks: Hooks = field(default_factory=Hooks)
    status: Status = Status.LAUNCHED
    player_id: int = ME
    """The client's player, counted from 1."""
    other: State | None = None
    """The state of the game's other client: only the fields needed to carry out its requests.

    The complete state of the other client is in that client's own process.
    """
    meeting: Meeting | None = None
    """The meeting with the other process, while join_game waits for it."""
    not_joined: str = ""
    """The reason for refusing the last join_game; the errors of later requests repeat it."""
    match: SharedGame | None = None
    """The match that is being played, in a game of two clients."""
    setup: Setup | None = None
    map_is_unreadable: bool = False
    """True if a game was created with a file that is not a map."""
    episodes: int = 0
    """The number of episodes begun since create_game."""
    game: Game | None = None
    view: View | None = None
    """The client's view of the episode, after its first observation."""
    crop: Crop | None = None
    """The conversion of coordinates, if the interface asks for it."""
    clock: RealtimeClock | None = None
    """The clock of a real-time episode; None if no such episode runs."""
    options: sc_pb.InterfaceOptions = field(default_factory=sc_pb.InterfaceOptions)
    player_options: sc_pb.InterfaceOptions = field(default_factory=sc_pb.InterfaceOptions)
    """The interface of the acting player; differs from `options` while a replay is watched."""
    race: common.Race.ValueType = common.Terran
    player_name: str = ""
    action_errors: deque[sc_pb.ActionError] = field(default_factory=partial(deque, maxlen=KEPT))
    """Errors of unit commands since the last observation."""
    actions_done: deque[Done] = field(default_factory=partial(deque, maxlen=KEPT))
    """Actions carried out since the last observation."""
    chat: deque[sc_pb.ChatReceived] = field(default_factory=partial(deque, maxlen=KEPT))
    """Chat messages since the last observation."""
    results_sent: bool = False
    """True if an observation had the results of this episode."""
    is_silent: bool = False
    """True if a temper has stopped the game, so that observations of later loops get no reply."""
    is_untold: bool = False
    """True if the game is over, and a temper hides this from the clients."""
    playback: Playback | None = None
    """The playback of the replay that is watched; None without one."""
    provenance: Provenance = field(default_factory=Provenance)
    canned: bool = False
    """True if the episode is on a canned map."""
    prepared: bytes | None = None
    """A canned map's observation in bytes, without its loop; None before the first observation."""
    fate: Fate | None = None
    fate_delay_s: float = 0.0

    def players(self) -> list[State]:
        """The clients of the game, in the order of their ids."""
        if self.other is None:
            return [self]
        return [self, self.other] if self.player_id < self.other.player_id else [self.other, self]

    def playing(self) -> Game:
        """The current episode. Raises RequestRefused without an episode."""
        if self.game is None:
            raise RequestRefused("Not in a game")
        return self.game

    @property
    def controls(self) -> Controls:
        """The player's console; for an observer, the console of the viewed player."""
        game = self.playing()
        return game.controls.get(self.player_id, game.controls[game.viewer])

    def created(self) -> Setup:
        """The settings of create_game. Raises RequestRefused if no game was created."""
        if self.setup is None:
            raise RequestRefused("No game has been created")
        return self.setup

    def seen(self) -> View:
        """The client's view of the current episode. Raises RequestRefused without an episode."""
        if self.view is None:
            self.view = View(self.playing(), self.options)
        return self.view

    def crop_for(self, options: sc_pb.InterfaceOptions) -> Crop | None:
        """The conversion of coordinates, if an interface asks for it."""
        wanted = options.raw and options.raw_crop_to_playable_area
        return Crop(self.playing().terrain) if wanted else None

    def ask(self, deed: Callable[[], None]) -> None:
        """Call `deed`, a change by the player, in a later loop."""
        self.playing().ask(deed, self.player_id)

    def begin_episode(self, loops_before: int, quirks: Quirks | None = None) -> None:
        """Start the game's next episode, with a seed derived from the game's seed.

        Args:
            loops_before: the loops played between create_game and this episode.
            quirks: the odd rules of a recorded episode; if None, this process's tempers set them.
        """
        setup = self.created()
        if quirks is None:
            quirks = self.temper.quirks(self.game)
        if setup.scenario.made_with_build > BASE_BUILD:
            self.fate, self.fate_delay_s = Fate.SEGFAULT, 0.0
        seed = np.random.SeedSequence(setup.seed, spawn_key=(self.episodes,))
        computers = {
            player: one.difficulty or sc_pb.VeryEasy
            for player, one in ((ME, setup.first_computer), (ENEMY, setup.computer))
            if one is not None
        }
        self.game = Game(
            setup.scenario,
            seed,
            fog=setup.fog,
            loops_before=loops_before,
            clients=frozenset(one.player_id for one in self.players() if setup.clients),
            computers=computers,
            viewer=self.player_id if setup.clients else ME,
            quirks=quirks,
        )
        self.view = self.playback = None
        for player in self.players():
            player.game = self.game
            player.crop = player.crop_for(player.options)
        setup.recording.begin(self.episodes, loops_before, quirks)
        self.episodes += 1
        self.provenance.begin_episode()
        self.clock = RealtimeClock() if setup.realtime else None
        self.canned = setup.scenario.canned
        self.prepared = None
        for told in (self.action_errors, self.actions_done, self.chat):
            told.clear()
        if setup.scenario.camera_on_workers:
            camera = self.controls.now.camera
            centred = camera_action(camera, self.options, self.game.terrain)
            self.actions_done.append(Done(centred, CENTRED_AT))
        self.results_sent = self.is_silent = self.is_untold = False
        self.status = Status.IN_GAME

    def advance(self, loops: int) -> None:
        """Play this many loops, or until the end of the game.

        A loop during which a signal sets the fate is the last loop that is played.
        """
        game = self.playing()
        advance = game.advance if self.playback is None else partial(self.playback.advance, game)
        if self.temper.slows:
            self.temper.slow_down(partial(advance, loops), self._must_stop)
        else:
            advance(loops, self._must_stop)
        if game.result is not None:
            self._end(game)

    def _end(self, game: Game) -> None:
        """End the episode; in real time, tempers may hide the end from the client."""
        in_real_time = self.clock is not None and self.playback is None
        if in_real_time and self.match is not None and self.temper.untold_end is not None:
            game.clear_loser()
            self.is_untold = self.results_sent = True
            self.is_silent = self.temper.untold_end != ""
            if not self.is_silent:
                game.play_on()
            return
        self.clock = None
        self.is_silent = in_real_time and self.temper.silent_end
        if not self.is_silent:
            self.tell_end(in_real_time=in_real_time)

    def tell_end(self, *, in_real_time: bool = True) -> None:
        """Set the status that shows that the game is over."""
        if in_real_time and self.temper.refuses_after_end:
            self.leave_game()
        else:
            self.status = Status.ENDED

    def note(self, request: bytes) -> None:
        """Record a serialized request that was carried out, and send it to the other player."""
        if self.setup is not None and self.game is not None:
            self.setup.recording.note(self.game.world.loop, self.player_id, request)
        if self.match is not None:
            self.match.tell(request)

    def leave_game(self) -> None:
        """Return to the main menu."""
        self.forget_game()
        self.setup = None
        self.status = Status.LAUNCHED

    def forget_game(self) -> None:
        """Leave the game, if there is one."""
        if self.match is not None:
            self.match.leave()
        self.game = self.clock = self.playback = self.other = self.match = None
        self.is_silent = self.is_untold = self.map_is_unreadable = False
        self.not_joined = ""
        self.player_id = ME

    def was_done(self, action: sc_pb.Action) -> None:
        """Keep an action that is carried out now, for the next observation.

        An action is reported for the loop after the client's request, even if actions are delayed.
        """
        game = self.playing()
        self.actions_done.append(Done(action, game.world.loop + 1 - game.delay_loops))

    def _must_stop(self) -> bool:
        return self.fate is not None

    def pay_for_step(self) -> None:
        """Spend the time that a step costs on this map."""
        cost = self.created().scenario.step_cost
        if cost is not None:
            cost.pay()

    def catch_up(self) -> None:
        """Play the loops that are due, in real time."""
        if self.clock is None or self.game is None:
            return
        if self.match is not None:
            self.match.play_to(self.clock.loops_due())
        else:
            self.advance(self.clock.loops_due() - self.game.world.loop)


class RealtimeClock:
    """The clock of a real-time episode: computes how many loops are due."""

    def __init__(self) -> None:
        self._started_s = time.monotonic()

    def loops_due(self) -> int:
        """The number of whole loops that are due by now."""
        return int((time.monotonic() - self._started_s) * LOOPS_PER_S)

    def skip(self, seconds: float) -> None:
        """Exclude this many seconds from the game's time."""
        self._started_s += seconds

    def wait_s(self, loop: int) -> float:
        """Seconds until this loop is due; 0 if it is due already."""
        return max(0.0, self._started_s + loop / LOOPS_PER_S - time.monotonic())
