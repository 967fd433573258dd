"""One episode of a game: its sides, the loop over them, and the results in its last infos.

    One game: learner ─ action ─► side ─ orders ─► game.

    A match:
    learner 0             ─ action ─► side 0 ─ orders ─► host  ┐
    learner 1 or opponent ─ action ─► side 1 ─ orders ─► guest ┴ one step of both ─► transitions.

    Loop: begin all ─► put_rows ─► get_actions ─► turns ─► one step of all ─► see ─► put_rows ….

Rules of the episode:
* Both sides of a match share the episode: if the game, a task or the time limit ends the episode
  for one side, it ends for both sides, and their results are opposite.
* An env step has `step_mul` game loops, a number that must be the same for both rows. A bot that
  plays by itself may have turns within an env step. Both games are first stepped to the bot's turn,
  so that no request waits for the other side while the user's code runs.

Rules of a side: a game has one side, or two in a match. A side gets its own player's observations,
and its object lives for one episode. Sides differ only in the source of their decisions: a row of
the learner, an opponent's policy, or a bot. Only the side itself sets its `newest` transition.

In real time a side that decides by itself follows its game, not the learner (`RunningSide`):

    Learner   ── action ─ period ─► ┄┄┄ computes ┄┄┄ ── action ─ period ─►.
    The side  ── turn ─ period ─ turn ─ period ─ turn ─ period ─ turn ─►.

Rules: the turns of a side that decides by itself continue while the learner computes, until the
learner's episode is over. The side's exceptions are raised in the learner's next step. When the
side rests, for a pause or at the end, its game has no request in flight.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import Computer
from sc2pool.errors import ActionError, ConfigError, GameFault, ObservationError, UserCodeError
from sc2pool.game.game import Game, Step
from sc2pool.game.match import Match
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.episode_rules import DrivenTask, as_result, awaited
from sc2pool.tasks.opponents.results import CONTRADICTION, OPPONENT, RESULT, UNTOLD_END
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.tasks.task import Task, TaskDefinition, TeamTask, agents_of


class PlayedSide(ABC):
    """The interface of a game's sides."""

    game: Game
    newest: Transition | None = None
    """The newest transition; None if no task plays the side. If a bot puts its transitions itself,
    `newest` is None until the last transition."""

    @property
    def result(self) -> int | None:
        """The episode's result, a `sc2api_pb2.Result`; None if undecided."""
        return self.game.result

    @property
    def loops(self) -> int | None:
        """Game loops from turn to turn; None if the side's turns are the learner's steps."""
        return None

    @abstractmethod
    async def begin(self, observed: Observed, game_info: sc_pb.ResponseGameInfo) -> None:
        """Show the side the first observation."""

    @abstractmethod
    async def turn(self, actions: Sequence[Any]) -> list[sc_pb.Action]:
        """The turn's orders; `actions` (one per row) is empty if no learner plays the side."""

    @abstractmethod
    async def see(self, step: Step) -> None:
        """Show the side the result of a step."""

    async def end(self, last: Transition | None) -> None:  # noqa: B027 - few sides need it
        """End the side's episode with this last transition."""

    async def stop(self) -> None:  # noqa: B027 - only a bot has something to stop
        """Stop a turn that is still running."""


class TaskSide(PlayedSide):
    """A side played through an object of the task's class."""

    task: TaskDefinition


class ProtoSide(TaskSide):
    """A side of a `Task`."""

    task: Task

    def __init__(self, task: Task, game: Game) -> None:
        self.task = task
        self.game = game
        self._driven = DrivenTask(task)

    async def begin(self, observed: Observed, game_info: sc_pb.ResponseGameInfo) -> None:
        await self._driven.begin(self.game, observed, game_info)
        self.newest = await self._driven.transition()

    @property
    def result(self) -> int | None:
        return as_result(self.task, self.task.result())

    async def turn(self, actions: Sequence[Any]) -> list[sc_pb.Action]:
        return await self._driven.turn(as_taken(self.task, actions))

    async def see(self, step: Step) -> None:
        self.newest = await self._driven.see(step, self.game.tick)

    async def play_alone(self, pair: QueuePair) -> None:
        """Play the only side up to its last transition, which the caller puts."""
        task, driven, game = self.task, self._driven, self.game
        is_team = isinstance(task, TeamTask)
        take = pair.get_actions if is_team else pair.get_action
        transition = self.newest
        assert transition is not None, "it begins before its first turn"
        while not driven.rules.over:
            if is_team:
                pair.put_rows(await rows_of(task, transition, with_state=True))
            else:
                pair.put(transition)
            step = await game.step(await driven.turn(await take()), task.step_mul)
            transition = await driven.see(step, game.tick)
        self.newest = transition


