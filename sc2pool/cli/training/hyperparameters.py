"""Reads hyperparameters from the bundled files in `defaults`, or from a user's YAML file.

    default:                   for every task that has no section of its own
      n_timesteps: 1_000_000   env steps of a whole training, of all games together
      n_envs: 8                games
      reward_scale: 0.01       factor of the algorithm's rewards (default: 1)
      policy: MlpPolicy        SB3's name (default: one that suits the observations)
      n_steps: 128             this and the following lines: arguments of the algorithm
      batch_size: 256          or `minibatches: 4`, equal parts of the rollout for any n_envs
      learning_rate: lin_1e-3  falls linearly to 0
      policy_kwargs: {net_arch: [64, 64], activation_fn: tanh}   # or RL Zoo's "dict(…)"
    MoveToBeacon:
      …

The format is RL Baselines3 Zoo's, without its wrappers. Sections are independent of each other: a
missing argument has the algorithm's own default. YAML's `<<: *name` copies another section.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sc2pool.cli.training.algorithms import ALGORITHMS
from sc2pool.errors import ConfigError
from sc2pool.utilities import check_levels, printable, read_yaml, shown

_DEFAULTS = Path(__file__).with_name("defaults")
_DEFAULT_SECTION = "default"
_LARGEST = 1 << 62
_OWN_NUMBERS = ("n_timesteps", "n_envs", "minibatches")


@dataclass(frozen=True)
class Hyperparameters:
    """The hyperparameters in a section of a file."""

    n_timesteps: int = 1_000_000
    n_envs: int = 8
    policy: str | None = None
    minibatches: int | None = None
    """The number of minibatches, in place of the argument `batch_size`."""
    reward_scale: float = 1.0
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """The algorithm's arguments, with the file's values."""

    @classmethod
    def of(cls, section: Mapping[str, Any], where: str) -> Hyperparameters:
        """Read a section.

        Raises:
            ConfigError: a value has the wrong type; `where` names the section.
        """
        arguments = dict(section)
        numbers = {
            name: whole_number_of(arguments.pop(name), f"{where}: {name}")
            for name in _OWN_NUMBERS
            if name in arguments
        }
        if "minibatches" in numbers and "batch_size" in arguments:
            raise ConfigError(f"{where}: either batch_size or minibatches, not both")
        reward_scale = number_of(arguments.pop("reward_scale", 1.0))
        if type(reward_scale) not in (int, float) or not 0 < reward_scale < _LARGEST:
            raise ConfigError(f"{where}: reward_scale must be above 0, got {shown(reward_scale)}")
        policy = arguments.pop("policy", None)
        if not isinstance(policy, str | None):
            raise ConfigError(f"{where}: policy must be a name, got {shown(policy)}")
        if isinstance(arguments.get("policy_kwargs"), str):
            arguments["policy_kwargs"] = _read_call(arguments["policy_kwargs"], where)
        return cls(**numbers, policy=policy, reward_scale=reward_scale, arguments=arguments)


def _read_call(text: str, where: str) -> dict[str, Any]:
    """The values in `dict(net_arch=[64, 64], activation_fn=nn.Tanh)`, which is RL Zoo's format.

    No code is run: a value is a literal, a dict, or a name, which is read as a text.

    Raises:
        ConfigError: the text has another form.
    """

    def value_of(node: ast.expr) -> Any:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "dict" and not node.args:
            return {str(one.arg): value_of(one.value) for one in node.keywords if one.arg}
        if isinstance(node, ast.Name | ast.Attribute):
            return ast.unparse(node)
        return ast.literal_eval(node)

    try:
        found = value_of(ast.parse(text.strip(), mode="eval").body)
        check_levels(found)
    except Exception:  # RecursionError, MemoryError for a text of many levels
        found = None
    if not isinstance(found, dict):
        raise ConfigError(
            f"{where}: policy_kwargs must be `dict(name=value, …)`, got {shown(text)}"
        )
    return found


def number_of(value: Any) -> Any:
    """A text as a number if possible, else the value itself, because YAML reads `1e-3` as text."""
    if isinstance(value, str):
        with suppress(ValueError):
            return float(value)
    return value


def whole_number_of(value: Any, what: str) -> int:
    """The value as a whole number, after `number_of`.

    Raises:
        ConfigError: the value is not a whole number above 0; `what` names it.
    """
    number = number_of(value)
    if type(number) not in (int, float) or not 1 <= number < _LARGEST or number % 1:
        raise ConfigError(f"{what} must be a whole number above 0, got {shown(value)}")
    return int(number)


def read_hyperparameters(algo: str, task: str, file: Path | None = None) -> Hyperparameters:
    """A task's hyperparameters, from the user's file if given, else from the bundled file.

    Raises:
        ConfigError: the file cannot be read, is not of this format, or has no section for the task.
    """
    if file is None:
        bundled = ALGORITHMS[algo].hyperparameters
        if not bundled:
            return Hyperparameters()
        file = _DEFAULTS / bundled
    sections = _read(file)
    name = task if task in sections else _DEFAULT_SECTION
    if name not in sections:
        raise ConfigError(
            f"{file} has no section {task} and no section {_DEFAULT_SECTION}; "
            f"it has {printable(', '.join(map(str, sections))) or 'none'}"
        )
    section = sections[name]
    where = f"{file}, section {name}"
    if not isinstance(section, dict) or not all(isinstance(key, str) for key in section):
        raise ConfigError(f"{where}: expected `name: value` lines, got {shown(section)}")
    return Hyperparameters.of(section, where)


def _read(file: Path) -> dict[Any, Any]:
    content = read_yaml(file)
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: expected sections, one for each task, got {shown(content)}")
    return content
