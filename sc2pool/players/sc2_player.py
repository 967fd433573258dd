"""The SC2 player: a task on a game.

`play` plays a whole episode of a `Task`. Rules: each episode has a new task object. Each env step
is one burst: action, step, observation. A team's rows share the game, the task object, the reward,
the info and the episode's end.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, NoReturn

from gymnasium.error import ResetNeeded
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.deadline import Deadline
from sc2pool.errors import GameFault
from sc2pool.game.clock import Tick, loops_passed
from sc2pool.game.game import Game, Surroundings
from sc2pool.players.episode_results import name_of, with_result
from sc2pool.players.replays import REPLAY, Chooser, LastHeld, PlayedReplay
from sc2pool.players.sides import rows_of
from sc2pool.players.task_spec import TaskSpec
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.driven_task import DrivenTask
from sc2pool.tasks.episode_rules import as_result
from sc2pool.tasks.player import Episode, GameFacts, Player
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.tasks.task import Task
from sc2pool.tasks.teams.team_task import TeamTask, row_space

_MOST_READS: Final = 20
"""How often to read the loop of a match's game that is behind the other game. Each read takes less
than a millisecond."""


class SC2Player(Player):
    """Base of the players of tasks and bots: a game, and a new task object per episode."""

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
        self._game: Game | None = None
        self._reset_kind = ""
        self._replays = None if spec.replays is None else Chooser(spec.replays)
        self._computers = "+".join(map(name_of, self.setup.opponents))
        self.task: TaskDefinition | None = None
        self._loop_before_pause = 0
        self._seen_before_pause_s = 0.0
        self._ran_around_pause_s = 0.0

    @property
    def game(self) -> Game:
        assert self._game is not None, "the pool launches before it resets"
        return self._game

    async def launch(self, deadline: Deadline) -> Sequence[GameFacts]:
        spec = self.spec
        self._game = game = await Game.launch(
            spec.installation, spec.limits, deadline=deadline, surroundings=self._surroundings
        )
        game.serves_a_task = True
        return [facts_of(game)]

    @property
    def _surroundings(self) -> Surroundings:
        return Surroundings(self.directory, self.spec.settled, self.warn)

    @property
    def games(self) -> Sequence[Game]:
        """All games of the player: two in a match, else one."""
        return [self.game]

    @property
    def exited_fds(self) -> Sequence[int]:
        return [game.process.exited_fd for game in self.games]

    async def play(self, episode: Episode, pair: QueuePair) -> None:
        try:
            await self._play(episode, pair)
        except GameFault as fault:
            raise self.game.about_map(fault, self.spec.map_path) from fault

    async def _play(self, episode: Episode, pair: QueuePair) -> None:
        if self._replays is None:
            await self.play_episode(episode, pair)
            return
        held = LastHeld(pair)
        await self.play_episode(episode, held)
        assert held.last, "an episode ends with a transition that says so"
        last, *others = held.last
        last = await self._with_replay(last, episode, held.episode_return, self._replays)
        pair.put_rows([last, *others])

    async def _with_replay(
        self, last: Transition, episode: Episode, episode_return: float, chooser: Chooser
    ) -> Transition:
        """The last transition, with the replay in its info if the episode is chosen."""
        by_number, by_return = chooser.choose(episode, episode_return)
        if not (by_number or by_return):
            return last
        data = await self.replay()
        replay = PlayedReplay(episode.number, episode_return, by_number, by_return, data)
        return last._replace(info={**last.info, REPLAY: replay})

    @abstractmethod
    async def play_episode(self, episode: Episode, pair: QueuePair) -> None:
        """Play one episode; see `play`."""

    def with_outcome(self, last: Transition) -> Transition:
        """The last transition, with the result in its info.

        The info stays unchanged if no computer plays and the game has reported its end.
        """
        untold_end = self.game.untold_end
        if not self._computers and not untold_end:
            return last
        task, result = self.task, self.game.result
        if isinstance(task, Task):
            result = as_result(task, task.result())
        return with_result(last, result, self._computers, untold_end=untold_end)

    async def start_episode(self, episode: Episode) -> Observed:
        """Begin the episode in the cheapest proven way, and return its first observation."""
        self._reset_kind = str(
            await self.game.start_episode(self.setup, self.spec.map_path, episode.seed)
        )
        observed = await self.game.observe()
        self.note_seen()
        return observed

    def note_seen(self) -> None:
        """Note that the games were just observed: later loops may belong to a pause."""
        self._seen_before_pause_s = time.monotonic()

    def prepare(
        self, task: TaskDefinition, episode: Episode, attributes: Sequence[Mapping[str, Any]]
    ) -> None:
        """Set the attributes of a new task object, before its first hook is called.

        Args:
            task: the task object.
            episode: its episode.
            attributes: the values that `set_attr` has set, for each row of the object.
        """
        task.episode = episode
        task.options = episode.options
        task.game_version = self.game.version
        task.metadata = self.metadata
        task.render_mode = self.render_mode
        for values in (self.spec.overrides, *attributes):
            for name, value in values.items():
                setattr(task, name, value)

    def latest_view(self) -> tuple[sc_pb.Observation, sc_pb.ResponseGameInfo] | None:
        if self.task is None:
            return None
        try:
            game_info, observation = self.task._seen()
        except AttributeError:
            return None  # the episode has not begun yet
        return observation, game_info

    def target(self, row: int = 0) -> Any:  # noqa: ARG002
        return Unstarted(self) if self.task is None else self.task

    def reset_kind(self) -> str:
        return self._reset_kind

    def exit_fault(self) -> GameFault:
        return self.game.exit_fault()

    @property
    def recycle_due(self) -> str:
        return next((game.recycle_due for game in self.games if game.recycle_due), "")

    def loop_cost_growth(self) -> float:
        for game in self.games:
            game.note_cost()
        return max(game.cost.growth or 0.0 for game in self.games)

    async def replay(self) -> bytes:
        # Half of a step's limit, because this happens within a step.
        deadline = Deadline.after(self.spec.limits.step_s / 2)
        with suppress(GameFault):
            return await self.game.replay(deadline)
        return b""

    def delay(self, loops: int) -> None:
        self.game.clock.delay(loops)

    def tick(self) -> Tick | None:
        return self.game.tick

    async def pause(self) -> None:
        if self.realtime:
            await self._newest_loop()
            self.note_seen()
        await super().pause()

    def hold(self) -> None:
        super().hold()
        for game in self.games:
            game.pause(time.monotonic())
        self._loop_before_pause = self.game.loop_seen
        self._ran_around_pause_s = time.monotonic() - self._seen_before_pause_s

    async def resume(self) -> int | None:
        began_s = time.monotonic()
        for game in self.games:
            game.resume(time.monotonic())
        super().resume_now()
        if not self.realtime:
            return 0  # the game advances only when it is asked to
        loop = await self._newest_loop()
        ran_s = self._ran_around_pause_s + time.monotonic() - began_s
        return loops_passed(self._loop_before_pause, loop, ran_s)

    async def _newest_loop(self) -> int:
        """The newest game loop of the games in real time.

        In a match one game may wait for the other, mainly after a pause. So a game that is behind
        is read again.
        """
        loops = [await game.current_loop() for game in self.games]
        for _ in range(_MOST_READS):
            behind = [i for i, loop in enumerate(loops) if loop < max(loops) - 1]
            for i in behind:
                loops[i] = await self.games[i].current_loop()
            if not behind:
                break
        return max(loops)

    @property
    def processes(self) -> tuple[Sequence[int], bool]:
        return [game.process.pid for game in self.games], True

    def log_tail(self) -> str:
        return "" if self._game is None else self._game.process.log_tail()

    def close(self) -> None:
        if self._game is not None:
            self._game.close()


def facts_of(game: Game) -> GameFacts:
    """The facts that the trainer records about this game."""
    return GameFacts(
        game.pid,
        game.process.pid,
        game.port,
        game.version,
        game.base_build,
        game.listener_proven,
    )


class Unstarted:
    """Stands for the task before its first episode: its attributes can be read.

    Setting an attribute here has no effect, because the trainer keeps the value and sets it on
    every task object. Methods cannot be called before the first episode.
    """

    def __init__(self, player: SC2Player) -> None:
        object.__setattr__(self, "_definition", player.spec.task)
        # These have the pool's values, not the class's.
        for name, loops in player.spec.overrides.items():
            object.__setattr__(self, name, loops)
        object.__setattr__(self, "metadata", player.metadata)
        object.__setattr__(self, "render_mode", player.render_mode)

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
        """Return None, as a frame does not exist yet. The pool decides about a substitute."""


class TaskPlayer(SC2Player):
    """Plays a `Task`. Each agent of a `TeamTask` is a row."""

    async def play_episode(self, episode: Episode, pair: QueuePair) -> None:
        task = self.spec.task()
        assert isinstance(task, Task)
        self.task = task
        self.prepare(task, episode, self.attributes)
        game, driven = self.game, DrivenTask(task)
        observed = await self.start_episode(episode)
        await driven.begin(game, observed, await game.game_info())
        is_team = isinstance(task, TeamTask)
        take = pair.get_actions if is_team else pair.get_action
        transition = await driven.transition()
        while not driven.rules.over:
            if is_team:
                pair.put_rows(await rows_of(task, transition, with_state=True))
            else:
                pair.put(transition)
            step = await game.step(await driven.turn(await take()), task.step_mul)
            transition = await driven.see(step, game.tick)
        pair.put_rows(await rows_of(task, self.with_outcome(transition), with_state=True))
