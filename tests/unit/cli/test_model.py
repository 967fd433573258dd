"""The model that a run trains: algorithm, hyperparameters, rewards, and hyperparameter search."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import optuna
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from sc2pool.cli.training.algorithms import (
    ALGORITHMS,
    MODES,
    SHARED,
    Hyperparameters,
    check_algorithm,
    choose_self_play,
    read_hyperparameters,
)
from sc2pool.cli.training.model import (
    ScaledRewards,
    arguments_for,
    check_arguments,
    check_device,
    policy_for,
)
from sc2pool.cli.tune import SPACES, suggest
from sc2pool.errors import ConfigError
from sc2pool.tasks.minigames.collect_mineral_shards import CollectMineralShards
from sc2pool.tasks.minigames.defeat_roaches import DefeatRoaches
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.opponents.snapshots import RULES
from sc2pool.tasks.registry import BUILT_IN, SMAC_DUELS

# ---- the model -----------------------------------------------------------------------------------


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
    """No minibatch has a single transition: 225 = 7 · 29 + 22, and 57 = 6 · 9 + 3."""
    hyperparameters = Hyperparameters(minibatches=8, arguments={"n_steps": steps})
    assert arguments_for(hyperparameters, n=1)["batch_size"] == size


def test_minibatches_of_a_rollout_that_has_no_number_of_steps():
    hyperparameters = Hyperparameters(minibatches=4, arguments={"n_steps": "many"})
    with pytest.raises(ConfigError, match="n_steps must be a whole number above 0, got 'many'"):
        arguments_for(hyperparameters, n=1)


@pytest.mark.parametrize(
    ("algo", "given"),
    [
        *((algo, {"learning_rate": 1e-3, "gamma": 0.9}) for algo in ALGORITHMS),
        ("sac", {"train_freq": [1, "episode"], "ent_coef": "auto_0.1"}),
        ("sac", {"learning_rate": "lin_1e-3"}),
        ("ppo", {"target_kl": 0.1, "policy_kwargs": None}),
        ("async-ppo", {"max_lag": 3, "n_epochs": 2}),
        ("async-sac", {"late_after_s": 0.1, "tau": 0.5}),
    ],
)
def test_arguments_that_it_has(algo, given):
    check_arguments(algo, Hyperparameters(arguments=given))


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


def test_minibatches_that_only_some_have():
    with pytest.raises(ConfigError, match="A2C has no minibatches"):
        check_arguments("a2c", Hyperparameters(minibatches=4))


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


# ---- algorithms and tasks ------------------------------------------------------------------------


def test_algorithms_that_fit_their_task() -> None:
    check_algorithm("maskable-ppo", DefeatRoaches)
    check_algorithm("dqn", MoveToBeacon)
    check_algorithm("ppo", CollectMineralShards)


def test_actions_that_it_cannot_play() -> None:
    with pytest.raises(ConfigError, match=r"--algo sac plays Box actions, .* are Discrete: ppo, "):
        check_algorithm("sac", MoveToBeacon)
    with pytest.raises(ConfigError, match=r"dqn plays Discrete .* are MultiDiscrete"):
        check_algorithm("dqn", CollectMineralShards)


@pytest.mark.parametrize(
    "space", [spaces.Discrete(3, start=5), spaces.MultiDiscrete([3, 4], start=[0, 1])]
)
def test_actions_that_do_not_start_at_0(space: spaces.Space[Any]) -> None:
    """A space that does not begin at 0 is refused, because SB3 would play numbers from 0."""
    started = type("Started", (MoveToBeacon,), {"action_space": space})
    with pytest.raises(ConfigError, match=r"^the algorithms count .* of Started begin at .*[51]"):
        check_algorithm("ppo", started)


@pytest.mark.parametrize(
    ("space", "kind"),
    [
        (spaces.Text(5), "Text"),
        (spaces.Tuple([spaces.Discrete(3)]), "Tuple"),
        (spaces.Sequence(spaces.Discrete(3)), "Sequence"),
        (spaces.Graph(spaces.Box(-1, 1), None), "Graph"),
        (spaces.Dict(near=spaces.Discrete(3), far=spaces.Text(5)), "Text"),
        (spaces.Dict(near=spaces.Dict(far=spaces.Discrete(3))), "Dict"),
    ],
)
@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_observations_that_no_algorithm_takes(
    algo: str, space: spaces.Space[Any], kind: str
) -> None:
    seen = type("Seen", (MoveToBeacon,), {"observation_space": space})
    with pytest.raises(ConfigError, match=f"those of Seen are {kind}$"):
        check_algorithm(algo, seen)


def test_observations_of_several_parts() -> None:
    space = spaces.Dict(near=spaces.Discrete(3), far=spaces.MultiBinary(5))
    check_algorithm("ppo", type("Seen", (MoveToBeacon,), {"observation_space": space}))


def test_a_task_without_masks() -> None:
    with pytest.raises(ConfigError, match=r"action_masks\(\), and MoveToBeacon has none"):
        check_algorithm("maskable-ppo", MoveToBeacon)


class Duel(MoveToBeacon):
    players = 2


def test_there_is_a_mode_for_each_rule():
    assert (SHARED, *RULES) == MODES


@pytest.mark.parametrize(
    ("given", "earlier", "mode"),
    [
        (None, None, "shared"),
        (None, "uniform", "uniform"),
        ("latest", "uniform", "latest"),
        ("shared", None, "shared"),
    ],
)
def test_a_task_of_two_players_always_has_one(given, earlier, mode):
    assert choose_self_play(given, earlier, Duel) == mode


def test_a_task_of_one_player_has_none():
    assert choose_self_play(None, None, MoveToBeacon) == ""
    with pytest.raises(ConfigError, match="--self-play latest: it needs a task of two players, an"):
        choose_self_play("latest", None, MoveToBeacon)


# ---- files of hyperparameters --------------------------------------------------------------------


IN_THE_ZOOS_FORM = """
default: &all
  n_envs: 4
  n_timesteps: !!float 1e5
  policy: MlpPolicy
  n_steps: 64
  learning_rate: lin_3e-4
