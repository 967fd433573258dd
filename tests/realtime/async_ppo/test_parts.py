"""`AsyncPPO`'s parts: exchange of rollouts, decoupled loss, running statistics, and model state.

The update process and the actor must work with any model that a user writes.
"""

from __future__ import annotations

import copy
import pickle
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
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from torch.nn.utils.parametrizations import spectral_norm

from sc2pool import AsyncPPO
from sc2pool.realtime.acting import FrozenStatistics
from sc2pool.realtime.acting import frozen as frozen_statistics
from sc2pool.realtime.async_ppo.decoupled import importance_weights, policy_loss
from sc2pool.realtime.async_ppo.learner import ExchangedStep, PPOChoice, RolloutStore
from sc2pool.realtime.async_ppo.update_process import UpdateProcess

N_STEPS = 3


def step(number: int, version: int = 0) -> ExchangedStep:
    choice = PPOChoice(version, number, *[None] * 4)  # type: ignore[arg-type] - the others are not read
    return ExchangedStep(choice, *[None] * 2)  # type: ignore[arg-type]


def add(store: RolloutStore, numbers: range, version: int = 0) -> list[bool]:
    return [store.add(step(number, version)) for number in numbers]


def taken(store: RolloutStore, oldest_version: int = 0) -> list[int]:
    return [step.choice.observations for step in store.follow(store.take(oldest_version))]


def test_rollouts_are_taken_whole_and_in_order():
    store = RolloutStore(N_STEPS)
    assert add(store, range(3)) == [False, False, True]
    assert taken(store) == [0, 1, 2]
    add(store, range(3, 6))
    assert taken(store) == [3, 4, 5]
    assert (store.dropped_steps, store.stale_steps) == (0, 0)


def test_a_slow_learner_gets_the_newest_rollout_and_dropped_steps_are_counted():
    store = RolloutStore(N_STEPS)
    add(store, range(10))
    assert store.dropped_steps == 6
    assert taken(store) == [6, 7, 8]
    add(store, range(10, 12))
    assert taken(store) == [9, 10, 11], "the rollout in progress is kept"
    assert store.dropped_steps == 6


def test_the_rollout_in_progress_is_followed_and_not_dropped():
    store = RolloutStore(N_STEPS)
    add(store, range(1))
    steps = store.follow(store.take(0))
    assert next(steps).choice.observations == 0
    add(store, range(1, 9))
    assert [step.choice.observations for step in steps] == [1, 2]
    assert store.dropped_steps == 3
    assert taken(store) == [6, 7, 8]


def test_fresh_steps_after_stale_ones_are_kept(wait_for):
    store = RolloutStore(N_STEPS)
    add(store, range(5), version=0)
    seen: list[int] = []
    learner = threading.Thread(target=lambda: seen.extend(taken(store, oldest_version=1)))
    learner.start()
    wait_for(lambda: store.stale_steps == 5)
    add(store, range(5, 8), version=1)
    learner.join()
    assert seen == [5, 6, 7]
    assert store.dropped_steps == 0


@pytest.mark.parametrize("woken", [True, False])
def test_an_actor_does_not_wait_for_a_learner_that_has_ended(woken):
    store = RolloutStore(N_STEPS, game_waits=True)
    acting = threading.Thread(target=add, args=(store, range(3)))
    with store.learning:
        acting.start()
    if woken:
        store.wake_actor()
    acting.join()
    assert taken(store) == [0, 1, 2]


def test_an_error_is_raised_after_the_steps_before_it():
    store = RolloutStore(N_STEPS)
    add(store, range(4))
    store.fail(ZeroDivisionError("in the env"))
    assert taken(store) == [0, 1, 2]
    steps = store.follow(store.take(0))
    assert next(steps).choice.observations == 3
    with pytest.raises(ZeroDivisionError, match="in the env"):
        next(steps)
    with pytest.raises(ZeroDivisionError, match="in the env"):
        RolloutStore.take(store, 1)


CLIP = 0.2


