"""One episode of a match, from the first transitions of its sides to the last.

    begin both ─► put_rows ─► get_actions ─► turns ─► one step of both ─► see ─► put_rows …

Rules:
- it is one episode: if the game, a task or the time limit ends it for one side, it ends for both;
- an env step is as long as the task's `step_mul` says, which is the same for both rows; a bot that
  plays by itself may have its turns in between, and then both games are stepped as far as the next
  turn. So no request waits for the other side while code of the user runs;
- in real time a side that is not the learner's has its turns while the learner computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import ConfigError
from sc2pool.game.game import Step
from sc2pool.game.match import Match
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.players.match.running_side import RunningSide
from sc2pool.tasks.players.match.sides import PlayedSide
from sc2pool.tasks.players.outcome import as_one_episode, is_last
from sc2pool.tasks.players.rows import rows_of
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.tasks.teams.team_task import agents_of


class MatchEpisode:
    """Plays one episode.

    Args:
        match: whose episode has begun.
        sides: the host's and the guest's.
        tasks: the task objects of the learner's sides, in the order of the rows.
        opponent: the name of who plays the other side; None if both are rows.
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
        """Play it to its end, from what each side sees first, and its description of the map."""
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
        """Returns when no game has a request in flight; the learner is computing."""
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
        """The learner's next actions: for each of its sides those of the side's rows."""
        actions = iter(await pair.get_actions())
        return {i: list(islice(actions, agents_of(type(one)))) for i, one in self._tasks.items()}

    async def _step(self, actions: Mapping[int, Sequence[Any]]) -> None:
        """Play one env step: until the learner's next turn, or the end of the game.

        Args:
            actions: of the learner, for each of its sides.
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
        """Play one env step in real time, beside the other side, which decides by itself."""
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
            ConfigError: the rows differ in it.
        """
        loops, *others = (task.step_mul for task in self._tasks.values())
        if others and others != [loops]:
            raise ConfigError(
                f"both rows of a match step together, so step_mul must be the same for both, got "
                f"{loops!r} for player 1 and {others[0]!r} for player 2"
            )
        return loops
