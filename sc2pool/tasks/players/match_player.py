"""The player of a match: a task for two, on two games that play each other.

    learner 0 ─ action ─► task ─ commands ─► host  ┐
                                                   ├ one step of both ─► a transition for each
    learner 1 ─ action ─► task ─ commands ─► guest ┘
    or opponent

Rules:
- each side has a task object of its own, a new one per episode, and sees what its player sees;
- without an opponent there are two rows: player 1's, then player 2's;
- with one there is one row: the learner is player 1 in episodes with an even number and player 2 in
  the others, so it learns both;
- it is one episode: if the game, a task or the time limit ends it for one side, it ends for both;
- the step is as long as the first row's task says;
- what an opponent raises is user code's error, never the game's fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import Computer
from sc2pool.deadline import Deadline
from sc2pool.errors import GameFault, UserCodeError
from sc2pool.game.game import Game, Step
from sc2pool.game.match.match import Match
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.commands import as_actions
from sc2pool.tasks.episode_rules import EpisodeRules, awaited
from sc2pool.tasks.opponents.opponent import Opponent
from sc2pool.tasks.opponents.results import OPPONENT, RESULT
from sc2pool.tasks.player import Episode, GameFacts
from sc2pool.tasks.players.replays import LastHeld
from sc2pool.tasks.players.sc2_player import TaskPlayer, Unstarted, facts_of
from sc2pool.tasks.players.task_spec import TaskSpec
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.tasks.task import Task


class PlayedSide:
    """One side of an episode: its task object on its game.

    Attributes:
        task: of this episode.
        game: of this side.
    """

    def __init__(self, task: Task, game: Game) -> None:
        self.task = task
        self.game = game
        self._rules = EpisodeRules(task)

    async def begin(self, observed: Observed, game_info: sc_pb.ResponseGameInfo) -> Transition:
        """Show the task the first observation."""
        task = self.task
        task.lazy_observation = observed
        task.game = self.game
        task.game_info = game_info
        await awaited(task.on_start())
        return await self._rules.transition(observed.game_loop, observed.score)

    async def commands(self, action: Any) -> list[sc_pb.Action]:
        """What the task makes of an action."""
        commands = as_actions(await awaited(self.task.act(action)))
        self.task.last_action = action
        return commands

    async def see(self, step: Step, *, ended: bool) -> Transition:
        """Show the task what the step brought."""
        task, observed = self.task, step.observed
        task.action_results = tuple(step.action_results)
        task.lazy_observation = observed
        return await self._rules.transition(observed.game_loop, observed.score, game_ended=ended)


class MatchPlayer(TaskPlayer):
    """Plays a `Task` of two players.

    Args:
        spec: of the task.
        opponent: who plays one of the sides; None if both are the learner's.
    """

    def __init__(self, spec: TaskSpec, opponent: Opponent | None) -> None:
        super().__init__(spec)
        self.rows = 1 if opponent is not None else 2
        self._opponent = opponent
        self._match: Match | None = None
        self._targets: Sequence[Task] = ()

    @property
    def match(self) -> Match:
        assert self._match is not None, "the pool launches before it resets"
        return self._match

    async def launch(self, deadline: Deadline) -> Sequence[GameFacts]:
        spec = self.spec
        self._match = match = await Match.launch(
            spec.installation, spec.limits, deadline=deadline, directory=self.directory
        )
        self._game = match.host  # whose replay is kept
        return [facts_of(game) for game in match.games]

    async def play_episode(self, episode: Episode, pair: QueuePair) -> None:
        opponent, name = None, None
        if self._opponent is not None:
            with blamed_on_opponent():
                name, opponent = self._opponent.begin(episode)
        match = self.match
        self._reset_kind = str(
            await match.start_episode(self.setup, self.spec.map_path, episode.seed)
        )
        observed = await match.observe()
        game_infos = await match.game_info()
        learners = self._learners(episode)
        sides = self._new_sides(episode, learners)
        begun = zip(sides, observed, game_infos, strict=True)
        transitions = [await side.begin(seen, game_info) for side, seen, game_info in begun]
        while True:
            pair.put_rows([transitions[learner] for learner in learners])
            actions = dict(zip(learners, await pair.get_actions(), strict=True))
            if opponent is not None:
                (theirs,) = {0, 1} - {*learners}
                with blamed_on_opponent(name):
                    opponent.put(transitions[theirs])
                    actions[theirs] = await opponent.get_action()
            commands = [await side.commands(actions[i]) for i, side in enumerate(sides)]
            step = await match.step(commands, sides[learners[0]].task.step_mul)
            transitions = [
                await side.see(of_side, ended=step.ended)
                for side, of_side in zip(sides, step.sides, strict=True)
            ]
            if any(one.terminated or one.truncated for one in transitions):
                break
        transitions = as_one_episode(transitions, [side.game.result for side in sides], name)
        if opponent is not None:
            (theirs,) = {0, 1} - {*learners}
            with blamed_on_opponent(name):
                opponent.put(transitions[theirs])
        pair.put_rows([transitions[learner] for learner in learners])

    def _learners(self, episode: Episode) -> Sequence[int]:
        """The sides that are rows, in the order of the rows; 0 is the host's."""
        return (0, 1) if self._opponent is None else (episode.number % 2,)

    def _new_sides(self, episode: Episode, learners: Sequence[int]) -> list[PlayedSide]:
        sides = []
        for side, game in enumerate(self.match.games):
            task = self.spec.task()
            assert isinstance(task, Task)
            of_row = self.attributes[learners.index(side)] if side in learners else {}
            self.prepare(task, episode, of_row)
            sides.append(PlayedSide(task, game))
        self._targets = [sides[learner].task for learner in learners]
        self.task = self._targets[0]
        return sides

    def target(self, row: int = 0) -> Any:
        return self._targets[row] if self._targets else Unstarted(self)

    # ---- the processes ----------------------------------------------------------------------

    @property
    def exited_fds(self) -> Sequence[int]:
        return [game.exited_fd for game in self.match.games]

    def exit_fault(self) -> GameFault:
        return self.match.exit_fault()

    @property
    def recycle_due(self) -> bool:
        return self.match.recycle_due

    @property
    def processes(self) -> tuple[Sequence[int], bool]:
        return [game.root_pid for game in self.match.games], True

    def log_tail(self) -> str:
        return "" if self._match is None else self._match.log_tail()

    def close(self) -> None:
        if self._match is not None:
            self._match.close()


