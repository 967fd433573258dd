"""The player of tasks and bots: it owns the games, and plays whole episodes on them.

Rules:
* A task of two players has two games that play each other, unless the game's own computer plays the
  other side. Every other task has one game.
* Without an opponent the rows are player 1's, then player 2's: one row each, or one row for each
  agent of a team. A team's rows share the game, the task object, the reward, the info and the
  episode's end.
* With an opponent the rows are the learner's. The learner is player 1 in episodes with an even
  number and player 2 in all others, so the learner learns both sides.
* The games are paused together, when none has a request in flight.
* An opponent's exception is an error of user code, never a fault of the game.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NoReturn

from gymnasium.error import ResetNeeded
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import Computer
from sc2pool.deadline import Deadline
from sc2pool.errors import GameFault
from sc2pool.game.clock import Tick, loops_passed
from sc2pool.game.game import Game, Surroundings
from sc2pool.game.match import Match
from sc2pool.players.match_episode import (
    MatchEpisode,
    OpponentSide,
    PlayedSide,
    ProtoSide,
    TaskSide,
    blamed_on_opponent,
    name_of,
)
from sc2pool.players.replays import REPLAY, Chooser, LastHeld, PlayedReplay
from sc2pool.players.task_spec import TaskSpec
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.opponents.policies import PlainBot
from sc2pool.tasks.player import Episode, GameFacts, Player
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.tasks.task import Task, TaskDefinition, agents_of, row_space

if TYPE_CHECKING:
    from sc2pool.players.bots import SharedData

_MOST_READS: Final = 20
"""If a game is behind the other game of its match, its loop is read at most this many times. Each
reading takes less than a millisecond."""


class SC2Player(Player):
    """Plays a `Task`, a `TeamTask` or an `RLBotAI`, alone or in a match."""

    strict = True

    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        self.setup = spec.setup
        self.realtime = spec.realtime
        self.rows = spec.rows
        self.observation_space = row_space(spec.task)
        self.action_space = spec.task.action_space
        self.metadata = spec.metadata
        self.render_mode = spec.render_mode
        self._n_games = 1 if isinstance(spec.opponent, Computer) else spec.task.players
        self._opponent = None if isinstance(spec.opponent, Computer) else spec.opponent
        self._agents = agents_of(spec.task)
        """The number of rows of a learner's side."""
        self._match: Match | None = None
        self._learners: Sequence[int] = (0,)
        """The learner's sides in the newest episode, in the order of their rows; 0 is the host."""
        self._tasks: Sequence[TaskDefinition] = ()
        """The task objects of the learner's sides in the newest episode."""
        self._playing: MatchEpisode | None = None
        self._reset_kind = ""
        self._replays = None if spec.replays is None else Chooser(spec.replays)
        self._loop_before_pause = 0
        self._ran_around_pause_s = 0.0

    @property
    def match(self) -> Match:
        assert self._match is not None, "the pool launches before it resets"
        return self._match

    @property
    def game(self) -> Game:
        """The game of the learner's first side; its results, replays and delays are used."""
        return self.match.games[self._learners[0]]

    async def launch(self, deadline: Deadline) -> Sequence[GameFacts]:
        spec = self.spec
        self._match = match = await Match.launch(
            spec.installation,
            spec.limits,
            players=self._n_games,
            deadline=deadline,
            surroundings=Surroundings(self.directory, spec.settled, self.warn),
        )
        for game in match.games:
            game.serves_a_task = True
        return [
            GameFacts(
                game.pid,
                game.process.pid,
                game.port,
                game.version,
                game.base_build,
                game.listener_proven,
            )
            for game in match.games
        ]

    @property
    def exited_fds(self) -> Sequence[int]:
        return [game.process.exited_fd for game in self.match.games]

    # ---- an episode -------------------------------------------------------------------------

    async def play(self, episode: Episode, pair: QueuePair) -> None:
        held = None if self._replays is None else LastHeld(pair)
        learner = pair if held is None else held
        try:
            self._playing, observed, game_infos = await self._begin(episode, learner)
            await self._playing.play(observed, game_infos, learner)
            if held is not None and self._replays is not None:
                assert held.last, "an episode ends with a transition that says so"
                last, *others = held.last
                last = await self._with_replay(last, episode, held.episode_return, self._replays)
                pair.put_rows([last, *others])
        except GameFault as fault:
            raise self.game.about_map(fault, self.spec.map_path) from fault
        finally:
            self._playing = None

    async def _begin(
        self, episode: Episode, pair: QueuePair
    ) -> tuple[MatchEpisode, Sequence[Observed], Sequence[sc_pb.ResponseGameInfo]]:
        """Begin an episode; return its loop, and each side's first observation and map."""
        name, who = "+".join(map(name_of, self.setup.opponents)) or None, None
        if self._opponent is not None:
            with blamed_on_opponent():
                name, who = self._opponent.begin(episode)
            self._learners = (episode.number % 2,)
        else:
            self._learners = tuple(range(self._n_games))
        sides, tasks = self._new_sides(episode, who, name or "", pair)
        self._tasks = list(tasks.values())
        races = [self.setup.race] * self._n_games
        if isinstance(who, PlainBot) and who.race is not None:
            races[1 - self._learners[0]] = who.race
        match = self.match
        self._reset_kind = str(
            await match.start_episode(self.setup, self.spec.map_path, episode.seed, races)
        )
        observed = await match.observe()
        game_infos = await match.game_info()
        asks_itself = self._n_games == 1 and not issubclass(self.spec.task, Task)
        episode_loop = MatchEpisode(match, sides, {} if asks_itself else tasks, name)
        return episode_loop, observed, game_infos

    async def _with_replay(
        self, last: Transition, episode: Episode, episode_return: float, chooser: Chooser
    ) -> Transition:
        """The last transition; if the episode's replay is kept, the replay is in its info."""
        by_number, by_return = chooser.choose(episode, episode_return)
        if not (by_number or by_return):
            return last
        data = await self.replay()
        replay = PlayedReplay(episode.number, episode_return, by_number, by_return, data)
        return last._replace(info={**last.info, REPLAY: replay})

    def _new_sides(
        self, episode: Episode, who: QueuePair | PlainBot | None, name: str, pair: QueuePair
    ) -> tuple[list[PlayedSide], dict[int, TaskDefinition]]:
        """Make an episode's objects: each game's side, and a task for each side of the learner."""
        sides: list[PlayedSide] = []
        tasks = {}
        for i, game in enumerate(self.match.games):
            if i not in self._learners and isinstance(who, PlainBot):
                from sc2pool.players.bot_sides import PlainBotSide  # noqa: PLC0415

                sides.append(PlainBotSide(who, name, game, self._shared))
                continue
            side = self._task_side(game, pair)
            if i in self._learners:
                first = self._learners.index(i) * self._agents
                own_rows = self.attributes[first : first + self._agents]
                self.prepare(side.task, episode, own_rows)
                tasks[i] = side.task
                sides.append(side)
            else:
                assert isinstance(who, QueuePair), "an opponent is a pair or a bot"
                self.prepare(side.task, episode, ())
                side.task.max_episode_steps = None  # the limit is for the learner's steps only
                sides.append(OpponentSide(side, who, name))
        return sides, tasks

    def _task_side(self, game: Game, pair: QueuePair) -> TaskSide:
        definition = self.spec.task
        if issubclass(definition, Task):
            return ProtoSide(definition(), game)
        from sc2pool.players.bot_sides import LoneBotSide, RLBotSide  # noqa: PLC0415

        if self._n_games == 1:
            return LoneBotSide(definition, game, pair, self._shared)
        return RLBotSide(definition, game, self._shared)

    @cached_property
    def _shared(self) -> SharedData:
        # Imported here, because only bots need python-sc2, which costs a worker 0.4 s and 80 MB.
        from sc2pool.players.bots import SharedData  # noqa: PLC0415

        return SharedData()

    def prepare(
        self, task: TaskDefinition, episode: Episode, attributes: Sequence[Mapping[str, Any]]
    ) -> None:
        """Set a new task's attributes before its first hook, including those of `set_attr`."""
        task.episode = episode
        task.options = episode.options
        task.game_version = self.game.version
        task.metadata = self.metadata
        task.render_mode = self.render_mode
        for values in (self.spec.overrides, *attributes):
            for name, value in values.items():
                setattr(task, name, value)

    def latest_view(self) -> tuple[sc_pb.Observation, sc_pb.ResponseGameInfo] | None:
        if not self._tasks:
            return None
        try:
            game_info, observation = self._tasks[0]._seen()
        except AttributeError:
            return None  # the episode has not begun yet
        return observation, game_info

    def target(self, row: int = 0) -> Any:
        return self._tasks[row // self._agents] if self._tasks else Unstarted(self)

    def reset_kind(self) -> str:
        return self._reset_kind

    def exit_fault(self) -> GameFault:
        return self.match.exit_fault()

    @property
    def recycle_due(self) -> str:
        return next((game.recycle_due for game in self.match.games if game.recycle_due), "")

    def loop_cost_growth(self) -> float:
        for game in self.match.games:
            game.note_cost()
        return max(game.cost.growth or 0.0 for game in self.match.games)

    async def replay(self) -> bytes:
        # Use half of a step's limit, because the replay is requested within a step.
        deadline = Deadline.after(self.spec.limits.step_s / 2)
        with suppress(GameFault):
            return await self.game.replay(deadline)
        return b""

    def delay(self, loops: int) -> None:
        self.game.clock.delay(loops)

    def tick(self) -> Tick | None:
        return self.game.tick

    async def pause(self) -> None:
        if self._playing is not None:
            await self._playing.rest()
        try:
            if self.realtime:
                await self._newest_loop()
            await super().pause()
        except BaseException:
            self.resume_now()
            raise

    def hold(self) -> None:
        super().hold()
        for game in self.match.games:
            game.pause(time.monotonic())
        self._loop_before_pause = self.game.loop_seen
        # Measure from the request: the worker may wait long for a CPU before it reads the reply.
        asked_s = min(game.asked_s for game in self.match.games)
        self._ran_around_pause_s = time.monotonic() - asked_s

    async def resume(self) -> int | None:
        began_s = time.monotonic()
        for game in self.match.games:
            game.resume(time.monotonic())
        super().resume_now()
        if not self.realtime:
            return 0  # a game in single-step mode advances only when it is stepped
        loop = await self._newest_loop()
        ran_s = self._ran_around_pause_s + time.monotonic() - began_s
        self._go_on()  # the opponent continues only after the games' loops were read
        return loops_passed(self._loop_before_pause, loop, ran_s)

    def resume_now(self) -> None:
        super().resume_now()
        self._go_on()

    def _go_on(self) -> None:
        """Let an opponent that plays by itself continue."""
        if self._playing is not None:
            self._playing.go_on()

    async def _newest_loop(self) -> int:
        """The newest game loop that one of the games has reached, for games in real time.

        In a match one game may wait for the other, mainly after a pause, so the game that is behind
        is read again.
        """
        loops = [await game.current_loop() for game in self.match.games]
        for _ in range(_MOST_READS):
            behind = [i for i, loop in enumerate(loops) if loop < max(loops) - 1]
            for i in behind:
                loops[i] = await self.match.games[i].current_loop()
            if not behind:
                break
        return max(loops)

    @property
    def processes(self) -> tuple[Sequence[int], bool]:
        return [game.process.pid for game in self.match.games], True

    def log_tail(self) -> str:
        return "" if self._match is None else self._match.log_tail()

    def close(self) -> None:
        if self._match is not None:
            self._match.close()


class Unstarted:
    """Replaces the task before its first episode; its methods raise `ResetNeeded`.

    Setting an attribute has no effect, because the trainer keeps the value and sets it on every
    task object.
    """

    def __init__(self, player: SC2Player) -> None:
        vars(self)["_definition"] = player.spec.task
        # These attributes have the values of the pool, not of the class.
        own = {"metadata": player.metadata, "render_mode": player.render_mode}
        vars(self).update(player.spec.overrides | own)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._definition, name)
        if isinstance(value, property | cached_property):
            raise AttributeError(f"{self._definition.__name__}.{name} has no value before reset()")
        if not callable(value):
            return value

        def not_yet(*_: Any, **__: Any) -> NoReturn:
            raise ResetNeeded(f"{self._definition.__name__}.{name}: call reset() first")

        return not_yet

    def __setattr__(self, name: str, value: Any) -> None:
        pass

    def render(self) -> None:
        """Return None, because no frame exists yet. The pool chooses a substitute."""
