"""Plays whole episodes and matches on games, without a pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sc2pool.config import Limits
from sc2pool.deadline import Deadline
from sc2pool.game.program.installation import find_installation, find_map
from sc2pool.players.factory import TaskPlayerSpec
from sc2pool.players.task_spec import TaskSpec
from sc2pool.tasks.marine_duel import MarineDuel
from sc2pool.tasks.player import Episode
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.tasks.task import TaskDefinition

Policy = Callable[[Any], Any]
Rows = list[list[Transition]]


class RecordedRows(QueuePair):
    """A queue pair that plays a policy in each row, and keeps all transitions.

    Attributes:
        rows: The transitions of each row.
    """

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._policies = policies
        self.rows: Rows = [[] for _ in policies]

    async def get_action(self) -> Any:
        (action,) = await self.get_actions()
        return action

    def put(self, transition: Transition) -> None:
        self.put_rows([transition])

    async def get_actions(self) -> Sequence[Any]:
        rows = zip(self._policies, self.rows, strict=True)
        return [policy(transitions[-1].observation) for policy, transitions in rows]

    def put_rows(self, transitions: Sequence[Transition]) -> None:
        for row, transition in zip(self.rows, transitions, strict=True):
            row.append(transition)


class Against:
    """An opponent that plays a policy for each agent of its side, and keeps the transitions.

    Attributes:
        pairs: A queue pair for each episode.
    """

    def __init__(self, *policies: Policy) -> None:
        self._policies = policies
        self.pairs: list[RecordedRows] = []

    def begin(self, episode: Episode) -> tuple[str, QueuePair]:
        self.pairs.append(RecordedRows(self._policies))
        return f"number {episode.number}", self.pairs[-1]


def new_player(game: Path, task: type[TaskDefinition], **spec: Any) -> Any:
    """A player of a task on an installation; its games are not launched."""
    installation = find_installation(game)
    made = TaskSpec(task, installation, find_map(installation, task.map_name), Limits(), **spec)
    player = TaskPlayerSpec(made).player()
    player.attributes = ({},) * player.rows
    return player


@contextmanager
def player_of(game: Path, task: type[TaskDefinition] = MarineDuel, **spec: Any) -> Iterator[Any]:
    """A player; `play` launches its games, which are ended at the end of the block."""
    with closing(new_player(game, task, **spec)) as player:
        yield player


def play(player: Any, policies: Sequence[Policy], seeds: Sequence[int]) -> list[Rows]:
    """Plays an episode for each seed; returns each row's transitions."""
    pairs = [RecordedRows(policies) for _ in seeds]
    play_through(player, pairs, seeds)
    return [pair.rows for pair in pairs]


def play_through(player: Any, pairs: Sequence[QueuePair], seeds: Sequence[int]) -> None:
    """Plays an episode for each seed, through these queue pairs."""

    async def run() -> None:
        await player.launch(Deadline.after(90))
        for number, (pair, seed) in enumerate(zip(pairs, seeds, strict=True)):
            await player.play(Episode(number, seed), pair)

    asyncio.run(run())


def always(action: int) -> Policy:
    return lambda _: action