class OpponentSide(PlayedSide):
    """A side of the task whose actions come from an opponent's queue pair."""

    def __init__(self, side: TaskSide, pair: QueuePair, name: str) -> None:
        self.game = side.game
        self._side = side
        self._pair = pair
        self._name = name

    async def begin(self, observed: Observed, game_info: sc_pb.ResponseGameInfo) -> None:
        await self._side.begin(observed, game_info)
        self.newest = self._side.newest

    @property
    def result(self) -> int | None:
        return self._side.result

    async def turn(self, actions: Sequence[Any]) -> list[sc_pb.Action]:  # noqa: ARG002
        assert self.newest is not None, "it begins before its first turn"
        await self._show(self.newest)
        with blamed_on_opponent(self._name):
            decided = await self._pair.get_actions()
            n = agents_of(type(self._side.task))
            if len(decided) != n:
                raise ActionError(f"got {len(decided)} actions for {n} agents")
        return await self._side.turn(decided)

    async def see(self, step: Step) -> None:
        await self._side.see(step)
        self.newest = self._side.newest

    async def end(self, last: Transition | None) -> None:
        assert last is not None, "the task plays this side"
        await self._show(last)
        await self._side.end(last)

    async def stop(self) -> None:
        await self._side.stop()

    async def _show(self, transition: Transition) -> None:
        """Split a transition into the agents' rows, which the opponent gets without the state."""
        rows = await rows_of(self._side.task, transition, with_state=False)
        with blamed_on_opponent(self._name):
            self._pair.put_rows(rows)


@contextmanager
def blamed_on_opponent(name: str | None = None, *, has_game: bool = False) -> Iterator[None]:
    """If the block raises an exception, add a note that the opponent raised it.

    Without `has_game` the opponent uses no game of the match, so its `GameFault` is an error of
    user code.
    """
    who = "the opponent" if name is None else f"the opponent {name!r}"
    try:
        yield
    except GameFault as fault:
        if has_game:
            raise
        raise UserCodeError(f"{who} raised {fault!r}") from fault
    except Exception as error:
        error.add_note(f"{who} raised it, not the task")
        raise


class RunningSide:
    """Runs a side (0: host) in real time; a turn has the side's number of loops, else `loops`."""

    def __init__(
        self,
        match: Match,
        index: int,
        side: PlayedSide,
        loops: Callable[[], int],
    ) -> None:
        self._match = match
        self._index = index
        self._side = side
        self._loops = loops
        self._turn = asyncio.Lock()
        """A lock that is held during a turn and its period, and while the side rests."""
        self._rests = False
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin the first turn; no effect if the turns have begun."""
        if self._running is None:
            self._running = asyncio.ensure_future(self._run())

    def check(self) -> None:
        """Raise the side's exception, if any."""
        if self._running is not None and self._running.done():
            self._running.result()

    async def _run(self) -> None:
        match, index, side = self._match, self._index, self._side
        ended = False
        while not (ended or is_last(side.newest)):
            async with self._turn:
                with match.naming(index):
                    orders = await side.turn(())
                step = await match.step_one(index, orders, side.loops or self._loops())
                with match.naming(index):
                    await side.see(step)
                ended = step.ended

    async def rest(self) -> None:
        """Wait for the end of the newest turn's period. The next turn then waits for `go_on`."""
        if not self._rests:
            await self._turn.acquire()
            self._rests = True

    def go_on(self) -> None:
        """Let the turns continue; no effect if the side does not rest."""
        if self._rests:
            self._rests = False
            self._turn.release()

    def cancel(self) -> None:
        """Cancel the running turn. The side's game cannot be used afterwards."""
        running = self._running
        if running is not None and not running.cancel() and not running.cancelled():
            running.exception()  # ignored, because another exception has ended the episode


