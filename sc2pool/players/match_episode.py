"""One episode of a game: the loop over its sides.

    learner ─ action ─► side ─ orders ─► game

    learner 0 ─ action ─► side 0 ─ orders ─► host  ┐
                                                   ├ one step of both ─► a transition for each
    learner 1 ─ action ─► side 1 ─ orders ─► guest ┘
    or opponent

    begin all ─► put_rows ─► get_actions ─► turns ─► one step of all ─► see ─► put_rows …

Rules:
- Both sides of a match share the episode: if the game, a task or the time limit ends it for one
  side, it ends for both.
- An env step has `step_mul` game loops, which must be the same for both rows. A bot that plays by
  itself may have turns in between. Then both games are stepped to the next turn. So no request
  waits for the other side while code of the user runs.
- In real time a side without a learner has its turns while the learner computes.
- An `RLBotAI` without a second side asks the learner itself, in its turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import ConfigError
from sc2pool.game.game import Step
from sc2pool.game.match import Match
from sc2pool.players.episode_results import as_one_episode, is_last
from sc2pool.players.sides import PlayedSide, ProtoSide, RunningSide, rows_of
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.tasks.task import TaskDefinition
from sc2pool.tasks.teams.team_task import agents_of


class MatchEpisode:
    """Plays one episode.

    Args:
        match: the games, whose episode has begun.
        sides: the host's side, and the guest's in a match.
        tasks: the task objects whose rows this loop serves, by the side's index, in the order of
            the rows. Empty if a bot alone asks the learner itself.
        opponent: the name of the computer, policy or bot that plays against the learner. None
            without one.
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
        """The side whose turns are the env steps."""
        self._opponent = opponent
        self._waits = [0] * len(sides)
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
                    await side.begin(observed[i], game_infos[i])
            if self._match.host.realtime and len(self._sides) > len(self._tasks) > 0:
                i = 1 - self._learner
                self._running = RunningSide(self._match, i, self._sides[i], self._loops_per_step)
            await self._play_on(pair)
            await self._end(pair)
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
        """Play until a side has its last transition."""
        if len(self._sides) == 1 and isinstance(self._sides[0], ProtoSide):
            await self._sides[0].play_alone(pair)
            return
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
        results: list[list[int]] = [[] for _ in sides]
        while True:
            orders: list[list[sc_pb.Action]] = [[] for _ in sides]
            due = [i for i, wait in enumerate(waits) if not wait]
            for i in due:
                with match.naming(i):
                    orders[i] = await sides[i].turn(actions.get(i, ()))
            if self._is_over():  # a bot that asks the learner itself has ended it in its turn
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
