"""Neither the policy's first call nor a garbage collection may delay an action."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch as th
from async_callbacks import Recording
from async_models import SMALL, Counting
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.common.vec_env import DummyVecEnv

from sc2pool import AsyncDQN, AsyncPPO
from sc2pool.realtime.acting import short_collections

N = 2
PPO_OPTIONS = {"n_steps": 8, "batch_size": 16, "n_epochs": 1}
DQN_OPTIONS = {"learning_starts": 0, "exploration_initial_eps": 0.0, "exploration_final_eps": 0.0}
BOTH = pytest.mark.parametrize(
    ("kind", "options"), [(AsyncPPO, PPO_OPTIONS), (AsyncDQN, DQN_OPTIONS)]
)


class BatchesSeen(FlattenExtractor):
    """A features extractor that records the size of each batch of observations."""

    sizes: list[int]

    def forward(self, observations: th.Tensor) -> th.Tensor:
        type(self).sizes.append(len(observations))
        return super().forward(observations)


class NotesReset(Counting):
    sizes_before: list[int] | None = None

    def reset(self, **keywords: Any) -> Any:
        if NotesReset.sizes_before is None:
            NotesReset.sizes_before = list(BatchesSeen.sizes)
        return super().reset(**keywords)


@BOTH
def test_the_policy_has_chosen_once_before_the_envs_are_reset(kind, options):
    BatchesSeen.sizes, NotesReset.sizes_before = [], None
    extractor = {"features_extractor_class": BatchesSeen}
    env = DummyVecEnv([NotesReset] * N)
    kind("MlpPolicy", env, device="cpu", policy_kwargs=SMALL | extractor, **options).learn(16)
    assert NotesReset.sizes_before
    assert set(NotesReset.sizes_before) == {N}


class SetsWeights(Recording):
    """A callback that, before the first step, makes the policy choose only action 2."""

    def _on_training_start(self) -> None:
        policy: Any = self.model.policy
        last = policy.action_net if isinstance(self.model, AsyncPPO) else policy.q_net.q_net[-1]
        with th.no_grad():
            last.bias.copy_(th.tensor([-1e6, -1e6, 1e6]))


@BOTH
def test_weights_that_a_callback_has_set_are_played_from_the_first_step(kind, options):
    env = DummyVecEnv([Counting] * N)
    callback = SetsWeights()
    kind("MlpPolicy", env, device="cpu", policy_kwargs=SMALL, **options).learn(16, callback)
    assert {info["played"] for step in callback.steps for info in step["infos"]} == {2}


class SeesCollector(Recording):
    """A callback that counts the objects with and without exemption from garbage collection."""

    def _on_step(self) -> bool:
        self.exempt, self.others = gc.get_freeze_count(), len(gc.get_objects())
        return True


@pytest.fixture
def nothing_frozen() -> Iterator[None]:
    """A fixture that unfreezes the objects that the tests' configuration has frozen."""
    gc.unfreeze()
    yield
    gc.freeze()


@BOTH
@pytest.mark.usefixtures("nothing_frozen")
def test_a_collection_in_learn_looks_only_at_new_objects(kind, options):
    callback = SeesCollector()
    env = DummyVecEnv([Counting] * N)
    kind("MlpPolicy", env, device="cpu", policy_kwargs=SMALL, **options).learn(16, callback)
    assert callback.exempt > 10 * callback.others
    assert not gc.get_freeze_count()


@pytest.mark.usefixtures("nothing_frozen")
def test_objects_that_the_program_has_frozen_stay_so():
    gc.freeze()
    young: list[list[int]] = [[]]
    with short_collections():
        assert any(one is young for one in gc.get_objects())
    assert gc.get_freeze_count()
