"""The player of a match: a task for two, on two games that play each other.

    learner 0 ─ action ─► task ─ commands ─► host  ┐
                                                   ├ one step of both ─► a transition for each
    learner 1 ─ action ─► task ─ commands ─► guest ┘
    or opponent

    begin both ─► put_rows ─► get_actions ─► turns ─► one step of both ─► see ─► put_rows …

Rules of the player:
- Each side has its own object, a new one per episode, and its own player's observations.
- Without an opponent the rows are player 1's, then player 2's: one row each, or one row for each
  agent of a team.
- With an opponent the rows are the learner's. The learner is player 1 in episodes with an even
  number and player 2 in the others, so it learns both.
- Both games are paused together, when neither has a request in flight.
- An opponent's exception is an error of user code, never a fault of the game.

Rules of an episode:
- Both sides share it: if the game, a task or the time limit ends it for one side, it ends for both.
- An env step has `step_mul` game loops, which must be the same for both rows. A bot that plays by
  itself may have turns in between. Then both games are stepped to the next turn. So no request
  waits for the other side while code of the user runs.
- In real time a side without a learner has its turns while the learner computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import Computer
from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError, GameFault
from sc2pool.game.game import Game, Step
from sc2pool.game.match import Match
from sc2pool.players.episode_results import as_one_episode, is_last
from sc2pool.players.sc2_player import SC2Player, Unstarted, facts_of
from sc2pool.players.sides import (
    OpponentSide,
    PlayedSide,
    ProtoSide,
    RunningSide,
    TaskSide,
    blamed_on_opponent,
    rows_of,
)
from sc2pool.players.task_spec import TaskSpec
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.opponents.policies import PlainBot
from sc2pool.tasks.player import Episode, GameFacts
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.tasks.task import Task
from sc2pool.tasks.teams.team_task import agents_of

if TYPE_CHECKING:
    from sc2pool.players.bots import SharedData
    from sc2pool.tasks.definition import TaskDefinition


class MatchPlayer(SC2Player):
    """Plays a task of two players.

    Args:
        spec: the task's spec. Its opponent must not be a `Computer`, which needs no second game.
    """

    def __init__(self, spec: TaskSpec) -> None:
        super().__init__(spec)
        assert not isinstance(spec.opponent, Computer)
        self._opponent = spec.opponent
        self._match: Match | None = None
        self._targets: Sequence[TaskDefinition] = ()
        self._playing: MatchEpisode | None = None

    @property
    def match(self) -> Match:
        assert self._match is not None, "the pool launches before it resets"
        return self._match

    async def launch(self, deadline: Deadline) -> Sequence[GameFacts]:
        spec = self.spec
        self._match = match = await Match.launch(
            spec.installation, spec.limits, deadline=deadline, surroundings=self._surroundings
        )
        self._game = match.host
        for game in match.games:
            game.serves_a_task = True
        return [facts_of(game) for game in match.games]

    async def play_episode(self, episode: Episode, pair: QueuePair) -> None:
        name, who = None, None
        if self._opponent is not None:
            with blamed_on_opponent():
                name, who = self._opponent.begin(episode)
        match, learners = self.match, self._learners(episode)
        self._game = match.games[learners[0]]  # the game for replays and delays
        races = [self.setup.race] * 2
        if isinstance(who, PlainBot) and who.race is not None:
            races[1 - learners[0]] = who.race
        self._reset_kind = str(
            await match.start_episode(self.setup, self.spec.map_path, episode.seed, races)
        )
        observed = await match.observe()
        self.note_seen()
        game_infos = await match.game_info()
        sides, tasks = self._new_sides(episode, learners, who, name or "")
        self._targets = [tasks[learner] for learner in learners for _ in range(self._agents)]
        self.task = self._targets[0]
        self._playing = playing = MatchEpisode(match, sides, tasks, name)
        try:
            await playing.play(observed, game_infos, pair)
        finally:
            self._playing = None

    # ---- the sides --------------------------------------------------------------------------

    def _learners(self, episode: Episode) -> Sequence[int]:
        """The learner's sides, in the order of their rows; 0 is the host."""
        return (0, 1) if self._opponent is None else (episode.number % 2,)

    def _new_sides(
        self, episode: Episode, learners: Sequence[int], who: QueuePair | PlainBot | None, name: str
    ) -> tuple[list[PlayedSide], dict[int, TaskDefinition]]:
        """New objects for an episode.

        Returns:
            The host's and the guest's side, and the task of each of the learner's sides.
        """
        sides: list[PlayedSide] = []
        tasks = {}
        for i, game in enumerate(self.match.games):
            if i not in learners and isinstance(who, PlainBot):
                from sc2pool.players.bot_sides import PlainBotSide  # noqa: PLC0415

                sides.append(PlainBotSide(who, name, game, self._shared))
                continue
            side = self._task_side(game)
            if i in learners:
                first = learners.index(i) * self._agents
                own_rows = self.attributes[first : first + self._agents]
                self.prepare(side.task, episode, own_rows)
                tasks[i] = side.task
                sides.append(side)
            else:
                assert isinstance(who, QueuePair), "an opponent is a pair or a bot"
                self.prepare(side.task, episode, ())
                side.task.max_episode_steps = None  # the learner's steps count
                sides.append(OpponentSide(side, who, name))
        return sides, tasks

    def _task_side(self, game: Game) -> TaskSide:
        definition = self.spec.task
        if issubclass(definition, Task):
            return ProtoSide(definition(), game)
        from sc2pool.players.bot_sides import RLBotSide  # noqa: PLC0415

        return RLBotSide(definition, game, self._shared)

    @property
    def _agents(self) -> int:
        """The number of rows of a learner's side."""
        return agents_of(self.spec.task)

    @cached_property
    def _shared(self) -> SharedData:
        # Imported here: only bots need python-sc2, which costs a worker 0.4 s and 80 MB.
        from sc2pool.players.bots import SharedData  # noqa: PLC0415

        return SharedData()

    def target(self, row: int = 0) -> Any:
        return self._targets[row] if self._targets else Unstarted(self)

    # ---- the processes ----------------------------------------------------------------------

    @property
    def games(self) -> Sequence[Game]:
        return self.match.games

    def exit_fault(self) -> GameFault:
        return self.match.exit_fault()

    async def pause(self) -> None:
        if self._playing is not None:
            await self._playing.rest()
        try:
            await super().pause()
        except BaseException:
            self.resume_now()
            raise

    async def resume(self) -> int | None:
        loops = await super().resume()
        self.resume_now()  # lets an opponent continue, after the games' loops were read
        return loops

    def resume_now(self) -> None:
        super().resume_now()
        if self._playing is not None:
            self._playing.go_on()

    def log_tail(self) -> str:
        return "" if self._match is None else self._match.log_tail()

    def close(self) -> None:
        if self._match is not None:
            self._match.close()


