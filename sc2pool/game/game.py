"""One game, from launch to close: episodes, steps, and the faults that end it.

    Calls: launch ─► start_episode ─► observe ─► step … step ─► start_episode … ─► close
                           ▲                         │ ended
                           └─────────────────────────┘

Rules:
* A step is one burst: action, step, observation. All replies are checked before any reply is used.
* In real time the game steps by itself. Actions are sent immediately, and the state is requested
  when the game has reached the due loop (see `clock`). No request asks the game to wait for a later
  loop, and each request is answered before the step is over.
* The game reports an event once. The event is kept until the task gets an observation, and is
  delivered once, with that observation (see `PendingEvents`).
* Any `GameFault` is final: the game is not repaired; the caller closes it and starts another game.
* However a game ends, its end is data and not an error (see `episode`).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from s2clientprotocol import common_pb2, error_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import GameSetup, Limits
from sc2pool.deadline import Deadline
from sc2pool.errors import FaultKind, GameFault, UserCodeError
from sc2pool.foreign import open_regular, printable
from sc2pool.game.clock import ElasticClock, LoopTimer, Tick
from sc2pool.game.connection import Extend, GameAPI
from sc2pool.game.episode import (
    LONGEST_LOOK_S,
    REFUSED,
    SILENT,
    WITHOUT_RESULT,
    Beginning,
    EndSigns,
    LoopCost,
    LoopCount,
    ResetLadder,
    shown_again,
)
from sc2pool.game.hang_detection import Activity, HangDetector
from sc2pool.game.program.builds import NOTHING_SETTLED, Settled
from sc2pool.game.program.installation import Installation, made_with
from sc2pool.game.program.launch import launch
from sc2pool.platform import WINDOWS
from sc2pool.protocol import LOOPS_PER_S, replies, requests
from sc2pool.protocol.observed import Head, Observed, PendingEvents, SparseReply
from sc2pool.protocol.replies import Status
from sc2pool.protocol.requests import MatchPorts

if TYPE_CHECKING:
    from sc2pool._fast import Plain

_SUCCESS: Final = int(error_pb2.Success)
_MOST_CREATED: Final = 99 if WINDOWS else math.inf
"""The most games that one process creates. On Windows each game uses up one of a hundred names of a
temporary file (`TempLaunchMap~00` …), and after the last name create_game fails."""
_LOADING_FAULTS: Final = frozenset(
    {FaultKind.GAME_EXITED, FaultKind.CONNECTION_LOST, FaultKind.DEADLINE}
)
"""The kinds of fault that an unreadable map may cause."""
_OF_THE_POOL: Final = frozenset(
    {"create_game", "join_game", "restart_game", "start_replay", "leave_game", "quit"}
)
"""The requests that begin and end games. Only the pool may send them, not a task or a bot."""


class ResetKind(StrEnum):
    """How an episode began, the cheapest kind first."""

    RESTART = "restart"
    CREATE = "create"


class Step(NamedTuple):
    """The result of one step."""

    observed: Observed
    action_results: list[int]
    """One `ActionResult` for each action; empty without actions."""
    ended: bool


@dataclass(frozen=True)
class Surroundings:
    """What the pool gives a game: a folder, measured facts and a function for warnings."""

    directory: Path | None = None
    """The folder for the game's temporary files; None for the system's folder."""
    settled: Settled = NOTHING_SETTLED
    warn: Callable[[str], None] = lambda _: None
    """A function that is called with a sentence that the user should read once."""


NOWHERE: Final = Surroundings()
"""The defaults: the system's temporary folder, no settled facts, no warnings."""


