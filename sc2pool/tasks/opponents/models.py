"""Models that SB3 has saved, as opponents: only their policies are loaded, and only in a worker.

A saved model's file has the parts `data` (observation space, action space, and the policy's class
and arguments) and `policy.pth` (the policy's weights). The other parts, such as optimizers, are
needed only for training, and are never read.

Rules: the trainer reads the observation space and the action space as data. The trainer runs no
code from the file and imports neither torch nor SB3. A part of a file that unpacks to much more
than the file's size is refused. A worker loads each file once, with one thread for torch. Loading a
policy's class and arguments may run code from the file, just as SB3's own `load` may. Each policy
has its own random numbers, so a seeded episode does not depend on the other episodes of the worker.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from gymnasium import spaces

from sc2pool.errors import ConfigError
from sc2pool.foreign import Archive, printable
from sc2pool.optional import needed_for
from sc2pool.replacing import replacing
from sc2pool.tasks.opponents.pickled_spaces import load_space
from sc2pool.tasks.opponents.policies import Policy, PredictPair, action_of
from sc2pool.tasks.player import Episode
from sc2pool.tasks.queue_pair import QueuePair, Transition

if TYPE_CHECKING:
    import torch

KIND = "a model that SB3 has saved"
_SERIALIZED = ":serialized:"
"""SB3's key for a value of `data` that is pickled and encoded in base64."""
_MOST_LOADED = 64
"""The number of policies that a worker keeps loaded; the least recently used one is dropped."""


class Saveable(Protocol):
    """A model that SB3 can save."""

    def save(self, path: Path) -> None:
        """Write the model to a file."""
        ...


def save_model(model: Saveable, path: Path) -> None:
    """Write the model, replacing the file atomically.

    Raises:
        OSError: the file cannot be written; the old file stays.
    """
    with replacing(path) as unfinished:
        model.save(unfinished)


@dataclass(frozen=True)
class SavedModel:
    """A model in a file, or in the bytes of such a file.

    Attributes:
        name: the opponent's name, which is ignored when models are compared.
        source: the file, or its content.
    """

    name: str = field(compare=False)
    source: Path | bytes

    def read_spaces(self) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
        """The spaces of observations and actions.

        Raises:
            ConfigError: the file does not exist, or SB3 has not saved it as a model.
        """
        with self._opened() as (_, data):
            return _space(data, "observation_space"), _space(data, "action_space")

    def check_spaces(
        self, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]
    ) -> None:
        """Check that the model can play a task with these spaces.

        Raises:
            ConfigError: a space differs (the error names both), or `read_spaces` fails.
        """
        observed, acted = self.read_spaces()
        check_spaces(self._what, observed, acted, observation_space, action_space)

    def is_of_normalized(self) -> bool:
        """True if `VecNormalize` was around the env that the model was trained on.

        Raises:
            ConfigError: the file does not exist, or SB3 has not saved it as a model.
        """
        with self._opened() as (_, data):
            # SB3 stores the newest raw observation here; without VecNormalize it stores None.
            return data.get("_last_original_obs") is not None

    def load(self) -> Policy:
        """The loaded policy, which is the same object until the file changes.

        Raises:
            ConfigError: the file does not exist, or the policy cannot be made from it.
        """
        return _loaded(self, self._version())

    def _load(self) -> Policy:
        with needed_for(f"the model {self.name}"):
            # torch is always needed; SB3's classes, which the file names, are imported later.
            import torch  # noqa: PLC0415
        # One thread, because the games and the other workers need the other cores.
        torch.set_num_threads(1)
        with needed_for(f"the model {self.name}"), self._opened() as (archive, data):
            arguments = dict(_value(data, "policy_kwargs") or {})
            if data.get("use_sde"):
                arguments["use_sde"] = True
            policy = _value(data, "policy_class")(
                _space(data, "observation_space"),
                _space(data, "action_space"),
                _no_learning,
                **arguments,
            )
            archive.check("policy.pth")  # torch unpacks this file without a size limit
            content = BytesIO(archive.read("policy.pth"))
            weights = torch.load(content, map_location="cpu", weights_only=True)
            policy.load_state_dict(weights)
        policy.set_training_mode(False)
        return policy  # type: ignore[no-any-return]

    @property
    def _what(self) -> str:
        return f"model {self.source if isinstance(self.source, Path) else self.name}"

    def _version(self) -> object:
        """A value that changes when the file changes; None for a model in memory."""
        if isinstance(self.source, bytes):
            return None
        try:
            found = self.source.stat()
        except OSError as error:
            raise ConfigError(f"{self._what}: {error.strerror}") from error
        return found.st_mtime_ns, found.st_size

    @contextmanager
    def _opened(self) -> Iterator[tuple[Archive, dict[str, Any]]]:
        """The archive and its `data`. If the `with` block raises, the file is not a model."""
        if isinstance(self.source, Path) and not self.source.exists():
            raise ConfigError(f"{self._what}: no such file")
        with Archive(self.source, self._what, KIND) as archive:
            try:
                yield archive, dict(archive.read_json("data"))
            except (ConfigError, ModuleNotFoundError):
                raise  # `needed_for` names the package to install
            except Exception as error:  # the error's class depends on the damage
                what = f"{self._what} is not {KIND}: {type(error).__name__}"
                raise ConfigError(f"{what}: {printable(' '.join(str(error).split()))}") from error


