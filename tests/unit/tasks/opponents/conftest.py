"""Small models, and a task for two players that the models can play."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO

from sc2pool import Task
from sc2pool.tasks.queue_pair import QueuePair, Transition

SEEN = spaces.Box(-1.0, 1.0, (3,), np.float32)
FOUR = spaces.Discrete(4)
SHOWN = Transition(np.zeros(3, np.float32), 0.0, False, False, {})


class Nothing(gymnasium.Env[Any, Any]):
    """An env that has only spaces."""

    def __init__(self, observation_space: Any, action_space: Any) -> None:
        self.observation_space = observation_space
        self.action_space = action_space

    def action_masks(self):
        return np.ones(self.action_space.n, bool)


class Duel(Task):
    map_name = "MarineDuel"
    players = 2
    observation_space = SEEN
    action_space = FOUR


def answer(pair: QueuePair, transition: Transition = SHOWN) -> Any:
    """The action that a queue pair's player takes after this transition."""
    pair.put(transition)
    return asyncio.run(pair.get_action())


@pytest.fixture
def duel() -> type[Task]:
    return Duel


@pytest.fixture
def make_model() -> Callable[..., Any]:
    def make(
        observed: Any = SEEN,
        acts: Any = FOUR,
        *,
        masked: bool = False,
        seed: int = 0,
        policy: str = "MlpPolicy",
    ):
        algorithm = MaskablePPO if masked else PPO
        return algorithm(
            policy,
            Nothing(observed, acts),
            n_steps=8,
            batch_size=8,
            seed=seed,
            device="cpu",
            policy_kwargs={"net_arch": [8]},
        )

    return make


@pytest.fixture
def saved(make_model: Callable[..., Any], tmp_path: Path) -> Callable[..., Path]:
    def save(name: str = "model", **keywords: Any) -> Path:
        path = tmp_path / f"{name}.zip"
        make_model(**keywords).save(path)
        return path

    return save
