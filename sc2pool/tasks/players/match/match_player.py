"""The player of a match: a task for two, on two games that play each other.

    learner 0 ─ action ─► task ─ commands ─► host  ┐
                                                   ├ one step of both ─► a transition for each
    learner 1 ─ action ─► task ─ commands ─► guest ┘
    or opponent

Rules:
- each side has an object of its own, a new one per episode, and sees what its player sees;
- without an opponent the rows are player 1's, then player 2's: one of each, or those of a team's
  agents;
- with one the rows are the learner's, who is player 1 in episodes with an even number and player 2
  in the others, so it learns both;
- both games are paused together, when neither has a request in flight;
- what an opponent raises is user code's error, never the game's fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sc2pool.config import Computer
from sc2pool.deadline import Deadline
from sc2pool.errors import GameFault
from sc2pool.game.game import Game
from sc2pool.game.match import Match
from sc2pool.tasks.opponents.bots import PlainBot
from sc2pool.tasks.player import Episode, GameFacts
from sc2pool.tasks.players.match.match_episode import MatchEpisode
from sc2pool.tasks.players.match.sides import (
    OpponentSide,
    PlayedSide,
    ProtoSide,
    TaskSide,
    blamed_on_opponent,
)
from sc2pool.tasks.players.sc2_player import SC2Player, Unstarted, facts_of
from sc2pool.tasks.players.task_spec import TaskSpec
from sc2pool.tasks.queue_pair import QueuePair
from sc2pool.tasks.task import Task
from sc2pool.tasks.teams.team_task import agents_of

if TYPE_CHECKING:
    from sc2pool.tasks.definition import TaskDefinition
    from sc2pool.tasks.players.bots.driven_bot import SharedData


class MatchPlayer(SC2Player):
    """Plays a task of two players.

    Args:
        spec: of the task; its opponent is no `Computer`, which needs no second game.
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
        self._game = match.games[learners[0]]  # whose replay and whose delays count
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
        """The learner's sides, in the order of their rows; 0 is the host's."""
        return (0, 1) if self._opponent is None else (episode.number % 2,)

    def _new_sides(
        self, episode: Episode, learners: Sequence[int], who: QueuePair | PlainBot | None, name: str
    ) -> tuple[list[PlayedSide], dict[int, TaskDefinition]]:
        """New objects for an episode.

        Returns:
            The host's and the guest's side, and the tasks of the learner's.
        """
        sides: list[PlayedSide] = []
        tasks = {}
        for i, game in enumerate(self.match.games):
            if i not in learners and isinstance(who, PlainBot):
                from sc2pool.tasks.players.match.bot_sides import PlainBotSide  # noqa: PLC0415

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
        from sc2pool.tasks.players.match.bot_sides import RLBotSide  # noqa: PLC0415

        return RLBotSide(definition, game, self._shared)

    @property
    def _agents(self) -> int:
        """How many rows a side of the learner has."""
        return agents_of(self.spec.task)

    @cached_property
    def _shared(self) -> SharedData:
        # Imported here: only bots need python-sc2, which costs a worker 0.4 s and 80 MB.
        from sc2pool.tasks.players.bots.driven_bot import SharedData  # noqa: PLC0415

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
        self.resume_now()  # an opponent goes on once its game has been looked at
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
