"""Makes the model of a training: a new one with the run's hyperparameters, or the resumed one.

The hyperparameters may scale the rewards, because PPO's value network learns slowly to predict
returns of thousands. Until the network predicts such returns, the advantages are useless. Rule:
only the algorithm gets scaled rewards; logs, curves and evaluations show the task's rewards.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from functools import partial
from math import ceil
from typing import Any

import gymnasium
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sc2pool.cli.arguments import hint
from sc2pool.cli.play import seed_of_this_part
from sc2pool.cli.training.algorithms import (
    ALGORITHMS,
    LARGEST,
    MODES,
    Algorithm,
    Hyperparameters,
    number_of,
    whole_number_of,
)
from sc2pool.cli.training.options import TrainOptions
from sc2pool.errors import ConfigError, SC2PoolError
from sc2pool.integration import TaskDefinition, agents_of, resolve_task, row_space
from sc2pool.utilities import printable, shown

_LINEAR = "lin_"
_OURS = frozenset(
    {"self", "policy", "env", "seed", "device", "verbose", "tensorboard_log", "args", "kwargs"}
)
"""Parameters of the algorithms that a file of hyperparameters cannot set."""
_BOUNDS: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("gamma", "gae_lambda", "tau"), (0, 1)),
    **dict.fromkeys(("batch_size", "buffer_size", "n_epochs", "n_steps"), (1, LARGEST)),
}
"""Bounds of parameters. Algorithms accept values outside these bounds, but then learn nothing."""
_ACTIVATIONS = {
    name.lower(): function
    for name, function in vars(torch.nn).items()
    if inspect.isclass(function) and function.__module__ == "torch.nn.modules.activation"
}


def check_device(device: str) -> None:
    """Raise `ConfigError` unless torch can compute on `device`."""
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:
        reason = re.split(r"\n|\. ", str(error), maxsplit=1)[0]  # show the error's first sentence
        raise ConfigError(f"--device {device}: torch cannot use it ({reason})") from error


def check_arguments(algo: str, hyperparameters: Hyperparameters) -> None:
    """Raise `ConfigError` for an unknown argument, a value of a wrong type, or a bad activation.

    The algorithm itself makes all other checks of the values; see `check_values`.
    """
    algorithm = ALGORITHMS[algo]
    parameters = _parameters(algorithm.load_class())
    known = parameters.keys() - _OURS
    unknown = hyperparameters.arguments.keys() - known
    if hyperparameters.minibatches and not {"n_steps", "batch_size"} <= known:
        unknown |= {"minibatches"}
    if unknown:
        names = sorted(unknown)
        raise ConfigError(
            f"--hyperparameters: {algorithm.class_name} has no {printable(', '.join(names))}; "
            f"it has {', '.join(sorted(known))}{hint(names[0], known)}"
        )
    for name, value in arguments_for(hyperparameters, 1).items():
        if expected := _why_not(parameters[name], value):
            raise ConfigError(f"--hyperparameters: {name} must be {expected}, got {shown(value)}")


def _why_not(parameter: inspect.Parameter, value: Any) -> str:
    """The kind of value that the parameter's default suggests; empty if `value` is of this kind."""
    default = parameter.default
    if parameter.name == "policy_kwargs":
        return "" if isinstance(value, dict | None) else "`name: value` lines"
    if isinstance(default, bool):
        return "" if isinstance(value, bool) else "true or false"
    takes_others = "tuple" in str(parameter.annotation).lower()  # `train_freq` may be a tuple
    if not isinstance(default, int | float) or takes_others or isinstance(value, LinearSchedule):
        return ""
    number = type(value) in (int, float) and abs(value) < LARGEST  # NaN is refused
    low, high = _BOUNDS.get(parameter.name, (-LARGEST, LARGEST))
    bounds = f" of at least {low}" if high == LARGEST else f" from {low} to {high}"
    if isinstance(default, int):
        expected, fits = "a whole number", number and isinstance(value, int)
    else:
        expected, fits = "a number", number
    if fits and low <= value <= high:
        return ""
    return expected + (bounds if fits else "")


