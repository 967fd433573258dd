"""The model that a run trains; its rewards are scaled, the recorded returns are the task's."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from sc2pool.cli.training.algorithms import ALGORITHMS
from sc2pool.cli.training.hyperparameters import Hyperparameters
from sc2pool.cli.training.model import (
    ScaledRewards,
    arguments_for,
    check_arguments,
    check_device,
    policy_for,
)
from sc2pool.errors import ConfigError


@pytest.mark.parametrize(
    ("space", "policy"),
    [
        (spaces.Box(-1, 1, (5,)), "MlpPolicy"),
        (spaces.Box(0, 255, (2, 64, 64), np.uint8), "CnnPolicy"),
        (spaces.Box(0, 255, (64, 64, 3), np.uint8), "CnnPolicy"),
        (spaces.Box(0, 255, (2, 16, 16), np.uint8), "MlpPolicy"),
        (spaces.Dict(a=spaces.Discrete(2)), "MultiInputPolicy"),
    ],
)
def test_the_policy_suits_the_observations(space, policy):
    assert policy_for(space, ALGORITHMS["ppo"]) == policy
    recurrent = policy.replace("Policy", "LstmPolicy")
    assert policy_for(space, ALGORITHMS["recurrent-ppo"]) == recurrent


@pytest.mark.parametrize("device", ["abacus", "meta"])
def test_a_device_that_computes_nothing_is_a_config_error(device):
    with pytest.raises(ConfigError, match=f"--device {device}"):
        check_device(device)


def test_of_torchs_reasons_only_the_first_sentence_is_said(monkeypatch):
    def zeros(*_, **__):
        raise RuntimeError("Could not run it. It is available for CPU.\nCPU: registered at …")

    monkeypatch.setattr("sc2pool.cli.training.model.torch.zeros", zeros)
    with pytest.raises(ConfigError, match=r"torch cannot use it \(Could not run it\)$"):
        check_device("mps")


def test_values_of_a_file():
    given = {
        "n_steps": 16,
        "learning_rate": "lin_1e-3",
        "gamma": "9e-1",
        "policy_kwargs": {"net_arch": [8], "activation_fn": "nn.ReLU"},
    }
    arguments = arguments_for(Hyperparameters(minibatches=4, arguments=given), n=2)
    schedule = arguments.pop("learning_rate")
    assert isinstance(schedule, LinearSchedule)
    assert (schedule(1.0), schedule(0.5)) == (1e-3, 5e-4)
    assert arguments == {
        "n_steps": 16,
        "gamma": 0.9,
        "batch_size": 8,
        "policy_kwargs": {"net_arch": [8], "activation_fn": torch.nn.ReLU},
    }


@pytest.mark.parametrize("given", ["1e2", 100.0])
def test_a_whole_number_of_a_file_is_an_integer(given):
    arguments = arguments_for(Hyperparameters(arguments={"batch_size": given, "gamma": 0.5}), n=1)
    assert repr(arguments) == "{'batch_size': 100, 'gamma': 0.5}"
    arguments = arguments_for(Hyperparameters(minibatches=4, arguments={"n_steps": given}), n=2)
    assert repr(arguments) == "{'n_steps': 100, 'batch_size': 50}"


@pytest.mark.parametrize(("steps", "size"), [(225, 29), (57, 9), (1, 1)])
def test_no_minibatch_of_several_is_of_a_single_transition(steps, size):
    """7 · 29 + 22, 6 · 9 + 3."""
    hyperparameters = Hyperparameters(minibatches=8, arguments={"n_steps": steps})
    assert arguments_for(hyperparameters, n=1)["batch_size"] == size


def test_minibatches_of_a_rollout_that_has_no_number_of_steps():
    hyperparameters = Hyperparameters(minibatches=4, arguments={"n_steps": "many"})
    with pytest.raises(ConfigError, match="n_steps must be a whole number above 0, got 'many'"):
        arguments_for(hyperparameters, n=1)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_arguments_that_it_has(algo):
    check_arguments(algo, Hyperparameters(arguments={"learning_rate": 1e-3, "gamma": 0.9}))


@pytest.mark.parametrize(
    ("algo", "name"),
    [("ppo", "buffer_size"), ("dqn", "n_steps_"), ("async-ppo", "env"), ("sac", "n_epochs")],
)
def test_an_argument_that_it_has_not(algo, name):
    with pytest.raises(ConfigError, match=f"has no {name}; it has .*learning_rate"):
        check_arguments(algo, Hyperparameters(arguments={name: 3}))


def test_the_best_guess_is_named():
    with pytest.raises(ConfigError, match=r"has no learning_rat; .*mean learning_rate\?$"):
        check_arguments("ppo", Hyperparameters(arguments={"learning_rat": 3}))
    wrong = Hyperparameters(arguments={"policy_kwargs": {"activation_fn": "nn.Tnh"}})
    with pytest.raises(ConfigError, match=r"'nn\.Tnh' is none of .*; did you mean tanh\?$"):
        check_arguments("ppo", wrong)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("gamma", "most", "a number, got 'most'"),
        ("gamma", "nan", "a number, got nan"),
        ("gamma", 10**400, "a number, got a number of many digits"),
        ("gamma", True, "a number, got True"),
        ("learning_rate", [1e-3], r"a number, got \[0.001\]"),
        ("learning_rate", "lin_less", "a number, got 'lin_less'"),
        ("n_steps", 0.5, "a whole number, got 0.5"),
        ("n_steps", "inf", "a whole number, got inf"),
        ("n_steps", 0, "a whole number of at least 1, got 0"),
        ("n_epochs", -1, "a whole number of at least 1, got -1"),
        ("gamma", 7, "a number from 0 to 1, got 7"),
        ("gae_lambda", "-1e-1", "a number from 0 to 1, got -0.1"),
        ("use_sde", "perhaps", "true or false, got 'perhaps'"),
        ("policy_kwargs", 3, "`name: value` lines, got 3"),
    ],
)
def test_an_argument_of_another_kind(name, value, expected):
    with pytest.raises(ConfigError, match=f"^--hyperparameters: {name} must be {expected}$"):
        check_arguments("ppo", Hyperparameters(arguments={name: value}))


def test_arguments_that_take_more_than_numbers():
    given = {"train_freq": [1, "episode"], "ent_coef": "auto_0.1", "learning_rate": "lin_1e-3"}
    check_arguments("sac", Hyperparameters(arguments=given))
    check_arguments("ppo", Hyperparameters(arguments={"target_kl": 0.1, "policy_kwargs": None}))


def test_minibatches_and_arguments_that_only_some_have():
    check_arguments("async-ppo", Hyperparameters(arguments={"max_lag": 3, "n_epochs": 2}))
    with pytest.raises(ConfigError, match="A2C has no minibatches"):
        check_arguments("a2c", Hyperparameters(minibatches=4))


def test_an_activation_that_torch_lacks_is_refused_before_a_game_starts():
    wrong = Hyperparameters(arguments={"policy_kwargs": {"activation_fn": "nn.Swosh"}})
    with pytest.raises(ConfigError, match=r"activation_fn 'nn\.Swosh' is none of .*relu"):
        check_arguments("ppo", wrong)


def test_scaled_rewards() -> None:
    env = ScaledRewards(VecMonitor(DummyVecEnv([lambda: gymnasium.make("CartPole-v1")] * 2)), 0.01)
    env.reset()
    episodes = []
    while not episodes:
        _, rewards, _, infos = env.step(np.zeros(2, int))
        np.testing.assert_allclose(rewards, 0.01, rtol=1e-6)
        episodes = [info["episode"] for info in infos if "episode" in info]
    assert episodes[0]["r"] == pytest.approx(episodes[0]["l"])
    env.close()
