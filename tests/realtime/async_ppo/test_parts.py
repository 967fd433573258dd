"""`AsyncPPO`'s parts: the exchange of rollouts, the decoupled loss, frozen running statistics."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
import torch as th
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecNormalize

from sc2pool import AsyncPPO
from sc2pool.realtime.async_ppo.actor import FrozenStatistics, frozen
from sc2pool.realtime.async_ppo.decoupled import importance_weights, policy_loss
from sc2pool.realtime.async_ppo.exchange import RolloutStore, Step

N_STEPS = 3


def step(number: int, version: int = 0) -> Step:
    return Step(version, number, *[None] * 9)  # type: ignore[arg-type] - the others are not read


def add(store: RolloutStore, numbers: range, version: int = 0) -> list[bool]:
    return [store.add(step(number, version)) for number in numbers]


def taken(store: RolloutStore, oldest_version: int = 0) -> list[int]:
    return [step.observations for step in store.follow(store.take(oldest_version))]


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
    assert next(steps).observations == 0
    add(store, range(1, 9))
    assert [step.observations for step in steps] == [1, 2]
    assert store.dropped_steps == 3
    assert taken(store) == [6, 7, 8]


def test_the_learner_waits_for_steps():
    store = RolloutStore(N_STEPS)
    feeding = threading.Thread(target=add, args=(store, range(4)))
    feeding.start()
    assert taken(store) == [0, 1, 2]
    feeding.join()


def test_rollouts_that_are_too_old_are_discarded_and_counted():
    store = RolloutStore(N_STEPS)
    add(store, range(3), version=0)
    add(store, range(3, 5), version=1)
    followed = store.follow(store.take(oldest_version=1))
    assert [next(followed).observations, next(followed).observations] == [3, 4]
    assert (store.stale_steps, store.dropped_steps) == (3, 0)


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


def test_with_game_waits_nothing_is_dropped(wait_for):
    store = RolloutStore(N_STEPS, game_waits=True)
    added: list[int] = []

    def act() -> None:
        for number in range(9):
            store.add(step(number))
            added.append(number)

    acting = threading.Thread(target=act)
    with store.learning:
        acting.start()
        assert taken(store) == [0, 1, 2]
        assert taken(store) == [3, 4, 5]
        wait_for(lambda: len(added) == 8)
        assert acting.is_alive(), "the third rollout has not been taken"
        assert taken(store) == [6, 7, 8]
        acting.join()
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
    assert next(steps).observations == 3
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
    # The policy has moved far since the rollout, but that is no reason to clip it.
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
)  # the last one is smaller
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
    np.random.permutation(128)  # ours draws one permutation when it flattens the buffer
    theirs.train()
    np.random.seed(5)
    ours.train()
    for name, value in theirs.policy.state_dict().items():
        th.testing.assert_close(ours.policy.state_dict()[name], value, rtol=1e-3, atol=1e-5)
    for name, value in theirs.logger.name_to_value.items():
        assert ours.logger.name_to_value[name] == pytest.approx(value, rel=1e-3, abs=1e-4), name
    assert ours.logger.name_to_value["async/weight_max"] == pytest.approx(1.0, abs=1e-4)
    assert ours.logger.name_to_value["async/weight_capped"] == 0.0


def figures(statistics):
    return [statistics.mean.tolist(), statistics.var.tolist(), statistics.count]


def test_statistics_change_in_commit_and_like_sb3s():
    generator = np.random.default_rng(1)
    theirs = RunningMeanStd(shape=(3,))
    theirs.update(generator.normal(2.0, 3.0, (20, 3)))
    ours, before = FrozenStatistics(theirs), figures(theirs)
    for _ in range(5):
        batch = generator.normal(size=(4, 3))
        ours.update(batch)
        theirs.update(batch)
    assert figures(ours) == before
    ours.commit()
    assert figures(ours) == figures(theirs)


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
    with frozen(env) as commit:
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


def test_without_normalisation_there_is_nothing_to_do():
    with frozen(None) as commit:
        commit()