def _parameters(algorithm: type[Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a class by name, including those that it passes to its base class."""
    found: dict[str, inspect.Parameter] = {}
    for one in algorithm.__mro__:
        if "__init__" in vars(one):
            parameters = inspect.signature(vars(one)["__init__"]).parameters
            found = {**parameters, **found}
            if not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
                break
    return {name: one for name, one in found.items() if not name.startswith("_")}


class _SpacesAlone(gymnasium.Env[Any, Any]):
    """An env with a task's spaces but no game, for which a model can be made."""

    def __init__(self, task: type[TaskDefinition]) -> None:
        self.observation_space = row_space(task)
        self.action_space = task.action_space


def check_values(options: TrainOptions) -> None:
    """Raise `ConfigError` if the algorithm refuses a value, before a game is started.

    The check makes a model for the task's spaces. A resumed run's values were checked earlier.
    """
    if options.resume is not None:
        return
    task = resolve_task(options.task)
    players = task.players if options.self_play == MODES[0] else 1
    rows = options.n * players * agents_of(task)
    make_model(DummyVecEnv([partial(_SpacesAlone, task)] * rows), options)


def make_model(env: VecEnv, options: TrainOptions) -> BaseAlgorithm:
    """A new model for the env's spaces, or the resumed model.

    Raises `ConfigError` if the resumed model has other spaces, or the algorithm refuses an
    argument.
    """
    if options.resume is not None:
        return load_model(env, options)
    algorithm = ALGORITHMS[options.algo]
    arguments = arguments_for(options.hyperparameters, env.num_envs)
    if algorithm.plays_on:
        arguments.setdefault("game_waits", not options.realtime)
    policy = options.hyperparameters.policy or policy_for(env.observation_space, algorithm)
    try:
        return algorithm.load_class()(  # type: ignore[no-any-return]
            policy, env, seed=options.seed, device=options.device, **arguments
        )
    except SC2PoolError:
        raise
    except Exception as error:  # a wrong value can raise anything, anywhere in SB3 or torch
        why = printable(str(error)) or type(error).__name__
        raise ConfigError(
            f"{algorithm.class_name} refuses its hyperparameters ({why}): policy {shown(policy)}, "
            f"{shown(arguments)}"
        ) from error


def load_model(env: VecEnv, options: TrainOptions) -> BaseAlgorithm:
    """The resumed model; raises `ConfigError` if its spaces differ from the env's."""
    assert options.resume is not None
    seed = seed_of_this_part(options.seed, options.steps_done)
    algorithm = ALGORITHMS[options.algo].load_class()
    try:
        model: BaseAlgorithm = algorithm.load(options.resume, env, device=options.device, seed=seed)
    except ValueError as error:
        raise ConfigError(f"{options.resume} does not fit {options.task}: {error}") from error
    if isinstance(model, OffPolicyAlgorithm):
        # The replay buffer is not saved, so fill a new one before the learning continues.
        model.learning_starts += options.steps_done
    return model


def arguments_for(hyperparameters: Hyperparameters, n: int) -> dict[str, Any]:
    arguments = {name: _value(value) for name, value in hyperparameters.arguments.items()}
    if hyperparameters.minibatches is not None:
        # 2048 is PPO's own default.
        steps = whole_number_of(arguments.get("n_steps", 2048), "--hyperparameters: n_steps")
        arguments["batch_size"] = batch_size(steps * n, hyperparameters.minibatches)
    if isinstance(kwargs := arguments.get("policy_kwargs"), dict):
        arguments["policy_kwargs"] = kwargs | _activation(kwargs)
    return arguments


def batch_size(transitions: int, minibatches: int) -> int:
    """The size of a minibatch that splits a rollout into at most `minibatches`.

    The last minibatch never has a single transition: to normalise advantages, their standard
    deviation is needed, which one advantage does not have.
    """
    size = ceil(transitions / minibatches)
    while transitions % size == 1 and size > 1:
        size += 1
    return size


def _value(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_LINEAR):
        start = number_of(value.removeprefix(_LINEAR))
        if isinstance(start, float):
            return LinearSchedule(start, 0.0, 1.0)
    number = number_of(value)
    # YAML reads `1e5` as a text. Algorithms that need a whole number do not accept the float 1e5.
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _activation(policy_kwargs: dict[str, Any]) -> dict[str, Any]:
    name = policy_kwargs.get("activation_fn")
    if not isinstance(name, str):
        return {}
    try:
        return {"activation_fn": _ACTIVATIONS[name.rpartition(".")[2].lower()]}
    except KeyError:
        raise ConfigError(
            f"--hyperparameters: activation_fn {shown(name)} is none of {', '.join(_ACTIVATIONS)}"
            f"{hint(name.rpartition('.')[2].lower(), _ACTIVATIONS)}"
        ) from None


def policy_for(space: spaces.Space[Any], algorithm: Algorithm) -> str:
    """SB3's name of the policy class that suits these observations."""
    kind = "Mlp"
    if isinstance(space, spaces.Dict):
        kind = "MultiInput"
    # SB3's convolutions need at least 36 × 36 pixels; smaller images are flattened.
    elif is_image_space(space) and sorted(space.shape or ())[1] >= 36:
        kind = "Cnn"
    return f"{kind}{algorithm.policy_infix}Policy"


class ScaledRewards(VecEnvWrapper):
    """Multiplies all rewards by `scale`."""

    def __init__(self, env: VecEnv, scale: float) -> None:
        super().__init__(env)
        self._scale = scale

    def reset(self) -> VecEnvObs:
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        observations, rewards, dones, infos = self.venv.step_wait()
        return observations, rewards * self._scale, dones, infos
