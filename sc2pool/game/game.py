"""One game, from launch to close: episodes, steps, and the faults that end it.

    launch ─► start_episode ─► observe ─► step … step ─► start_episode … ─► close
                    ▲                         │ ended
                    └─────────────────────────┘

Rules:
- one step is one burst: action, step, observation; every reply is checked before any is used;
- in real time the game steps by itself: the burst is action and the observation of the loop that
  is due (see `clock`), and no request is in flight when it is over;
- what the game tells only once is told once, whoever has looked at it meanwhile (see `events`);
- any `GameFault` is the end: the game is not repaired, the caller closes it and takes a new one;
- that the game has ended is data, not an error.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import GameSetup, Limits
from sc2pool.deadline import Deadline
from sc2pool.game.clock import ElasticClock, Tick
from sc2pool.game.connection import Extend
from sc2pool.game.events import UntoldEvents
from sc2pool.game.hang_detection import Patience
from sc2pool.game.installation import Installation
from sc2pool.game.launch import Launched, launch
from sc2pool.game.loop_count import LoopCount
from sc2pool.game.running import RunningGame
from sc2pool.protocol import replies, requests
from sc2pool.protocol.game_time import LOOPS_PER_S
from sc2pool.protocol.observed import Observed
from sc2pool.protocol.status import Status

_LOG_CHECK_STEPS: Final = 1000


class Rung(StrEnum):
    """How an episode was begun, the cheapest first."""

    RESTART = "restart"
    CREATE = "create"


class Step(NamedTuple):
    """What one step brought."""

    observed: Observed
    action_results: list[int]
    """One `ActionResult` for each action; empty if there were none."""
    ended: bool


class Game(RunningGame):
    """A running game and the connection to it; of one task at a time."""

    def __init__(self, launched: Launched, limits: Limits) -> None:
        super().__init__(launched)
        self._limits = limits
        self._setup: GameSetup | None = None
        self._map_path: Path | None = None
        self._restartable = False
        self._needs_hard_reset = False
        self._loops = LoopCount()
        self._steps = 0
        self._clock = ElasticClock(LOOPS_PER_S)
        self._events = UntoldEvents()

        self.version = ""
        self.base_build = 0
        self.player_id = 0
        self.result: int | None = None
        """The own player's `Result`, once the game has ended with one."""
        self.tick: Tick | None = None
        """How late the episode's newest step was; None before the first, and step by step."""

    @classmethod
    async def launch(
        cls, installation: Installation, limits: Limits, *, deadline: Deadline
    ) -> Game:
        """Starts a game and waits until it answers.

        Args:
            installation: what to start.
            limits: how long each later part may take.
            deadline: for the launch.

        Raises:
            ConfigError: the executable cannot be started at all.
            GameFault: the game ended, hung, or found no free port.
        """
        game = cls(await launch(installation, deadline), limits)
        try:
            pong = (await game._ask(requests.ping(), deadline)).ping
            game.version = pong.game_version
            game.base_build = pong.base_build
        except BaseException:
            game.close()
            raise
        return game

    @property
    def recycle_due(self) -> bool:
        """Whether the game should be replaced at the end of its episode."""
        return self._needs_hard_reset or self._loops.used_up

    # ---- episodes ---------------------------------------------------------------------------

    async def start_episode(self, setup: GameSetup, map_path: Path, seed: int | None) -> Rung:
        """Begins an episode by the cheapest way there is; `observe` gives its first state.

        Args:
            setup: players and options.
            map_path: the map file.
            seed: of the game, or None to let the game choose.

        Raises:
            ConfigError: the map or the players are wrong.
            GameFault: the game failed.
        """
        self._process.trim_log()
        if (
            self._restartable
            and seed is None
            and (setup, map_path) == (self._setup, self._map_path)
            and await self._restart()
        ):
            rung = Rung.RESTART
        else:
            await self._create(setup, map_path, seed)
            rung = Rung.CREATE
        self._setup, self._map_path = setup, map_path
        # A game made with a seed might repeat it when restarted, so it is never restarted.
        self._restartable = seed is None
        self._loops.begin_episode()
        self._events.clear()
        self.result = None
        self.tick = None
        return rung

    async def _restart(self) -> bool:
        if not self._loops.restartable or self.status not in (Status.IN_GAME, Status.ENDED):
            return False
        deadline = Deadline.after(self._limits.reset_s)
        reply = await self._ask(requests.restart_game(), deadline)
        if reply.restart_game.need_hard_reset:
            self._needs_hard_reset = True
            return False
        return self.status is Status.IN_GAME

    async def _create(self, setup: GameSetup, map_path: Path, seed: int | None) -> None:
        deadline = Deadline.after(self._limits.create_join_s)
        if self.status is Status.IN_GAME:
            await self._ask(requests.leave_game(), deadline)
        await self._ask(requests.create_game(setup, map_path, seed), deadline)
        joined = await self._ask(requests.join_game(setup), deadline)
        self.player_id = joined.join_game.player_id
        self._loops.created()

    # ---- stepping ---------------------------------------------------------------------------

    async def observe(self) -> Observed:
        """The state now.

        Raises:
            GameFault: the game failed.
        """
        first = self._loops.nothing_seen
        observed = await self._see()
        if first:
            self._clock.begin(observed.game_loop, time.monotonic())
        return self._events.tell(observed)

    async def look(self) -> int:
        """The game loop now. The events it takes are told with the next observation.

        Raises:
            GameFault: the game failed.
        """
        observed = await self._see()
        self._events.keep(observed)
        self._clock.look(observed.game_loop)
        return observed.game_loop

    @property
    def loop_seen(self) -> int:
        """Of a game in real time: the loop of the newest observation or look."""
        return self._loops.now or 0

    def stands_still(self) -> None:
        """Someone has stopped its process: what passes from now on is no delay."""
        self._clock.stop(time.monotonic())

    def goes_on(self) -> None:
        """Its process is about to go on."""
        self._clock.go_on(time.monotonic())

    def delay(self, loops: int) -> None:
        """In real time: the decision period of the next step is so many loops longer."""
        self._clock.delay(loops)

    async def step(self, actions: Sequence[sc_pb.Action], loops: int) -> Step:
        """Gives commands, advances the game, and observes, all in one burst.

        In real time it waits until the end of the decision period; a game that is there already
        is observed at once, with a later loop than was due, and `tick` says how late it was.

        Args:
            actions: may be empty; that one of them fails is data (`action_results`).
            loops: how far to advance.

        Raises:
            GameFault: the game failed.
        """
        self._steps += 1
        if self._steps % _LOG_CHECK_STEPS == 0:
            self._process.trim_log()
        before = self._loops.now
        if self._realtime:
            due = self._clock.act(loops, time.monotonic())
            asked = [requests.observation(None if before is None else due)]
        else:
            asked = [requests.step(loops), requests.observation()]
        if actions:
            asked.insert(0, requests.action(actions))
        deadline, extend = self._patience(loops / LOOPS_PER_S if self._realtime else 0.0)
        *others, observed = await self._burst(asked, deadline, extend, sparse=True)
        for reply in others:
            if not replies.is_game_over(reply):
                replies.require(reply, reply.WhichOneof("response") or "step")
        action_results = list(others[0].action.result) if actions else []
        if not self._realtime:
            self._loops.play(loops, others[-1].step.simulation_loop)
        self._set_status(observed)
        if replies.is_game_over(observed):
            # The game ended under the burst: what it ended with can still be observed.
            asked = [requests.observation()]
            (observed,) = await self._burst(asked, deadline, extend, sparse=True)
            self._set_status(observed)
        newest = self._accept(observed, loops)
        if self._realtime:
            self._loops.play(newest.game_loop - (before or 0))
            self._note_tick(newest.game_loop, moved=before is None)
        ended = self._has_ended(observed.observation)
        if ended and self.result is None and not observed.observation.player_result:
            # The result may come one observation after the end.
            self._events.keep(newest)
            newest = await self._see()
        return Step(self._events.tell(newest), action_results, ended)

    # ---- everything else --------------------------------------------------------------------

    async def game_info(self) -> sc_pb.ResponseGameInfo:
        """Map, players and terrain."""
        return (await self._ask(requests.game_info(), *self._patience())).game_info

    async def data(self) -> sc_pb.ResponseData:
        """Names, costs and attributes of everything there is in the game."""
        return (await self._ask(requests.data(), *self._patience())).data

    async def replay(self, deadline: Deadline) -> bytes:
        """What was played so far, as the content of a replay file; empty if the game refuses.

        Raises:
            GameFault: the game failed, or did not answer in time.
        """
        (reply,) = await self._burst([requests.save_replay()], deadline, None)
        self._set_status(reply)
        return reply.save_replay.data

    async def request(self, request: sc_pb.Request) -> sc_pb.Response:
        """Sends any request that has a reply: queries, debug commands, saving a replay.

        The game's refusal is an answer too: it is left to the caller, in `reply.error`.

        Raises:
            GameFault: the game failed.
        """
        (reply,) = await self._burst([request], *self._patience())
        self._set_status(reply)
        if reply.HasField("step"):
            self._loops.play(request.step.count, reply.step.simulation_loop)
            self._loops.move(request.step.count)
        elif reply.HasField("quick_load"):
            self._loops.now = self.result = None
        return reply

    # ---- the inside -------------------------------------------------------------------------

    @property
    def _realtime(self) -> bool:
        return self._setup is not None and self._setup.realtime

    def _patience(self, due_in_s: float = 0.0) -> tuple[Deadline, Extend]:
        limit_s = self._limits.reset_s if self._loops.nothing_seen else self._limits.step_s
        patience = Patience(due_in_s + limit_s, self._process.cpu_seconds)
        return patience.first, patience.extend

    async def _see(self) -> Observed:
        deadline, extend = self._patience()
        (reply,) = await self._burst([requests.observation()], deadline, extend, sparse=True)
        self._set_status(reply)
        return self._accept(reply, loops=0)

    def _note_tick(self, loop: int, *, moved: bool) -> None:
        now_s = time.monotonic()
        if moved:  # to another moment of the game: no grid leads there
            self._clock.begin(loop, now_s)
            self.tick = None
        else:
            self.tick = self._clock.observe(loop, now_s)

    def _accept(self, reply: Any, loops: int) -> Observed:
        """Checks a sparse observation `loops` after the last one and takes note of its moment."""
        replies.require(reply, "observation")
        answer = reply.observation
        ended = self._has_ended(answer)
        first, last = self._loops.expected(loops, ended=ended, free=self._realtime)
        replies.check_observation(answer, first_loop=first, last_loop=last)
        self._loops.see(answer.observation.game_loop)
        result = replies.result_of(answer, self.player_id)
        if result is not None:  # else it may have been told to a look before
            self.result = result
        return Observed(self._connection.sparse_payload, reply)

    def _has_ended(self, answer: Any) -> bool:
        return self.status is Status.ENDED or len(answer.player_result) > 0
