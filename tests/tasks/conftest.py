"""Whole episodes of tasks on a process of the game."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from sc2pool import StarCraft2Env
from sc2pool.config import Limits
from sc2pool.deadline import Deadline
from sc2pool.envs.sb3 import SubprocSC2VecEnv
from sc2pool.game.installation import Installation, find_map
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.player import Episode
from sc2pool.tasks.players.factory import TaskPlayerSpec
from sc2pool.tasks.players.task_spec import TaskSpec
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.tasks.registry import resolve

Policy = Callable[[Any], Any]


class RecordingPair(QueuePair):
    """A queue pair that plays a policy and keeps every transition."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.transitions: list[Transition] = []

    async def get_action(self) -> Any:
        return self._policy(self.transitions[-1].observation)

    def put(self, transition: Transition) -> None:
        self.transitions.append(transition)


@pytest.fixture
def play(game_installation: Installation) -> Callable[..., list[list[Transition]]]:
    """Plays episodes of a task, one for each seed, on one game; the transitions of each."""

    async def play_all(
        task: str | type[TaskDefinition], policy: Policy, seeds: list[int], **spec: Any
    ) -> list[list[Transition]]:
        task = resolve(task)
        map_path = find_map(game_installation, task.map_name)
        made = TaskSpec(task, game_installation, map_path, Limits(), **spec)
        player = TaskPlayerSpec(made).player()
        player.attributes = ({},)
        episodes = []
        try:
            await player.launch(Deadline.after(90))
            for number, seed in enumerate(seeds):
                pair = RecordingPair(policy)
                await player.play(Episode(number, seed), pair)
                episodes.append(pair.transitions)
        finally:
            player.close()
        return episodes

    def run(
        task: str | type[TaskDefinition], policy: Policy, seeds: list[int], **spec: Any
    ) -> list[list[Transition]]:
        return asyncio.run(play_all(task, policy, seeds, **spec))

    return run


@pytest.fixture
def smac(game_installation: Installation) -> Iterator[Callable[..., StarCraft2Env]]:
    """Makes an env with SMAC's interface."""
    with ExitStack() as stack:

        def make(map_name: str, **options: Any) -> StarCraft2Env:
            env = StarCraft2Env(map_name, game=game_installation.root, **options)
            stack.callback(env.close)
            return env

        yield make


@pytest.fixture
def vec(game_installation: Installation) -> Iterator[Callable[..., SubprocSC2VecEnv]]:
    """Makes SB3's vector env."""
    with ExitStack() as stack:

        def make(task: Any, **keywords: Any) -> SubprocSC2VecEnv:
            env = SubprocSC2VecEnv(task=task, game=game_installation.root, **keywords)
            stack.callback(env.close)
            return env

        yield make