class MatchEpisode:
    """Plays one episode.

    Args:
        match: the match, whose episode has begun.
        sides: the host's side and the guest's.
        tasks: the task objects of the learner's sides, by the side's index, in the order of the
            rows.
        opponent: the opponent's name. None if the learner plays both sides.
    """

    def __init__(
        self,
        match: Match,
        sides: Sequence[PlayedSide],
        tasks: Mapping[int, TaskDefinition],
        opponent: str | None,
    ) -> None:
        self._match = match
        self._sides = sides
        self._tasks = tasks
        self._learners = tuple(tasks)
        self._opponent = opponent
        self._newest: list[Transition | None] = [None, None]
        """Each side's newest transition."""
        self._waits = [0, 0]
        """Game loops until each side's next turn."""
        self._running: RunningSide | None = None

    async def play(
        self,
        observed: Sequence[Observed],
        game_infos: Sequence[sc_pb.ResponseGameInfo],
        pair: QueuePair,
    ) -> None:
        """Play the episode to its end.

        Args:
            observed: the first observation of each side.
            game_infos: the map's description from each side's game.
            pair: the learner's queue pair.
        """
        try:
            for i, side in enumerate(self._sides):
                with self._match.naming(i):
                    self._newest[i] = await side.begin(observed[i], game_infos[i])
            if self._match.host.realtime and self._opponent is not None:
                i = 1 - self._learners[0]
                self._running = RunningSide(
                    self._match, i, self._sides[i], self._newest[i], self._loops_per_step
                )
            await self._play_on(pair)
        except Exception:
            if self._running is not None:
                self._running.cancel()  # the games of the match are not used again
            raise
        finally:
            if self._running is not None:
                await self._running.end()
            for side in self._sides:
                await side.stop()

    async def rest(self) -> None:
        """Wait until no game has a request in flight, while the learner computes."""
        if self._running is not None:
            await self._running.rest()

    def go_on(self) -> None:
        """Undo `rest`; no effect without one."""
        if self._running is not None:
            self._running.go_on()

    async def _play_on(self, pair: QueuePair) -> None:
        running = self._running
        while not any(map(is_last, self._newest)):
            pair.put_rows(await self._rows(self._newest))
            actions = await self._actions(pair)
            if running is None:
                await self._step(actions)
            else:
                await self._step_beside(running, actions)
        if running is not None:
            await running.rest()
            running.check()
        results = [side.result for side in self._sides]
        match = self._match
        last = as_one_episode(
            self._newest,
            results,
            self._opponent,
            untold_end=match.untold_end,
            contradiction=match.contradiction,
        )
        for i, side in enumerate(self._sides):
            with match.naming(i):
                await side.end(last[i])
        pair.put_rows(await self._rows(last))

    async def _rows(self, transitions: Sequence[Transition | None]) -> list[Transition]:
        """The transitions of the rows of the learner's sides."""
        rows: list[Transition] = []
        for i, task in self._tasks.items():
            transition = transitions[i]
            assert transition is not None, "the task plays this side"
            rows += await rows_of(task, transition, with_state=True)
        return rows

    async def _actions(self, pair: QueuePair) -> dict[int, Sequence[Any]]:
        """The learner's next actions: for each of its sides, the actions of the side's rows."""
        actions = iter(await pair.get_actions())
        return {i: list(islice(actions, agents_of(type(one)))) for i, one in self._tasks.items()}

    async def _step(self, actions: Mapping[int, Sequence[Any]]) -> None:
        """Play one env step: until the learner's next turn, or the end of the game.

        Args:
            actions: the learner's actions, for each of its sides.
        """
        match, sides, waits = self._match, self._sides, self._waits
        results: list[list[int]] = [[], []]
        while True:
            orders: list[list[sc_pb.Action]] = [[], []]
            due = [i for i in range(2) if not waits[i]]
            for i in due:
                with match.naming(i):
                    orders[i] = await sides[i].turn(actions.get(i, ()))
            for i in due:
                waits[i] = sides[i].loops or self._loops_per_step()
            loops = min(waits)
            step = await match.step(orders, loops)
            for i, side in enumerate(sides):
                observed, action_results, _ = step.sides[i]
                waits[i] -= loops
                if i in due:
                    results[i] = action_results
                if waits[i] and not step.ended:
                    side.game.events.keep(observed)
                    continue
                with match.naming(i):
                    self._newest[i] = await side.see(Step(observed, results[i], step.ended))
            if step.ended or not waits[self._learners[0]]:
                return

    async def _step_beside(
        self, running: RunningSide, actions: Mapping[int, Sequence[Any]]
    ) -> None:
        """Play one env step in real time, while the other side decides by itself."""
        match, sides = self._match, self._sides
        ((learner, of_learner),) = actions.items()
        running.start()
        running.check()
        with match.naming(learner):
            orders = await sides[learner].turn(of_learner)
        step = await match.step_one(learner, orders, self._loops_per_step())
        with match.naming(learner):
            self._newest[learner] = await sides[learner].see(step)
        running.check()
        self._newest[1 - learner] = running.newest

    def _loops_per_step(self) -> int:
        """Game loops per env step.

        Raises:
            ConfigError: `step_mul` differs between the rows.
        """
        loops, *others = (task.step_mul for task in self._tasks.values())
        if others and others != [loops]:
            raise ConfigError(
                f"both rows of a match step together, so step_mul must be the same for both, got "
                f"{loops!r} for player 1 and {others[0]!r} for player 2"
            )
        return loops
