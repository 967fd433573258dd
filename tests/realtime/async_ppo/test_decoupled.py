"""The decoupled loss: PPO's on current data, corrected on older data."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch as th
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import Logger

from sc2pool import AsyncPPO
from sc2pool.realtime.async_ppo.decoupled import importance_weights, policy_loss

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
