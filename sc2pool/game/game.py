"""One game, from launch to close: episodes, steps, and the faults that end it.

    launch ─► start_episode ─► observe ─► step … step ─► start_episode … ─► close
                    ▲                         │ ended
                    └─────────────────────────┘

Rules:
- one step is one burst: action, step, observation; every reply is checked before any is used;
- in real time the game steps by itself: the burst is action and the observation of the loop that
  is due (see `clock`), and no request is in flight when it is over;
- an event that the game reports once is delivered once, with the next observation that is used
  (see `events`);
- any `GameFault` is the end: the game is not repaired, the caller closes it and takes a new one;
- that the game has ended is data, not an error.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import StrEnum
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from s2clientprotocol import error_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import GameSetup, Limits
from sc2pool.deadline import Deadline
from sc2pool.errors import UserCodeError
from sc2pool.foreign import printable
from sc2pool.game.api import GameAPI
from sc2pool.game.clock import ElasticClock, Tick
from sc2pool.game.connection import Extend
from sc2pool.game.events import PendingEvents
from sc2pool.game.hang_detection import HangDetector
from sc2pool.game.loop_count import LoopCount
from sc2pool.game.program.installation import Installation
from sc2pool.game.program.launch import launch
from sc2pool.protocol import replies, requests
from sc2pool.protocol.game_time import LOOPS_PER_S
from sc2pool.protocol.observed import Observed
from sc2pool.protocol.requests import MatchPorts
from sc2pool.protocol.sparse import Head
from sc2pool.protocol.status import Status

if TYPE_CHECKING:
    from sc2pool._fast import Plain

_SUCCESS: Final = int(error_pb2.Success)


class ResetKind(StrEnum):
    """How an episode was begun, the cheapest first."""

    RESTART = "restart"
    CREATE = "create"


class Step(NamedTuple):
    """The result of one step."""

    observed: Observed
    action_results: list[int]
    """One `ActionResult` for each action; empty if there were none."""
    ended: bool


class Game:
    """A running game; used by one asyncio task at a time.

    Attributes:
        process: that was started.
        pid: of the process that listens; an executable may be a script that starts it.
        port: on which it listens.
        listener_proven: whether the system says that the port's listener is this game.
        version: as the game reports it.
        base_build: the number of its build.
        player_id: of the own player, in the running episode.
        result: the own player's `Result`, once the game has ended with one.
        tick: how late the episode's newest step was; None before the first, and if the game does
            not run in real time.
        realtime: the running episode's game steps by itself.
        clock: its decision periods, in real time.
        events: of observations that were not used.
    """

    def __init__(self, api: GameAPI, limits: Limits, maps: Path | None) -> None:
        self._api = api
        self._awaited = [api.process]
        """The processes of which one has to work before a reply can come."""
        self._detector = HangDetector(self._cpu_seconds_of_awaited)
        self._maps = maps
        self._limits = limits
        self._setup: GameSetup | None = None
        self._map_path: Path | None = None
        self._restartable = False
        self._needs_hard_reset = False
        self._loops = LoopCount()

        self.realtime = False
        self.clock = ElasticClock(LOOPS_PER_S)
        self.events = PendingEvents()
        self.process = api.process
        self.pid = api.pid
        self.port = api.port
        self.listener_proven = api.listener_proven
        self.version = ""
        self.base_build = 0
        self.player_id = 0
        self.result: int | None = None
        self.tick: Tick | None = None

    @classmethod
    async def launch(
        cls,
        installation: Installation,
        limits: Limits,
        *,
        deadline: Deadline,
        directory: Path | None = None,
    ) -> Game:
        """Starts a game and waits until it answers.

        Args:
            limits: how long each later part may take.
            directory: for its temporary files; None for the system's.

        Raises:
            ConfigError: the executable cannot be started at all.
            GameFault: the game ended, hung, or found no free port.
        """
        api = await launch(installation, deadline, directory=directory)
        game = cls(api, limits, installation.maps)
        try:
            pong = (await game._api.ask(requests.ping(), deadline)).ping
            game.version = printable(pong.game_version)
            game.base_build = pong.base_build
        except BaseException:
            game.close()
            raise
        return game

    @property
    def recycle_due(self) -> bool:
        """True if the game should be replaced at the end of its episode."""
        return self._needs_hard_reset or self._loops.used_up

    def close(self) -> None:
        """Kills the game and gives everything back; bounded, and may be called again."""
        self._api.close()

    # ---- the process ------------------------------------------------------------------------

    @property
    def status(self) -> Status:
        """The game's status in its newest reply."""
        return self._api.status

    def unread_bytes(self) -> int:
        """How much of what was asked it has not read; 0 also if the system does not say."""
        return self._api.connection.unread_bytes()

    def plays_with(self, other: Game) -> None:
        """From now on each step waits for the other game too, so it is slow if that one is."""
        self._awaited.append(other.process)

    # ---- episodes ---------------------------------------------------------------------------

    async def start_episode(self, setup: GameSetup, map_path: Path, seed: int | None) -> ResetKind:
        """Begins an episode by the cheapest way there is; `observe` gives its first state.

        Args:
            setup: players and options.
            map_path: the map file.
            seed: of the game, or None to let the game choose.

        Raises:
            ConfigError: the map or the players are wrong.
            GameFault: the game failed.
        """
        if (
            self._restartable
            and seed is None
            and (setup, map_path) == (self._setup, self._map_path)
            and await self._restart()
        ):
            kind = ResetKind.RESTART
        else:
            deadline = Deadline.after(self._limits.create_join_s)
            if self.status is Status.IN_GAME:
                await self.leave(deadline)
            data = self.content_to_send(map_path)
            await self.create(setup, map_path, seed, deadline, data)
            await self._join(requests.join_game(setup), deadline)
            kind = ResetKind.CREATE
        self._setup, self._map_path = setup, map_path
        # A game made with a seed might repeat it when restarted, so it is never restarted.
        self._restartable = seed is None
        self._begin(setup)
        return kind

    def _begin(self, setup: GameSetup) -> None:
        self.realtime = setup.realtime
        self._loops.begin_episode()
        self.events.clear()
        self.result = None
        self.tick = None

    async def _restart(self) -> bool:
        if not self._loops.restartable or self.status not in (Status.IN_GAME, Status.ENDED):
            return False
        deadline = Deadline.after(self._limits.reset_s)
        reply = await self._api.ask(requests.restart_game(), deadline)
        if reply.restart_game.need_hard_reset:
            self._needs_hard_reset = True
            return False
        return self.status is Status.IN_GAME

    async def create(
        self,
        setup: GameSetup,
        map_path: Path,
        seed: int | None,
        deadline: Deadline,
        map_data: bytes = b"",
    ) -> None:
        """Creates a game, as the host of a match does; see `requests.create_game`.

        Raises:
            ConfigError: the map or the players are wrong.
            GameFault: the game failed.
        """
        await self._api.ask(requests.create_game(setup, map_path, seed, map_data), deadline)

    async def _join(self, request: sc_pb.Request, deadline: Deadline) -> None:
        joined = await self._api.ask(request, deadline)
        self.player_id = joined.join_game.player_id
        self._loops.created()

    async def join_match(
        self, setup: GameSetup, ports: MatchPorts, player_name: str, deadline: Deadline
    ) -> None:
        """Begins an episode of a match; returns when the other player has joined too.

        Raises:
            GameFault: the game failed, or the other player did not come.
        """
        self._restartable = False
        await self._join(requests.join_game(setup, ports, player_name), deadline)
        self._begin(setup)

    async def leave(self, deadline: Deadline) -> None:
        """Leaves the game that it plays or has played; does nothing if there is none.

        Raises:
            GameFault: the game failed.
        """
        if self.status in (Status.IN_GAME, Status.ENDED):
            await self._api.ask(requests.leave_game(), deadline)

    async def save_map(self, name: str, content: bytes, deadline: Deadline) -> None:
        """Stores a map's content in the game, which can then create a game on it by this name.

        Raises:
            ConfigError: the game takes it for no map.
            GameFault: the game failed.
        """
        await self._api.ask(requests.save_map(name, content), deadline)

    def content_to_send(self, map_path: Path) -> bytes:
        """The content of a map outside of the game's map folder: the game need not open it."""
        if self._maps is None or map_path.resolve().is_relative_to(self._maps.resolve()):
            return b""
        try:
            return map_path.read_bytes()
        except OSError:
            return b""  # the game's reply says what is wrong with the path

    # ---- stepping ---------------------------------------------------------------------------

    async def observe(self) -> Observed:
        """The state now.

        Raises:
            GameFault: the game failed.
        """
        first = self._loops.nothing_seen
        observed = await self._see()
        if first:
            self.clock.begin(observed.game_loop, time.monotonic())
        return self.events.deliver(observed)

    async def current_loop(self) -> int:
        """The game loop now. Its events are delivered with the next observation.

        Raises:
            GameFault: the game failed.
        """
        observed = await self._see()
        self.events.keep(observed)
        self.clock.note_loop(observed.game_loop)
        return observed.game_loop

    @property
    def loop_seen(self) -> int:
        """In real time: the loop of the newest observation or look."""
        return self._loops.now or 0

    async def step(self, actions: Sequence[sc_pb.Action], loops: int) -> Step:
        """Gives commands, advances the game, and observes, all in one burst.

        In real time it waits until the end of the decision period; a game that is there already
        is observed at once, with a later loop than was due, and `tick` says how late it was.

        Args:
            actions: may be empty; that one of them fails is data (`action_results`).
            loops: how far to advance.

        Raises:
            GameFault: the game failed.
            UserCodeError: `loops`, the task's `step_mul`, is no whole number of at least 1.
        """
        if (type(loops) is not int and not isinstance(loops, Integral)) or loops < 1:
            raise UserCodeError(f"step_mul must be a whole number of at least 1, got {loops!r}")
        before = self._loops.now
        deadline, extend = self._time_limit(loops / LOOPS_PER_S if self.realtime else 0.0)
        answered: Plain | list[Any]
        if self.realtime:
            due = self.clock.act(loops, time.monotonic())
            asked = [requests.observation(None if before is None else due)]
            if actions:
                asked.insert(0, requests.action(actions))
            answered = await self._api.burst(asked, deadline, extend, sparse=True)
        else:
            answered = await self._api.step(actions, loops, deadline, extend)
        if not isinstance(answered, list):
            self._loops.play(loops, answered.simulation_loop)
            newest, ended = self._accept(answered, loops)
            return Step(self.events.deliver(newest), [_SUCCESS] * answered.n_results, ended)
        *others, observed = answered
        for reply in others:
            if reply.error and not replies.is_game_over(reply):
                replies.require(reply, reply.WhichOneof("response") or "step")
        action_results = list(others[0].action.result) if actions else []
        if not self.realtime:
            self._loops.play(loops, others[-1].step.simulation_loop)
        if observed.error and replies.is_game_over(observed):
            # The game ended under the burst: what it ended with can still be observed.
            asked = [requests.observation()]
            (observed,) = await self._api.burst(asked, deadline, extend, sparse=True)
        newest, ended = self._accept(observed, loops)
        if self.realtime:
            self._loops.play(newest.game_loop - (before or 0))
            self._note_tick(newest.game_loop, moved=before is None)
        if ended and self.result is None and not observed.observation.player_result:
            # The result may come one observation after the end.
            self.events.keep(newest)
            newest = await self._see()
        return Step(self.events.deliver(newest), action_results, ended)

    # ---- everything else --------------------------------------------------------------------

    async def game_info(self) -> sc_pb.ResponseGameInfo:
        """Map, players and terrain."""
        return (await self._api.ask(requests.game_info(), *self._time_limit())).game_info

    async def data(self) -> sc_pb.ResponseData:
        """Names, costs and attributes of everything there is in the game."""
        return (await self._api.ask(requests.data(), *self._time_limit())).data

    async def replay(self, deadline: Deadline) -> bytes:
        """The content of a replay file of the game so far; empty if the game refuses.

        Raises:
            GameFault: the game failed, or did not answer in time.
        """
        (reply,) = await self._api.burst([requests.save_replay()], deadline)
        data: bytes = reply.save_replay.data
        return data

    async def request(self, request: sc_pb.Request) -> sc_pb.Response:
        """Sends any request that has a reply: queries, debug commands, saving a replay.

        The game's refusal is an answer too: it is left to the caller, in `reply.error`.

        Raises:
            GameFault: the game failed.
        """
        reply: sc_pb.Response
        (reply,) = await self._api.burst([request], *self._time_limit())
        if reply.HasField("step"):
            self._loops.play(request.step.count, reply.step.simulation_loop)
            self._loops.move(request.step.count)
        elif reply.HasField("quick_load"):
            self._loops.now = self.result = None
        return reply

    # ---- the inside -------------------------------------------------------------------------

    def _time_limit(self, due_in_s: float = 0.0) -> tuple[Deadline, Extend]:
        limit_s = self._limits.reset_s if self._loops.nothing_seen else self._limits.step_s
        return self._detector.begin(due_in_s + limit_s), self._detector.extend

    def _cpu_seconds_of_awaited(self) -> float:
        return sum(process.cpu_seconds() for process in self._awaited)

    async def _see(self) -> Observed:
        asked = [requests.observation()]
        (reply,) = await self._api.burst(asked, *self._time_limit(), sparse=True)
        return self._accept(reply, loops=0)[0]

    def _note_tick(self, loop: int, *, moved: bool) -> None:
        now_s = time.monotonic()
        if moved:  # a saved state was loaded: a new grid begins
            self.clock.begin(loop, now_s)
            self.tick = None
        else:
            self.tick = self.clock.observe(loop, now_s)

    def _accept(self, reply: Any, loops: int) -> tuple[Observed, bool]:
        """Checks a sparse observation `loops` after the last one, and notes its game loop.

        Returns:
            The observation, and whether the game has ended with it.
        """
        payload = self._api.connection.sparse_payload
        if not isinstance(reply, Head):  # the compiled path has checked it, but for its loop
            first, last = self._loops.expected(loops, ended=False, free=self.realtime)
            if first <= reply.game_loop <= last:
                self._loops.see(reply.game_loop)
                return Observed(payload, reply), False
            reply = Head.FromString(payload)
        replies.require(reply, "observation")
        answer = reply.observation
        ended = self._api.status is Status.ENDED or len(answer.player_result) > 0
        first, last = self._loops.expected(loops, ended=ended, free=self.realtime)
        replies.check_observation(answer, first_loop=first, last_loop=last)
        self._loops.see(answer.observation.game_loop)
        result = replies.result_of(answer, self.player_id)
        if result is not None:  # else an earlier look may have brought it
            self.result = result
        return Observed(payload, reply), ended