def tensors(seed: int, count: int) -> list[th.Tensor]:
    generator = th.Generator().manual_seed(seed)
    return [th.randn(50, generator=generator) * 0.3 for _ in range(count)]


def test_if_all_policies_are_one_it_is_ppos_loss():
    advantages, old, moved = tensors(1, 3)
    ours = (old + moved).requires_grad_()
    weights = importance_weights(old, old, cap=2.0)
    loss = policy_loss(advantages, ours, old, weights, CLIP)
    theirs = (old + moved).requires_grad_()
    ratio = th.exp(theirs - old)
    surrogate = th.min(advantages * ratio, advantages * th.clamp(ratio, 1 - CLIP, 1 + CLIP))
    expected = -surrogate.mean()
    assert loss.item() == pytest.approx(expected.item())
    loss.backward()
    expected.backward()
    th.testing.assert_close(ours.grad, theirs.grad)


def test_before_the_first_epoch_its_gradient_is_that_of_importance_sampling():
    advantages, behaviour, moved = tensors(2, 3)
    current = (behaviour + moved).requires_grad_()
    proximal = current.detach()
    weights = importance_weights(proximal, behaviour, cap=1e6)
    policy_loss(advantages, current, proximal, weights, CLIP).backward()
    expected = -th.exp(proximal - behaviour) * advantages / len(advantages)
    th.testing.assert_close(current.grad, expected)


def test_it_clips_around_the_proximal_policy_not_the_behaviour_policy():
    # The step from the behaviour policy to the proximal policy is large, and must not be clipped.
    behaviour, proximal = th.tensor([-2.0]), th.tensor([-0.5])
    current = proximal.clone().requires_grad_()
    weights = importance_weights(proximal, behaviour, cap=2.0)
    policy_loss(th.tensor([1.0]), current, proximal, weights, CLIP).backward()
    assert current.grad.item() == pytest.approx(-2.0)
    far = (proximal + 0.5).requires_grad_()
    policy_loss(th.tensor([1.0]), far, proximal, weights, CLIP).backward()
    assert far.grad.item() == 0.0


def test_importance_weights_are_capped_above_only_and_have_no_gradient():
    proximal = th.tensor([0.0, 0.0, 0.0], requires_grad=True)
    behaviour = th.log(th.tensor([0.1, 1.0, 4.0]))
    weights = importance_weights(proximal, behaviour, cap=3.0)
    assert weights.tolist() == pytest.approx([3.0, 1.0, 0.25])
    assert not weights.requires_grad


@pytest.mark.filterwarnings(
    "ignore:You have specified a mini-batch size"
)  # the last minibatch is smaller
@pytest.mark.parametrize(
    ("env_id", "options"),
    [
        ("CartPole-v1", {}),
        ("CartPole-v1", {"clip_range_vf": 0.1, "ent_coef": 0.01, "normalize_advantage": False}),
        ("CartPole-v1", {"target_kl": 1e-4, "n_epochs": 4}),
        ("Pendulum-v1", {"use_sde": True}),
    ],
)
def test_on_current_data_an_update_is_ppos(env_id, options):
    env = make_vec_env(env_id, n_envs=2, seed=1)
    models = []
    for kind in (PPO, AsyncPPO):
        arguments = {"n_steps": 64, "batch_size": 48, "n_epochs": 2, "seed": 3, **options}
        models.append(kind("MlpPolicy", env, device="cpu", **arguments))
        models[-1].set_logger(Logger(folder=None, output_formats=[]))
    theirs, ours = models
    _, callback = theirs._setup_learn(128)
    theirs.collect_rollouts(env, callback, theirs.rollout_buffer, 64)
    ours.rollout_buffer = copy.deepcopy(theirs.rollout_buffer)
    np.random.seed(5)
    np.random.permutation(128)  # because AsyncPPO draws a permutation to flatten the buffer
    theirs.train()
    np.random.seed(5)
    ours.train()
    for name, value in theirs.policy.state_dict().items():
        th.testing.assert_close(ours.policy.state_dict()[name], value, rtol=1e-3, atol=1e-5)
    for name, value in theirs.logger.name_to_value.items():
        assert ours.logger.name_to_value[name] == pytest.approx(value, rel=1e-3, abs=1e-4), name
    assert ours.logger.name_to_value["async/weight_max"] == pytest.approx(1.0, abs=1e-4)
    assert ours.logger.name_to_value["async/weight_capped"] == 0.0


