"""Files of hyperparameters."""

from __future__ import annotations

import pytest

from sc2pool.cli.training.algorithms import ALGORITHMS
from sc2pool.cli.training.hyperparameters import Hyperparameters, read_hyperparameters
from sc2pool.errors import ConfigError
from sc2pool.tasks.registry import BUILT_IN, SMAC_DUELS

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
    """A battle returns up to 20."""
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
        ("default: {n_steps: !!int many}", "is not YAML: "),
        ("- a\n- list", r"expected sections, one for each task, got \['a', 'list'\]"),
        ("Chess: {}", "has no section MoveToBeacon and no section default; it has Chess"),
        ("{}", "it has none"),
        ("default: 7", "section default: expected `name: value` lines, got 7"),
        ("default: {n_timesteps: soon}", "n_timesteps must be a whole number above 0, got 'soon'"),
        ("default: {n_timesteps: 1.0e+400}", "n_timesteps must be a whole number above 0, got inf"),
        ("default: {n_timesteps: '1e400'}", "must be a whole number above 0, got '1e400'"),
        (f"default: {{n_timesteps: {'9' * 99}}}", "above 0, got 9999"),
        ("default: &d {n_steps: *d}", "is not YAML: a value that holds itself"),
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