class ComputerMatchPlayer(TaskPlayer):
    """Plays a `Task` of two players against the game's own computer, in one process."""

    def __init__(self, spec: TaskSpec, computer: Computer) -> None:
        super().__init__(spec)
        self._name = f"computer-{sc_pb.Difficulty.Name(computer.difficulty)}"

    async def play_episode(self, episode: Episode, pair: QueuePair) -> None:
        held = LastHeld(pair)
        await super().play_episode(episode, held)
        (last,) = held.last
        pair.put(with_result(last, self.game.result, self._name))


def as_one_episode(
    transitions: Sequence[Transition], results: Sequence[int | None], opponent: str | None
) -> list[Transition]:
    """The last transitions of both sides, which agree on the end, and say how it came out.

    Args:
        transitions: of which at least one ends the episode.
        results: each side's `Result`; None if the game went on.
        opponent: the name of who played the learner's opponent; None if a learner did.
    """
    terminated = any(one.terminated for one in transitions)
    truncated = any(one.truncated for one in transitions)
    return [
        with_result(one, result, opponent)._replace(terminated=terminated, truncated=truncated)
        for one, result in zip(transitions, results, strict=True)
    ]


def with_result(last: Transition, result: int | None, opponent: str | None) -> Transition:
    """An episode's last transition, whose info says how it came out."""
    info = {**last.info, RESULT: _NAMES.get(result, "undecided")}
    if opponent is not None:
        info[OPPONENT] = opponent
    return last._replace(info=info)


_NAMES: Mapping[int | None, str] = {
    sc_pb.Victory: "win",
    sc_pb.Defeat: "loss",
    sc_pb.Tie: "tie",
}
"""What an info calls the results of a game; every other is undecided."""


@contextmanager
def blamed_on_opponent(name: str | None = None) -> Iterator[None]:
    """Let an exception say that the opponent raised it."""
    who = "the opponent" if name is None else f"the opponent {name!r}"
    try:
        yield
    except GameFault as fault:  # it is no game
        raise UserCodeError(f"{who} raised {fault!r}") from fault
    except Exception as error:
        error.add_note(f"{who} raised it, not the task")
        raise