async def rows_of(
    task: TaskDefinition, transition: Transition, *, with_state: bool
) -> list[Transition]:
    """Split a task's transition into one for each agent, with the state only if `with_state`.

    ObservationError if the number of observations or masks is not the number of agents.
    """
    if not isinstance(task, TeamTask):
        return [transition]
    n = len(task.agents)
    observations = _one_each("observe", transition.observation, n)
    if task.shares_state and with_state:
        state = await awaited(task.state())
        observations = [{"observation": own, "state": state} for own in observations]
    masks: Sequence[Any] = [None] * n
    if transition.action_masks is not None:
        masks = _one_each("action_masks", transition.action_masks, n)
    return [
        transition._replace(observation=observation, action_masks=mask)
        for observation, mask in zip(observations, masks, strict=True)
    ]


def as_taken(task: TaskDefinition, actions: Sequence[Any]) -> Any:
    """The argument for the task's `act`: all actions for a team task, else the single action."""
    if isinstance(task, TeamTask):
        return actions
    (action,) = actions
    return action


def _one_each(hook: str, returned: Any, n: int) -> Sequence[Any]:
    is_list = isinstance(returned, Sequence) or (isinstance(returned, np.ndarray) and returned.ndim)
    if not is_list or len(returned) != n:
        got = len(returned) if is_list else f"{returned!r:.80}"
        raise ObservationError(
            f"{hook}() of a team must return one for each of its {n} agents, got {got}"
        )
    return list(returned)


class MatchEpisode:
    """Plays one episode of a match, which has begun in the games.

    Args:
        sides: The host's side and, in a match, the guest's side.
        tasks: The task objects whose rows this loop serves, by the side's index, in the order of
            the rows. `tasks` is empty if the only side is a bot that asks the learner itself.
        opponent: The name of the computer, policy or bot that plays against the learner, or None.
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
        self._learner = next(iter(tasks), 0)
        """The index of the side whose turns are the env steps."""
        self._opponent = opponent
        self._waits = [0] * len(sides)
        """The number of game loops until each side's next turn."""
        self._running: RunningSide | None = None

    async def play(
        self,
        observed: Sequence[Observed],
        game_infos: Sequence[sc_pb.ResponseGameInfo],
        pair: QueuePair,
    ) -> None:
        """Play the episode, which begins with each side's first observation and map."""
        try:
            for i, side in enumerate(self._sides):
                with self._match.naming(i):
                    await side.begin(observed[i], game_infos[i])
            if self._match.host.realtime and len(self._sides) > len(self._tasks) > 0:
                i = 1 - self._learner
                self._running = RunningSide(self._match, i, self._sides[i], self._loops_per_step)
            alone = self._sides[0] if len(self._sides) == 1 else None
            if isinstance(alone, ProtoSide):
                await alone.play_alone(pair)
            else:
                await self._play_on(pair)
            await self._end(pair)
        except Exception:
            if self._running is not None:
                self._running.cancel()  # the games of this match are not used again
            raise
        finally:
            if self._running is not None:
                await self._running.rest()
                self._running.cancel()
            for side in self._sides:
                await side.stop()

    async def rest(self) -> None:
        """While the learner computes, wait until no game has a request in flight."""
        if self._running is not None:
            await self._running.rest()

    def go_on(self) -> None:
        """Undo a call of `rest`; no effect without such a call."""
        if self._running is not None:
            self._running.go_on()

    async def _play_on(self, pair: QueuePair) -> None:
        """Play until a side has its last transition."""
        while not self._is_over():
            actions: Mapping[int, Sequence[Any]] = {}
            if self._tasks:
                pair.put_rows(await self._rows([side.newest for side in self._sides]))
                actions = await self._actions(pair)
            if self._running is None:
                await self._step(actions)
            else:
                await self._step_beside(self._running, actions)

    def _is_over(self) -> bool:
        return any(is_last(side.newest) for side in self._sides)

    async def _end(self, pair: QueuePair) -> None:
        """End the episode for all sides, and put the last transitions, with the results."""
        match, running = self._match, self._running
        if running is not None:
            await running.rest()
            running.check()
        last: Sequence[Transition | None] = [side.newest for side in self._sides]
        untold_end = match.untold_end
        if len(last) > 1 or self._opponent is not None or untold_end:
            last = as_one_episode(
                last,
                [side.result for side in self._sides],
                self._opponent,
                untold_end=untold_end,
                contradiction=match.contradiction,
            )
        for i, side in enumerate(self._sides):
            with match.naming(i):
                await side.end(last[i])
        if self._tasks:
            pair.put_rows(await self._rows(last))

    async def _rows(self, transitions: Sequence[Transition | None]) -> list[Transition]:
        """One transition for each of the learner's rows."""
        rows: list[Transition] = []
        for i, task in self._tasks.items():
            transition = transitions[i]
            assert transition is not None, "the task plays this side"
            rows += await rows_of(task, transition, with_state=True)
        return rows

    async def _actions(self, pair: QueuePair) -> dict[int, Sequence[Any]]:
        """The learner's next actions: for each side of the learner, the actions of its rows."""
        actions = iter(await pair.get_actions())
        return {i: list(islice(actions, agents_of(type(one)))) for i, one in self._tasks.items()}

    async def _step(self, actions: Mapping[int, Sequence[Any]]) -> None:
        """Play one env step with each side's actions, up to the learner's next turn or the end."""
        match, sides, waits = self._match, self._sides, self._waits
        results: list[list[int]] = [[] for _ in sides]
        while True:
            orders: list[list[sc_pb.Action]] = [[] for _ in sides]
            due = [i for i, wait in enumerate(waits) if not wait]
            for i in due:
                with match.naming(i):
                    orders[i] = await sides[i].turn(actions.get(i, ()))
            if self._is_over():  # a bot that asks the learner itself has ended the episode
                return
            for i in due:
                loops = sides[i].loops
                waits[i] = self._loops_per_step() if loops is None else loops
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
                    await side.see(Step(observed, results[i], step.ended))
            if step.ended or not waits[self._learner]:
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
            await sides[learner].see(step)
        running.check()

    def _loops_per_step(self) -> int:
        """Game loops per env step; ConfigError if `step_mul` differs between the rows."""
        loops, *others = (task.step_mul for task in self._tasks.values())
        if others and others != [loops]:
            raise ConfigError(
                f"both rows of a match step together, so step_mul must be the same for both, got "
                f"{loops!r} for player 1 and {others[0]!r} for player 2"
            )
        return loops