MoveToBeacon:
  <<: *all
  n_timesteps: 2e4
  reward_scale: 1e-2
  policy_kwargs: {net_arch: [32]}
"""


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_the_bundled_ones(algo):
    for task in BUILT_IN:
        assert read_hyperparameters(algo, task).n_timesteps >= 100_000, task


def test_every_duel_of_teams_has_scaled_rewards():
    """Rewards must be scaled, because the unscaled return of a battle is up to 20."""
    for task in SMAC_DUELS:
        found = read_hyperparameters("ppo", task)
        assert found == read_hyperparameters("maskable-ppo", task)
        assert found.reward_scale == 0.1, task


def test_a_section_and_the_default(tmp_path):
    file = tmp_path / "ppo.yml"
    file.write_text(IN_THE_ZOOS_FORM)
    common = {"n_steps": 64, "learning_rate": "lin_3e-4"}
    assert read_hyperparameters("ppo", "DefeatRoaches", file) == Hyperparameters(
        n_timesteps=100_000, n_envs=4, policy="MlpPolicy", arguments=common
    )
    assert read_hyperparameters("ppo", "MoveToBeacon", file) == Hyperparameters(
        n_timesteps=20_000,
        n_envs=4,
        reward_scale=0.01,
        policy="MlpPolicy",
        arguments=common | {"policy_kwargs": {"net_arch": [32]}},
    )


def test_policy_kwargs_as_the_zoo_writes_them():
    text = "dict(net_arch=dict(pi=[64, 64], vf=[64]), activation_fn=nn.Tanh, ortho_init=False)"
    assert Hyperparameters.of({"policy_kwargs": text}, "here").arguments == {
        "policy_kwargs": {
            "net_arch": {"pi": [64, 64], "vf": [64]},
            "activation_fn": "nn.Tanh",
            "ortho_init": False,
        }
    }


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').getcwd()",
        "dict(a=open('x'))",
        "[64, 64]",
        "dict(",
        "dict(**{})()",
        "dict(a=" + "[" * 150 + "]" * 150 + ")",
        "dict(a=" + "-" * 100_000 + "1)",
        "dict(a=" + "9" * 10_000 + ")",
        "dict(a={[]: 1})",
    ],
    ids=range(9),
)
def test_policy_kwargs_that_would_run(text):
    with pytest.raises(ConfigError, match=r"policy_kwargs must be `dict\(name=value, …\)`, got "):
        Hyperparameters.of({"policy_kwargs": text}, "here")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("MoveToBeacon: {", "is not YAML: "),
        ("- a\n- list", r"expected sections, one for each task, got \['a', 'list'\]"),
        ("Chess: {}", "has no section MoveToBeacon and no section default; it has Chess"),
        ("{}", "it has none"),
        ("default: 7", "section default: expected `name: value` lines, got 7"),
        ("default: {n_timesteps: soon}", "n_timesteps must be a whole number above 0, got 'soon'"),
        ("default: {n_timesteps: 1.0e+400}", "n_timesteps must be a whole number above 0, got inf"),
        ("default: {n_timesteps: '1e400'}", "must be a whole number above 0, got '1e400'"),
        (f"default: {{n_timesteps: {'9' * 99}}}", "above 0, got 9999"),
        ("default: {n_envs: 0}", "n_envs must be a whole number above 0, got 0"),
        ("default: {n_envs: 2.5}", "n_envs must be a whole number above 0, got 2.5"),
        ("default: {reward_scale: 0}", "reward_scale must be above 0, got 0"),
        ("default: {reward_scale: less}", "reward_scale must be above 0, got 'less'"),
        ("default: {n_envs: true}", "n_envs must be a whole number above 0, got True"),
        ("default: {policy: 7}", "policy must be a name, got 7"),
        ("default: {minibatches: 4, batch_size: 8}", "either batch_size or minibatches, not both"),
    ],
)
def test_a_file_that_cannot_work(tmp_path, content, why):
    file = tmp_path / "mine.yml"
    file.write_text(content)
    with pytest.raises(ConfigError, match=why) as caught:
        read_hyperparameters("ppo", "MoveToBeacon", file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_what_editors_and_powershell_write(tmp_path, encoding):
    file = tmp_path / "mine.yml"
    file.write_bytes("default: {n_envs: 3}  # “best”".encode(encoding))
    assert read_hyperparameters("ppo", "MoveToBeacon", file).n_envs == 3


# ---- the search ----------------------------------------------------------------------------------


@pytest.mark.parametrize("algo", SPACES)
def test_every_suggestion_is_a_section(algo: str) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    for _ in range(20):
        section: dict[str, Any] = suggest(study.ask(), algo, n_rows=8, steps=5000)
        check_arguments(algo, Hyperparameters.of(section, "the search"))
        assert section.get("n_steps", 0) * 8 * 2 <= 5000
        assert 1e-5 <= section["learning_rate"] <= 1e-2


def test_a_short_trial_has_the_shortest_rollout() -> None:
    section = suggest(optuna.create_study().ask(), "ppo", n_rows=64, steps=100)
    assert section["n_steps"] == 32


def test_all_algorithms_but_that_of_real_time() -> None:
    for_real_time = {name for name, algorithm in ALGORITHMS.items() if algorithm.plays_on}
    assert ALGORITHMS.keys() - SPACES.keys() == for_real_time
