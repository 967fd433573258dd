"""The update process and the actor work with the model that the user has made, whatever it is."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
import torch as th
from async_models import SMALL, Counted, Counting, Hiding, Linear, Locking, Obstinate
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv
from torch.nn.utils.parametrizations import spectral_norm

from sc2pool import AsyncPPO
from sc2pool.realtime.async_ppo.update_process import UpdateProcess

N_STEPS = 16


def model_of(kind: type[AsyncPPO] = AsyncPPO, policy: Any = "MlpPolicy", **options: Any) -> Any:
    defaults = {"n_steps": N_STEPS, "batch_size": N_STEPS, "n_epochs": 2, "learning_rate": 0.01}
    env = DummyVecEnv([Counting])
    model = kind(policy, env, seed=1, device="cpu", policy_kwargs=SMALL, **(defaults | options))
    model.set_logger(Logger(folder=None, output_formats=[]))
    return model


@pytest.fixture(scope="module")
def process() -> Iterator[UpdateProcess]:
    with closing(UpdateProcess(model_of())) as process:
        yield process


def frozen(model: AsyncPPO) -> None:
    for parameter in model.policy.mlp_extractor.parameters():
        parameter.requires_grad_(False)


def with_another_optimizer(model: AsyncPPO) -> None:
    nets = model.policy.mlp_extractor, model.policy.value_net
    groups = [{"params": net.parameters(), "lr": 0.1 * i} for i, net in enumerate(nets)]
    model.policy.optimizer = th.optim.SGD(groups, lr=0.1, momentum=0.9)


def with_another_network(model: AsyncPPO) -> None:
    model.policy.mlp_extractor = Linear(model.policy)
    model.policy.mlp_extractor.factor = 3.0
    model.policy.optimizer = th.optim.Adam(model.policy.parameters(), lr=0.01)


def with_a_parametrized_layer(model: AsyncPPO) -> None:
    spectral_norm(model.policy.value_net)


def with_a_hook(model: AsyncPPO) -> None:
    model.policy.value_net.register_forward_hook(lambda net, given, value: value * 2)


CHANGES = [
    frozen,
    with_another_optimizer,
    with_another_network,
    with_a_parametrized_layer,
    with_a_hook,
]


def fill_buffer(model: AsyncPPO) -> None:
    """Gather a rollout as PPO does."""
    _, callback = model._setup_learn(N_STEPS)
    assert model.env is not None
    PPO.collect_rollouts(model, model.env, callback, model.rollout_buffer, N_STEPS)


def state_of(model: AsyncPPO) -> dict[str, Any]:
    optimizer = model.policy.optimizer
    return {
        "parameters": {name: value.tolist() for name, value in model.policy.state_dict().items()},
        "frozen": [parameter.requires_grad for parameter in model.policy.parameters()],
        "optimizer": (type(optimizer), str(optimizer.state_dict())),
    }


@pytest.mark.parametrize("change", CHANGES)
def test_an_update_in_a_process_is_the_one_of_the_users_model(change, process):
    here, there = model_of(), model_of()
    for model in (here, there):
        th.manual_seed(2)
        change(model)
        fill_buffer(model)
    there.rollout_buffer = copy.deepcopy(here.rollout_buffer)
    before = state_of(there)
    for update in (here.train, lambda: process.update(there)):
        for _ in range(2):
            update()
    expected = state_of(here)
    after = state_of(there)
    assert after["parameters"] != before["parameters"]
    for name, value in expected["parameters"].items():
        np.testing.assert_allclose(after["parameters"][name], value, rtol=1e-4, atol=1e-6)
    assert after["frozen"] == expected["frozen"]
    assert after["optimizer"][0] is expected["optimizer"][0]
    assert there.logger.name_to_value.keys() == here.logger.name_to_value.keys()


def test_what_train_changes_comes_back(process):
    model = model_of(Counted)
    frozen(model)
    adam = model.policy.optimizer
    for updates in (1, 2, 3):
        fill_buffer(model)
        process.update(model)
        assert model.updates == updates
        assert (model.policy.optimizer is adam) == (updates == 1)
        assert all(p.requires_grad for p in model.policy.mlp_extractor.parameters()) == (
            updates > 1
        )
    assert isinstance(model.policy.optimizer, th.optim.SGD)
    trained = {id(one) for group in model.policy.optimizer.param_groups for one in group["params"]}
    assert trained == {id(parameter) for parameter in model.policy.parameters()}


def test_objects_that_the_user_may_hold_are_the_same_after_an_update(process):
    rate = {"now": 0.01}
    model = model_of(learning_rate=lambda progress: rate["now"])
    model.of_the_user = {"any": "thing"}
    held = [model.policy, model.policy.optimizer, *model.policy.modules()]
    held += [*model.policy.parameters(), model.lr_schedule, model.of_the_user]
    for _ in range(2):
        fill_buffer(model)
        process.update(model)
    held_now = [model.policy, model.policy.optimizer, *model.policy.modules()]
    held_now += [*model.policy.parameters(), model.lr_schedule, model.of_the_user]
    assert [id(one) for one in held_now] == [id(one) for one in held]
    rate["now"] = 0.5
    assert model.lr_schedule(1.0) == 0.5


def test_an_attribute_that_cannot_be_pickled_stays(process):
    model = model_of()
    model.lock = lock = threading.Lock()
    fill_buffer(model)
    process.update(model)
    assert model.lock is lock
    assert model._n_updates == 2
    model = model_of(Locking)
    model.lock = lock
    with pytest.raises(AttributeError, match="no attribute 'lock'"):
        process.update(model)


def test_an_attribute_that_train_removes_is_gone_and_one_that_cannot_come_back_stays(process):
    model = model_of(Hiding)
    model.removed, model.kept = 1, 2
    fill_buffer(model)
    process.update(model)
    assert not hasattr(model, "removed")
    assert model.kept == 2


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_a_policy_that_cannot_be_pickled_is_an_error_before_any_step(kind):
    model = model_of(actor=kind)
    model.policy.lock = threading.Lock()
    with pytest.raises(TypeError, match="pickle") as raised:
        model.learn(N_STEPS)
    assert "policy" in raised.value.__notes__[0]
    assert model.num_timesteps == 0


class Actions(BaseCallback):
    """Records the actions of all steps."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[int] = []

    def _on_step(self) -> bool:
        self.taken += self.locals["actions"].tolist()
        return True


def obstinate(model: AsyncPPO) -> None:
    model.policy.always = 2


def obstinate_and_changed(model: AsyncPPO) -> None:
    obstinate(model)
    with_another_network(model)


@pytest.mark.parametrize("change", [obstinate, obstinate_and_changed])
def test_the_actor_acts_with_the_users_policy(change: Callable[[AsyncPPO], None]):
    model = model_of(policy=Obstinate)
    change(model)
    actions = Actions()
    model.learn(2 * N_STEPS, callback=actions)
    assert set(actions.taken) == {2}