_NAMES: Mapping[int | None, str] = {
    sc_pb.Victory: "win",
    sc_pb.Defeat: "loss",
    sc_pb.Tie: "tie",
}
"""The names that a game's results have in an info. Every other result is "undecided"."""


def is_last(transition: Transition | None) -> bool:
    """True if this transition ends the episode; None is from a side that decides by itself."""
    return transition is not None and (transition.terminated or transition.truncated)


def as_one_episode(
    transitions: Sequence[Transition | None],
    results: Sequence[int | None],
    opponent: str | None,
    *,
    untold_end: str,
    contradiction: str,
) -> list[Transition | None]:
    """The last transitions of both sides, with equal end flags and with the results in the infos.

    Args:
        transitions: Each side's newest transition or None; at least one ends the episode.
        results: Each side's result; None if the game continued, or did not report one.
        opponent: The opponent's name; None without an opponent, or against a learner.
        untold_end: See `Game`.
        contradiction: See `Match`.
    """
    present = [one for one in transitions if one is not None]
    terminated = any(one.terminated for one in present)
    truncated = any(one.truncated for one in present)
    told = {OPPONENT: opponent, UNTOLD_END: untold_end, CONTRADICTION: contradiction}
    told = {key: value for key, value in told.items() if value}

    def ended(last: Transition, result: int | None) -> Transition:
        info = {**last.info, RESULT: _NAMES.get(result, "undecided"), **told}
        return last._replace(terminated=terminated, truncated=truncated, info=info)

    both = zip(transitions, results, strict=True)
    return [one and ended(one, result) for one, result in both]


def name_of(computer: Computer) -> str:
    """The name of a computer opponent."""
    return f"computer-{sc_pb.Difficulty.Name(computer.difficulty)}"