class Game:
    """A running game; used by one asyncio task at a time.

    Every coroutine raises `GameFault` if the game fails or refuses a request that must succeed.

    Attributes:
        pid, listener_proven: See `GameAPI`.
        player_id: The own player's id in the running episode.
        result: The own player's `Result`; None until the game has ended with a result.
        untold_end: The sign that the game has ended, if it did not report its end; else empty.
        tick: How late the newest step was; None in lock-step, and before the first step.
        realtime: True if the running episode's game steps by itself.
        events: The events in those observations that the task did not get.
        asked_s, answered_s: When the game's newest state was requested, and when it came.
        serves_a_task: True if `request` serves user code, and refuses what only the pool may send.
    """

    def __init__(
        self, api: GameAPI, limits: Limits, maps: Path | None, surroundings: Surroundings
    ) -> None:
        self._api = api
        self._others: list[Game] = []
        """The other games that must step before this game can reply."""
        self._detector = HangDetector(self._activity_of_all, self._is_asleep, surroundings.warn)
        self._maps = maps
        self._limits = limits
        self._warn = surroundings.warn
        self._ladder = ResetLadder(surroundings.settled)
        self._bursts_in_matches = surroundings.settled.bursts_in_matches is not False
        self._one_by_one = False
        """Whether each request of the running episode waits for the previous reply."""
        self._area: common_pb2.RectangleI | None = None
        self._needs_hard_reset = False
        self._gone_silent = False
        self._n_created = 0
        self._first_map: Path | None = None
        """The map that the process loads for its first episode; None at all other times."""
        self._began = False
        """Whether an episode has begun in this process."""
        self._loops = LoopCount()
        self._timer = LoopTimer(LOOPS_PER_S)
        self._signs = EndSigns()
        self._newest: Observed | None = None
        """The episode's newest observation that holds a state."""
        self._unused: Observed | None = None
        """The episode's first observation; None after `observe` has returned it."""

        self.serves_a_task = False
        self.realtime = False
        self.clock = ElasticClock(LOOPS_PER_S)
        self.events = PendingEvents()
        self.cost = LoopCost()
        self.asked_s = self.answered_s = 0.0
        self.process = api.process
        self.pid = api.pid
        self.port = api.port
        self.listener_proven = api.listener_proven
        self.version = ""
        self.base_build = 0
        self.player_id = 0
        self.result: int | None = None
        self.untold_end = ""
        self.tick: Tick | None = None

    @classmethod
    async def launch(
        cls,
        installation: Installation,
        limits: Limits,
        *,
        deadline: Deadline,
        surroundings: Surroundings = NOWHERE,
    ) -> Game:
        """Starts a game and waits for its first answer; `limits` are for later requests."""
        api = await launch(
            installation,
            deadline,
            directory=surroundings.directory,
            core_file_bytes=limits.core_file_bytes,
            warn=surroundings.warn,
        )
        game = cls(api, limits, installation.maps, surroundings)
        try:
            pong = (await game._api.ask(requests.ping(), deadline)).ping
            game.version = printable(pong.game_version)
            game.base_build = pong.base_build
        except BaseException:
            game.close()
            raise
        return game

    @property
    def recycle_due(self) -> str:
        """Why the game should be replaced at the end of its episode; empty if the game can stay."""
        if self._gone_silent:
            return "silence"
        if self._needs_hard_reset or self._loops.used_up:
            return "game-loops"
        return "games-created" if self._n_created >= _MOST_CREATED else ""

    def close(self) -> None:
        """Kills the game and releases everything, in bounded time; may be called again."""
        self._api.close()

    # ---- the process ------------------------------------------------------------------------

    @property
    def status(self) -> Status:
        """The game's status in its newest reply."""
        return self._api.status

    def unread_bytes(self) -> int | None:
        """The number of sent bytes that the game has not read; None if unknown."""
        return self._api.connection.unread_bytes()

    def plays_with(self, other: Game) -> None:
        """Record that from now on each step waits for the other game too."""
        self._others.append(other)

    def pause(self, now_s: float) -> None:
        """Record that the game is stopped from now on."""
        self.clock.pause(now_s)

    def resume(self, now_s: float) -> None:
        """Record that the stopped game continues."""
        self.clock.resume(now_s)
        self._timer.forget()
        self._signs.resume()

    def note_cost(self) -> None:
        """After an episode, compare the CPU time per loop with that in the first episodes."""
        now_s = time.monotonic()
        self.cost.count_episode()
        if self.cost.is_due(now_s):
            self.cost.note(self.process.cpu_seconds(), self._loops.in_all, now_s)

    # ---- episodes ---------------------------------------------------------------------------

    async def start_episode(self, setup: GameSetup, map_path: Path, seed: int | None) -> ResetKind:
        """Begins an episode in the cheapest way known to work; `observe` gives its first state."""
        world = (setup, map_path)
        if self._ladder.may_restart(world, seed) and await self._restart(setup):
            lacks = await self._lacks(restarted=True)
            if not lacks:
                return ResetKind.RESTART
            self._warn(
                f"restart_game does not bring {map_path.stem} back to its beginning ({lacks}), so "
                f"its episodes are begun with create_game"
            )
        await self._create_and_join(setup, map_path, seed)
        self._ladder.created(world, seed)
        await self._lacks(restarted=False)
        return ResetKind.CREATE

    async def _restart(self, setup: GameSetup) -> bool:
        if not self._loops.restartable or self.status not in (Status.IN_GAME, Status.ENDED):
            return False
        self._detector.begin(self._limits.reset_s)
        reply = await self._ask(requests.restart_game())
        if reply.restart_game.need_hard_reset:
            self._needs_hard_reset = True
            return False
        if self.status is not Status.IN_GAME:
            return False
        self._begin(setup)
        return True

    async def _create_and_join(self, setup: GameSetup, map_path: Path, seed: int | None) -> None:
        self.begin_phase(map_path)
        try:
            if self.status is Status.IN_GAME:
                await self.leave()
            await self.create(setup, map_path, seed, self.content_to_send(map_path))
            await self._join(requests.join_game(setup))
        except GameFault as fault:
            raise self.about_map(fault, map_path) from fault
        self._begin(setup)

    def exit_fault(self) -> GameFault:
        """A fault that describes how the game's process ended."""
        fault = self.process.exit_fault()
        return fault if self._first_map is None else self.about_map(fault, self._first_map)

    def about_map(self, fault: GameFault, map_path: Path) -> GameFault:
        """The fault of an episode's beginning; a note is added if the map may be the cause."""
        is_loading = self._first_map is not None and not self.process.was_killed
        loading_failed = is_loading and fault.kind in _LOADING_FAULTS
        if fault.map_note or not (loading_failed or fault.kind is FaultKind.SETUP_FAILED):
            return fault
        editor = made_with(map_path)
        note = (
            f"map {map_path}{f', made with version {editor}' if editor else ''}; game version "
            f"{self.version} (Base{self.base_build}): the map may be newer than the game"
        )
        return fault.noting_map(note)

    async def _lacks(self, *, restarted: bool) -> str:
        """Check the first state; return in words what a restart did not restore, or ''."""
        self._unused = observed = await self._see_first()
        beginning = Beginning.of(observed.observation)
        return self._ladder.difference(beginning, self._area, restarted=restarted)

    async def _see_first(self) -> Observed:
        observed = await self._see()
        now_s = time.monotonic()
        self.clock.begin(observed.game_loop, now_s)
        if self.realtime:
            self._signs.look(observed, now_s)  # `look` records whether the player has units
        return observed

    def _begin(self, setup: GameSetup) -> None:
        self.realtime = setup.realtime
        self._one_by_one = setup.participants > 1 and not self._bursts_in_matches
        self._loops.begin_episode()
        self._timer.forget()
        self._signs.begin(has_opponent=setup.participants > 1 or bool(setup.opponents))
        self.events.clear()
        self._newest = self._unused = None
        self._began, self._first_map = True, None
        self.result = None
        self.untold_end = ""
        self.tick = None

    def begin_phase(self, map_path: Path) -> None:
        """Begin the common time limit of an episode's first requests; a busy game gets more."""
        self._first_map = None if self._began else map_path
        self._detector.begin(self._limits.create_join_s)

    async def create(
        self, setup: GameSetup, map_path: Path, seed: int | None, map_data: bytes = b""
    ) -> None:
        """Creates a game; in a match, only the host creates it. See `requests.create_game`."""
        self._n_created += 1
        await self._ask(requests.create_game(setup, map_path, seed, map_data))

    async def _join(self, request: sc_pb.Request) -> None:
        joined = (await self._ask(request)).join_game
        if not joined.player_id or self.status is not Status.IN_GAME:
            raise GameFault(
                FaultKind.SETUP_FAILED,
                f"the game let nobody join (player_id {joined.player_id}, status "
                f"{self.status.name.lower()}): it cannot use the map's file",
            )
        self.player_id = joined.player_id
        self._loops.created()

    async def join_match(self, setup: GameSetup, ports: MatchPorts, player_name: str) -> None:
        """Joins a match and begins its episode; GameFault if the other player does not join."""
        self._ladder.not_again()
        await self._join(requests.join_game(setup, ports, player_name))
        self._begin(setup)

    async def leave(self) -> None:
        """Leaves the running or ended game, if there is one."""
        if self.status in (Status.IN_GAME, Status.ENDED):
            # A refusal means that there is no game. After any other problem, create_game fails.
            await self._burst([requests.leave_game()])

    async def save_map(self, name: str, content: bytes) -> None:
        """Stores a map's content in the game, so that create_game can use it by this name."""
        await self._ask(requests.save_map(name, content))

    def content_to_send(self, map_path: Path) -> bytes:
        """The content of a map outside the map folder; empty if the map is in the map folder."""
        if self._maps is None or map_path.resolve().is_relative_to(self._maps.resolve()):
            return b""
        try:
            with open_regular(map_path) as file:
                return file.read()
        except OSError:
            return b""  # the game's reply will explain the problem with the path

    # ---- stepping ---------------------------------------------------------------------------

    async def observe(self) -> Observed:
        """The current state."""
        observed, self._unused = self._unused, None
        if observed is None:
            first = self._loops.nothing_seen
            observed = await (self._see_first() if first else self._see())
        return self.events.deliver(observed)

    async def current_loop(self) -> int:
        """The current game loop. Events in this reply are delivered with the next observation."""
        observed = await self._see()
        self.events.keep(observed)
        self.clock.note_loop(observed.game_loop)
        return observed.game_loop

    @property
    def loop_seen(self) -> int:
        """The newest game loop that was seen, for a game in real time."""
        return self._loops.now or 0

    async def step(self, actions: Sequence[sc_pb.Action], loops: int) -> Step:
        """Gives commands, if any, advances the game by `loops`, and observes.

        In real time, `step` waits until the end of the decision period. If the game is already past
        the due loop, `step` observes immediately, and `tick` says how late the step was. A failed
        action raises no error, but `action_results` reports it. Raises UserCodeError if `loops`
        (the task's `step_mul`) is not a whole number of at least 1.
        """
        if (type(loops) is not int and not isinstance(loops, Integral)) or loops < 1:
            raise UserCodeError(f"step_mul must be a whole number of at least 1, got {loops!r}")
        self._unused = None
        if self.untold_end:
            assert self._newest is not None, "an episode ends after its first observation"
            return Step(self.events.deliver(shown_again(self._newest)), [], ended=True)
        if self.realtime:
            return await self._step_in_real_time(actions, loops)
        if self._one_by_one:
            answered: Plain | list[Any] = await self._step_one_by_one(actions, loops)
        else:
            answered = await self._api.step(actions, loops, *self._time_limit())
        if not isinstance(answered, list):
            self._loops.play(loops, answered.simulation_loop)
            newest, ended = self._accept(answered, loops)
            return Step(self.events.deliver(newest), [_SUCCESS] * answered.n_results, ended)
        *others, observed = answered
        for reply in others:
            _require_unless_over(reply)
        action_results = list(others[0].action.result) if actions else []
        self._loops.play(loops, others[-1].step.simulation_loop)
        newest, ended = await self._accept_or_look_again(observed, loops)
        return await self._stepped(newest, action_results, ended=ended)

    async def _step_one_by_one(self, actions: Sequence[sc_pb.Action], loops: int) -> list[Any]:
        replied: list[Any] = []
        for request in requests.step_burst(actions, loops):
            replied += await self._burst([request], sparse=True)
        return replied

    async def _step_in_real_time(self, actions: Sequence[sc_pb.Action], loops: int) -> Step:
        due = self.clock.act(loops, time.monotonic())
        before = self._loops.now
        action_results: list[int] = []
        if actions:
            (reply,) = await self._burst([requests.action(actions)], *self._time_limit())
            _require_unless_over(reply)
            action_results = list(reply.action.result)
            self._signs.note_results(action_results, before or 0)
        newest, ended = await self._see_at(0 if before is None else due)
        self._loops.play(newest.game_loop - (before or 0))
        now_s = time.monotonic()
        if before is None:  # the game has loaded a saved state, so a new grid begins
            self.clock.begin(newest.game_loop, now_s)
            self.tick = None
        else:
            self.tick = self.clock.observe(newest.game_loop, now_s)
        return await self._stepped(newest, action_results, ended=ended)

    async def _see_at(self, due: int) -> tuple[Observed, bool]:
        """The state at or after the due loop, or the last state, and True if the game is over."""
        longest_wait_s = math.inf
        while True:
            wait_s = min(self._timer.due_s(due) - time.monotonic(), longest_wait_s)
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            longest_wait_s = LONGEST_LOOK_S  # a game that is late may have stopped, so check often
            self.asked_s = time.monotonic()
            limit_s = self._limits.reset_s if self._loops.nothing_seen else self._limits.step_s
            self._detector.begin(limit_s, may_fall_silent=True)
            try:
                (reply,) = await self._burst([requests.observation()], sparse=True)
            except GameFault:
                if not self._detector.silent or self._newest is None:
                    raise
                self._gone_silent = True  # a late reply would seem to answer a later request
                return self._end_untold(SILENT), True
            newest, ended = await self._accept_or_look_again(reply, loops=0)
            if ended:
                return newest, True
            now_s = self.answered_s = time.monotonic()
            self._timer.note(newest.game_loop, self.asked_s, now_s)
            others_answered_s = min((one.answered_s for one in self._others), default=math.inf)
            sign = self._signs.look(newest, now_s, others_answered_s)
            if sign:
                self._end_untold(sign)
            elif self._signs.stood_s >= self._limits.step_s and self._is_held_up():
                raise GameFault(
                    FaultKind.DEADLINE, f"the game loop stood still for {self._signs.stood_s:.1f} s"
                )
            if sign or newest.game_loop >= due:
                return newest, bool(sign)
            self.events.keep(newest)

    def _end_untold(self, sign: str) -> Observed:
        """Record that the game has ended without a report; return its last state again."""
        assert self._newest is not None, "an episode ends after its first observation"
        self.untold_end = sign
        self._ladder.not_again()
        return shown_again(self._newest)

    async def _stepped(self, newest: Observed, action_results: list[int], *, ended: bool) -> Step:
        """Return a step's result. After an episode's last step, first request the game's result."""
        if ended and self.result is None and not self.untold_end:
            # The game's result may come one observation after its end.
            (reply,) = await self._burst([requests.observation()], *self._time_limit(), sparse=True)
            if not _is_over(reply):
                self.events.keep(newest)
                newest, _ = self._accept(reply, loops=0)
            if self.result is None:
                self.untold_end = WITHOUT_RESULT
        return Step(self.events.deliver(newest), action_results, ended)

    # ---- other requests ---------------------------------------------------------------------

    async def game_info(self) -> sc_pb.ResponseGameInfo:
        """Requests the map, the players and the terrain."""
        info = (await self._api.ask(requests.game_info(), *self._time_limit())).game_info
        self._area = info.start_raw.playable_area if info.HasField("start_raw") else None
        return info

    async def data(self) -> sc_pb.ResponseData:
        """Requests names, costs and attributes of all types of units, abilities and upgrades."""
        return (await self._api.ask(requests.data(), *self._time_limit())).data

    async def replay(self, deadline: Deadline) -> bytes:
        """Requests the content of a replay file of the game so far; empty if the game refuses."""
        (reply,) = await self._api.burst([requests.save_replay()], deadline)
        data: bytes = reply.save_replay.data
        return data

    async def request(self, request: sc_pb.Request) -> sc_pb.Response:
        """Sends any request that the game answers, such as a query, a debug command or save_replay.

        A refusal raises no error; its texts are in `reply.error`, which is empty after success. If
        the reply is an observation, its events are delivered again with the next step. Raises
        UserCodeError if a task's request would end its game, or is one that the game never answers.
        """
        if self.serves_a_task:
            self._check_of_task(request)
        reply: sc_pb.Response
        self._unused = None
        (reply,) = await self._burst([request], *self._time_limit())
        if reply.HasField("step"):
            self._loops.play(request.step.count, reply.step.simulation_loop)
            self._loops.move(request.step.count)
        elif reply.HasField("quick_load"):
            self._loops.now = self.result = None
        elif self.serves_a_task and reply.HasField("observation"):
            result = replies.result_of(reply.observation, self.player_id)
            self.result = self.result if result is None else result
            self.events.keep(Observed.of(reply.observation))
        return reply

    def _check_of_task(self, request: sc_pb.Request) -> None:
        """Raise UserCodeError if a task or a bot may not send this request."""
        kind = request.WhichOneof("request")
        why = None
        if kind in _OF_THE_POOL:
            why = "the pool begins and ends the games"
        elif kind == "step" and self._others:
            why = "both games of a match step together, when both sides have acted"
        elif kind == "observation" and request.observation.game_loop and self.realtime:
            why = "the wait for a game loop is the pool's; leave game_loop out"
        elif kind == "obs_action":
            why = "an observer's camera is for replays"
        if why is not None:
            raise UserCodeError(f"a task cannot request {kind} of its game here: {why}")

    # ---- private methods --------------------------------------------------------------------

    def _time_limit(self) -> tuple[Deadline, Extend]:
        limit_s = self._limits.reset_s if self._loops.nothing_seen else self._limits.step_s
        return self._detector.begin(limit_s), self._detector.extend

    def _activity_of_all(self) -> Sequence[Activity]:
        return [game.process.activity() for game in (self, *self._others)]

    def _is_asleep(self) -> bool:
        stopped = self.process.is_stopped() or self._is_held_up()
        return self.unread_bytes() == 0 and not stopped

    def _is_held_up(self) -> bool:
        """True if another game of the match is stopped, so that no loop can be played."""
        return any(game.process.is_stopped() for game in self._others)

    async def _ask(self, request: sc_pb.Request) -> sc_pb.Response:
        """Send one request that must succeed before the running phase's time limit."""
        return await self._api.ask(request, self._detector.deadline, self._detector.extend)

    async def _burst(
        self,
        asked: Sequence[sc_pb.Request],
        deadline: Deadline | None = None,
        extend: Extend | None = None,
        *,
        sparse: bool = False,
    ) -> list[Any]:
        """Send requests, by default with the phase's deadline. The caller handles refusals."""
        if deadline is None:
            deadline, extend = self._detector.deadline, self._detector.extend
        return await self._api.burst(asked, deadline, extend, sparse=sparse)

    async def _see(self) -> Observed:
        asked = [requests.observation()]
        self.asked_s = time.monotonic()
        (reply,) = await self._burst(asked, *self._time_limit(), sparse=True)
        observed, _ = await self._accept_or_look_again(reply, loops=0)
        self.answered_s = time.monotonic()
        self._timer.note(observed.game_loop, self.asked_s, self.answered_s)
        return observed

    async def _accept_or_look_again(
        self, reply: SparseReply | Plain, loops: int
    ) -> tuple[Observed, bool]:
        """Like `_accept`, but asks an ended game again, because its next reply may have a state."""
        if not _is_over(reply):
            return self._accept(reply, loops)
        (reply,) = await self._burst([requests.observation()], *self._time_limit(), sparse=True)
        if _is_over(reply) and self._newest is not None:
            return self._end_untold(REFUSED), True
        return self._accept(reply, loops)

    def _accept(self, reply: SparseReply | Plain, loops: int) -> tuple[Observed, bool]:
        """Check an observation after `loops` loops; return it, and True if the game is over."""
        payload = reply.payload
        if not isinstance(reply, SparseReply):  # compiled code has checked all except the loop
            first, last = self._loops.expected(loops, ended=False, free=self.realtime)
            if first <= reply.game_loop <= last:
                self._loops.see(reply.game_loop)
                self._newest = observed = Observed(payload, reply)
                return observed, False
            head = Head.FromString(payload)
        else:
            head = reply.head
        replies.require(head, "observation")
        answer = head.observation
        ended = self._api.status is Status.ENDED or len(answer.player_result) > 0
        result = replies.result_of(answer, self.player_id)
        if result is not None:  # None does not replace an earlier result
            self.result = result
        if answer.player_result and replies.is_stub(answer) and self._newest is not None:
            told = sc_pb.Response.FromString(payload).observation
            return shown_again(self._newest, told), True
        first, last = self._loops.expected(loops, ended=ended, free=self.realtime)
        replies.check_observation(answer, first_loop=first, last_loop=last)
        self._loops.see(answer.observation.game_loop)
        self._newest = observed = Observed(payload, head)
        return observed, ended


def _is_over(reply: SparseReply | Plain) -> bool:
    """True if the game refused to show its state because the game has ended."""
    return isinstance(reply, SparseReply) and replies.is_game_over(reply.head)


def _require_unless_over(reply: Any) -> None:
    """Raise GameFault if the game refused a request for any reason except its end."""
    if reply.error and not replies.is_game_over(reply):
        replies.require(reply, reply.WhichOneof("response") or "step")