def _space(data: dict[str, Any], name: str) -> spaces.Space[Any]:
    return load_space(base64.b64decode(data[name][_SERIALIZED]))


def _value(data: dict[str, Any], name: str) -> Any:
    """A value of `data`; a pickled value is unpickled."""
    value = data[name]
    if isinstance(value, dict) and _SERIALIZED in value:
        return pickle.loads(base64.b64decode(value[_SERIALIZED]))
    return value


@lru_cache(maxsize=_MOST_LOADED)
def _loaded(model: SavedModel, version: object) -> Policy:  # noqa: ARG001 - part of the key
    return model._load()


def _no_learning(_: float) -> float:
    """A learning rate of 0: a policy's class requires one, although the policy is not trained."""
    return 0.0


def check_spaces(
    what: str,
    observed: spaces.Space[Any] | None,
    acted: spaces.Space[Any] | None,
    observation_space: spaces.Space[Any],
    action_space: spaces.Space[Any],
) -> None:
    """Raise ConfigError, which names `what`, unless the policy's spaces fit the task's."""
    for kind, space, wanted in (
        ("observes", observed, observation_space),
        ("acts in", acted, action_space),
    ):
        if space is not None and not _fits(space, wanted):
            has, needed = printable(str(space)), printable(str(wanted))
            stacked = ""
            if kind == "observes" and _may_be_stacked(space, wanted):
                stacked = "; frames that VecFrameStack has stacked are not stacked here"
            raise ConfigError(f"{what} {kind} {has}, expected the task's {needed}{stacked}")


def _fits(space: spaces.Space[Any], wanted: spaces.Space[Any]) -> bool:
    """True if a model with `space` can play a task with `wanted`."""
    if isinstance(space, spaces.Dict) and isinstance(wanted, spaces.Dict):
        return space.keys() == wanted.keys() and all(
            _fits(part, wanted[name]) for name, part in space.items()
        )
    return space == wanted or space == channels_first(wanted)


def _may_be_stacked(space: spaces.Space[Any], wanted: spaces.Space[Any]) -> bool:
    """True if only one axis differs, as in stacked frames, and is a multiple of `wanted`'s."""
    shape, of_task = space.shape or (), wanted.shape or ()
    if len(shape) != len(of_task):
        return False
    differ = [(has, one) for has, one in zip(shape, of_task, strict=True) if has != one]
    return len(differ) == 1 and differ[0][1] > 0 and differ[0][0] % differ[0][1] == 0


def channels_first(space: spaces.Space[Any]) -> spaces.Space[Any] | None:
    """An image's space with channels first, as SB3's networks get it; None for other spaces."""
    if not isinstance(space, spaces.Box) or len(space.shape) != 3:
        return None
    low, high = (np.moveaxis(bound, -1, 0) for bound in (space.low, space.high))
    return spaces.Box(low, high, dtype=space.dtype)


class ModelPair(PredictPair):
    """Plays a loaded policy for all agents of a side; `episode_return` is one agent's return."""

    _n = 1
    """The number of agents."""

    def __init__(self, policy: Policy, space: spaces.Space[Any], seed: int) -> None:
        super().__init__(policy, space, deterministic=False)
        import torch  # noqa: PLC0415 - already loaded by the policy

        self._torch = torch
        self._draws: torch.Tensor = torch.Generator().manual_seed(seed).get_state()

    def put_rows(self, transitions: Sequence[Transition]) -> None:
        first = transitions[0]
        allowed = [one.action_masks for one in transitions if one.action_masks is not None]
        masks = np.stack(allowed) if allowed else None
        together = batch_of([one.observation for one in transitions])
        self._n = len(transitions)
        self.put(first._replace(observation=together, action_masks=masks))

    async def get_actions(self) -> Sequence[Any]:
        assert self._last is not None, "transitions are put before actions are gotten"
        predicted = self._predict(self._last.observation, self._last.action_masks, self._n)
        return [action_of(self._space, action) for action in predicted]

    def _predict(self, observation: Any, action_masks: Any, n: int = 1) -> Any:
        torch = self._torch
        others = torch.get_rng_state()
        torch.set_rng_state(self._draws)
        try:
            return super()._predict(observation, action_masks, n)
        finally:
            self._draws = torch.get_rng_state()
            torch.set_rng_state(others)


def batch_of(observations: Sequence[Any]) -> Any:
    """Observations as one batch for SB3's policies: an array, or a dict of arrays."""
    if isinstance(observations[0], Mapping):
        return {name: np.stack([one[name] for one in observations]) for name in observations[0]}
    return np.stack(observations)


def model_pair(policy: Policy, space: spaces.Space[Any], episode: Episode) -> QueuePair:
    """The queue pair with which a loaded policy plays an episode's agents."""
    return ModelPair(policy, space, int(draws_of(episode).integers(2**62, size=1)[0]))


def draws_of(episode: Episode) -> np.random.Generator:
    """A random generator; its seed is the episode's seed or, without one, the episode's number."""
    key = (0, episode.number) if episode.seed is None else (1, episode.seed)
    return np.random.default_rng(key)
