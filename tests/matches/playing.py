"""Plays whole matches on games of the stand-in, without a pool."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from sc2pool.config import Limits
from sc2pool.deadline import Deadline
from sc2pool.game.installation import find, find_map
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.duels.marine_duel import MarineDuel
from sc2pool.tasks.player import Episode
from sc2pool.tasks.players.factory import TaskPlayerSpec
from sc2pool.tasks.players.task_spec import TaskSpec
from sc2pool.tasks.queue_pair import QueuePair, Transition
from tests.matches.recorded_rows import Policy, RecordedRows

Rows = list[list[Transition]]


class Against:
    """An opponent that plays a policy, and keeps its transitions."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.pairs: list[RecordedRows] = []

    def begin(self, episode: Episode) -> tuple[str, QueuePair]:
        self.pairs.append(RecordedRows([self._policy]))
        return f"number {episode.number}", self.pairs[-1]


@contextmanager
def player_of(
    standin_dir: Path, task: type[TaskDefinition] = MarineDuel, **spec: Any
) -> Iterator[Any]:
    """A player whose games are up; nothing of it is left in the end."""
    installation = find(standin_dir)
    made = TaskSpec(task, installation, find_map(installation, task.map_name), Limits(), **spec)
    player = TaskPlayerSpec(made).player()
    player.attributes = ({},) * player.rows
    try:
        yield player
    finally:
        player.close()
        assert psutil.Process().children(recursive=True) == []


def play(
    player: Any, policies: Sequence[Policy], seeds: Sequence[int | None], first: int = 0
) -> list[Rows]:
    """Plays an episode for each seed; each row's transitions."""

    async def run() -> list[Rows]:
        await player.launch(Deadline.after(60))
        episodes = []
        for number, seed in enumerate(seeds, first):
            pair = RecordedRows(policies)
            await player.play(Episode(number, seed), pair)
            episodes.append(pair.rows)
        return episodes

    return asyncio.run(run())


def always(action: int) -> Policy:
    return lambda _: action