def test_actions_that_the_policy_has_not_chosen_do_not_disturb_an_update():
    env = make_vec_env("Pendulum-v1", n_envs=2, seed=1)
    arguments = {"n_steps": 16, "batch_size": 16, "n_epochs": 2, "device": "cpu"}
    model = AsyncPPO("MlpPolicy", env, learning_rate=0.01, **arguments)
    with th.no_grad():
        model.policy.log_std.fill_(-5.0)
    _, callback = model._setup_learn(32)
    PPO.collect_rollouts(model, env, callback, model.rollout_buffer, 16)
    model.rollout_buffer.log_probs[:8] = np.inf
    # These actions are so far away that the ratio of probabilities overflows upwards or downwards.
    model.rollout_buffer.actions[:8] = np.array([[1e4], [-1e4]])
    model.rollout_buffer.advantages[:8] = -1e3
    before = copy.deepcopy(model.policy.state_dict())
    model.train()
    after = model.policy.state_dict()
    assert all(th.isfinite(value).all() for value in after.values())
    assert not th.equal(after["action_net.weight"], before["action_net.weight"])
    assert np.isfinite(model.logger.name_to_value["train/approx_kl"])


def figures(statistics):
    return [statistics.mean.tolist(), statistics.var.tolist(), statistics.count]


@pytest.mark.parametrize("how", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_is_of_sb3s_class_without_uncommitted_samples(how):
    ours = FrozenStatistics(RunningMeanStd(shape=(2,)))
    ours.update(np.ones((3, 2)))
    copied = how(ours)
    assert type(copied) is RunningMeanStd
    assert figures(copied) == figures(RunningMeanStd(shape=(2,)))


def test_a_wrapped_env_has_sb3s_statistics_afterwards():
    env = VecNormalize(make_vec_env("CartPole-v1", n_envs=2, seed=1))
    other = VecNormalize(make_vec_env("CartPole-v1", n_envs=2, seed=1))
    env.reset(), other.reset()
    with frozen_statistics(env) as commit:
        for index in range(7):
            seen, *_ = env.step(np.array([0, 1]))
            other.step(np.array([0, 1]))
            np.testing.assert_allclose(seen, env.normalize_obs(env.get_original_obs()))
            if index == 3:
                assert env.obs_rms.count != other.obs_rms.count
                commit()
                assert figures(env.obs_rms) == figures(other.obs_rms)
    assert type(env.obs_rms) is type(env.ret_rms) is RunningMeanStd
    assert figures(env.obs_rms) == figures(other.obs_rms)
    assert env.ret_rms.var == other.ret_rms.var


STEPS_OF_A_ROLLOUT = 16


def model_of(kind: type[AsyncPPO] = AsyncPPO, policy: Any = "MlpPolicy", **options: Any) -> Any:
    defaults = {
        "n_steps": STEPS_OF_A_ROLLOUT,
        "batch_size": STEPS_OF_A_ROLLOUT,
        "n_epochs": 2,
        "learning_rate": 0.01,
    }
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
    """Collect a rollout in the same way as PPO."""
    _, callback = model._setup_learn(STEPS_OF_A_ROLLOUT)
    assert model.env is not None
    PPO.collect_rollouts(model, model.env, callback, model.rollout_buffer, STEPS_OF_A_ROLLOUT)


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
        model.learn(STEPS_OF_A_ROLLOUT)
    assert "policy" in raised.value.__notes__[0]
    assert model.num_timesteps == 0


class Actions(BaseCallback):
    """A callback that records the actions of all steps."""

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
    model.learn(2 * STEPS_OF_A_ROLLOUT, callback=actions)
    assert set(actions.taken) == {2}
