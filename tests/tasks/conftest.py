"""Fixtures that play whole episodes of tasks on a process of the game."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sc2pool.envs.sb3 import SubprocSC2VecEnv
from sc2pool.game.program.installation import Installation
from sc2pool.smac import StarCraft2Env
from sc2pool.tasks.queue_pair import Transition
from sc2pool.tasks.registry import resolve_task
from sc2pool.tasks.task import TaskDefinition
from tests.matches import playing
from tests.matches.playing import Policy


@pytest.fixture(scope="session")
def play(
    game_installation: Installation, standin_dir: Path, tempered: Callable[[str], Path]
) -> Callable[..., list[list[Transition]]]:
    """Plays episodes of a task on one game, one per seed; returns the transitions of each episode.

    The stand-in has no tempers (quirks) here; the games of the published scores had none either.
    """
    root = game_installation.root
    root = tempered("kind") if root == standin_dir else root

    def run(
        task: str | type[TaskDefinition], policy: Policy, seeds: list[int], **spec: Any
    ) -> list[list[Transition]]:
        with playing.player_of(root, resolve_task(task), **spec) as player:
            return [transitions for (transitions,) in playing.play(player, [policy], seeds)]

    return run


@pytest.fixture
def smac(game_installation: Installation) -> Iterator[Callable[..., StarCraft2Env]]:
    """Makes an env with SMAC's interface."""
    with ExitStack() as stack:

        def make(map_name: Any, **options: Any) -> StarCraft2Env:
            env = StarCraft2Env(map_name, game=game_installation.root, **options)
            stack.callback(env.close)
            return env

        yield make


@pytest.fixture
def vec(game_installation: Installation) -> Iterator[Callable[..., SubprocSC2VecEnv]]:
    """Makes SB3's vector env; by default, the env has one game."""
    with ExitStack() as stack:

        def make(task: Any, n: int = 1, **keywords: Any) -> SubprocSC2VecEnv:
            env = SubprocSC2VecEnv(n=n, task=task, game=game_installation.root, **keywords)
            stack.callback(env.close)
            return env

        yield make
