"""The learner's updates in a child process: the code of both processes, and the model's state.

In this diagram the trainer is on the left, and the update process on the right.

    Packed       ──────────► Unpacked
                                │ train
    Packed.adopt ◄────────── Unpacked.changes, log records.

`ChildProcess` carries the messages, and raises an exception of `train` in the trainer. The child
process has the model without its env. Each update sends the model's whole state, so changes that
the user or a callback makes to the model reach the child process. The child process sends back the
changes that `train` has made, and keeps no model between updates.

The model is sent as one pickle. So the child process gets everything that the user may have
changed: parameters, frozen parameters, the optimizer, and the user's attributes. Modules,
parameters, buffers and optimizers are numbered in the order in which they are pickled. The trainer
changes its own objects in place, so the user's references to them stay valid. The env, the logger,
and attributes that pickle rejects are not sent. An attribute is replaced only if it has changed.

`copied` copies a policy for the actor.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import cloudpickle
import numpy as np
import torch as th
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import set_random_seed
from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from sc2pool.errors import LearnerError
from sc2pool.utilities import ChildProcess, answer, pickle_script_by_value


@dataclass(frozen=True)
class Begin:
    """The first message to the child process, with settings that the trainer passes on."""

    sys_path: list[str]
    threads: int
    seed: int
    """The seed for the shuffling of samples, drawn from the trainer's random generator."""
    state: bytes
    """The model's state, which the child process unpickles to test the imports."""


@dataclass(frozen=True)
class Updated:
    """The result of an update."""

    changes: bytes
    """The changes to the model's state, from `Unpacked.changes`."""
    logged: Mapping[str, tuple[Any, tuple[str, ...]]]
    """The value of each log record, and the output formats that exclude the record, by name."""


class UpdateProcess(ChildProcess):
    """Starts the child process, and waits until it has loaded the model.

    Raises `LearnerError` if the process has exited, or uses no CPU time. Raises another error if
    the policy cannot be pickled, or if the child process cannot import the policy's modules.
    """

    def __init__(self, model: PPO) -> None:
        pickle_script_by_value()
        state = Packed(model, with_inputs=False).data
        seed = int(np.random.randint(1 << 31))
        super().__init__(
            "sc2pool.realtime.async_ppo",
            Begin(list(sys.path), th.get_num_threads(), seed, state),
            name="the process that computes the updates",
            error=LearnerError,
        )

    def update(self, model: PPO) -> None:
        """Run `model.train()` in the child process, and raise an error of `train` in this process.

        Raises `LearnerError` if the process has exited, or uses no CPU time.
        """
        packed = Packed(model)
        updated: Updated = self.request(packed.data)
        packed.adopt(updated.changes)
        for name, (value, exclude) in updated.logged.items():
            model.logger.record(name, value, exclude)


def main(descriptor: int) -> None:
    """Handle messages until the trainer closes the socket."""
    answer(descriptor, _handle, "updating")


def _handle(message: Begin | bytes) -> Updated | None:
    """Handle a message, which is `Begin` or the state of a model to update."""
    if isinstance(message, bytes):
        return _update(message)
    sys.path[:] = message.sys_path
    th.set_num_threads(message.threads)
    set_random_seed(message.seed)
    Unpacked(message.state)
    return None


def _update(state: bytes) -> Updated:
    unpacked = Unpacked(state)
    logger = Logger(folder=None, output_formats=[])
    unpacked.model.set_logger(logger)
    unpacked.model.train()
    logged = {
        name: (value, logger.name_to_excluded[name]) for name, value in logger.name_to_value.items()
    }
    return Updated(unpacked.changes(), logged)


_STAYS: Final = frozenset({"env", "_vec_normalize_env", "_logger", "_actor"})
"""Attributes of a model that are not sent, so they stay in the trainer."""
_INPUTS: Final = frozenset({"rollout_buffer"})
"""Attributes that an update reads but does not change."""
P = TypeVar("P", bound=BasePolicy)
_OBJECTS = (nn.Module, th.optim.Optimizer)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    """Pickles a part of a model, or a whole model without the attributes in `left_out`.

    `numbers` maps an object's id to the number that is written in place of the object. Without
    `numbers`, the model and its modules, tensors and optimizers are collected in `parts`.
    """

    def __init__(
        self,
        file: io.BytesIO,
        model: PPO | None = None,
        left_out: frozenset[str] = _STAYS,
        numbers: Mapping[int, int] | None = None,
    ) -> None:
        super().__init__(file)
        self.parts: list[Any] = []
        self._model = model
        self._left_out = left_out
        self._numbers = numbers
        self._met: set[int] = set()

    def persistent_id(self, value: Any) -> int | None:
        if self._numbers is not None:
            return self._numbers.get(id(value))
        is_part = value is self._model or isinstance(value, _OBJECTS) or _holds_values(value)
        if is_part and id(value) not in self._met:
            self._met.add(id(value))
            self.parts.append(value)  # keeps the part alive, so its id stays unique
        return None

    def reducer_override(self, value: Any) -> Any:
        if value is self._model:
            kept = {k: v for k, v in vars(value).items() if k not in self._left_out}
            return copyreg.__newobj__, (type(value),), kept  # type: ignore[attr-defined]
        if isinstance(value, nn.Module) and is_parametrized(value):
            # Torch can copy a parametrized module, but cannot pickle it.
            return copyreg.__newobj__, (type(value),), vars(value)  # type: ignore[attr-defined]
        return super().reducer_override(value)


class _Unpickler(pickle.Unpickler):
    """Unpickles data of `_Pickler`, with the object `parts[i]` in place of a written number `i`."""

    def __init__(self, data: bytes, parts: list[Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._parts = parts

    def persistent_load(self, number: int) -> Any:
        return self._parts[number]


def _holds_values(value: Any) -> bool:
    """True for a writable tensor, such as a parameter, a buffer or an optimizer's average."""
    return (
        isinstance(value, th.Tensor)
        and value.is_leaf
        and value.layout is th.strided
        and 0 not in value.stride()
    )


def copied(policy: P) -> P:
    """A copy of the policy without its optimizers. If pickling fails, raises pickle's error."""
    file = io.BytesIO()
    attributes = (value for module in policy.modules() for value in vars(module).values())
    optimizers = {id(value): 0 for value in attributes if isinstance(value, th.optim.Optimizer)}
    try:
        _Pickler(file, numbers=optimizers).dump(policy)
    except Exception as error:
        error.add_note(
            "the actor uses a copy of the policy, which is made by pickle; the policy's "
            "__getstate__ can leave out attributes that cannot be pickled"
        )
        raise
    copy: P = _Unpickler(file.getvalue(), [None]).load()
    return copy


class Packed:
    """A model's state for one update: the model's objects, and `data`, the pickle for `Unpacked`.

    If `with_inputs`, the rollout buffer, which an update needs, is packed as well. If the policy
    cannot be pickled, pickle's error is raised with a note.
    """

    def __init__(self, model: PPO, *, with_inputs: bool = True) -> None:
        left_out = _STAYS if with_inputs else _STAYS | _INPUTS
        try:
            pickler, self.data = _dump(model, left_out)
        except Exception:
            numbers = {id(model): 0}
            unfit = {name for name, value in vars(model).items() if not _pickled(value, numbers)}
            try:
                pickler, self.data = _dump(model, left_out | (unfit - {"policy"}))
            except Exception as error:
                error.add_note("an update in a child process pickles the model's policy")
                raise
        self._parts = pickler.parts

    def adopt(self, changes: bytes) -> None:
        """Apply to the model the changes that an update has made."""
        tensors, entries = pickle.loads(changes)
        with th.no_grad():
            for number, (value, requires_grad) in tensors.items():
                tensor = self._parts[number].requires_grad_(requires_grad)
                if tensor.shape == value.shape:
                    tensor.copy_(value)
                else:
                    tensor.data = value
        for number, changed in entries.items():
            attributes = vars(self._parts[number])
            for name, data in changed.items():
                if data is None:
                    attributes.pop(name, None)
                else:
                    attributes[name] = _Unpickler(data, self._parts).load()


def _dump(model: PPO, left_out: frozenset[str]) -> tuple[_Pickler, bytes]:
    file = io.BytesIO()
    pickler = _Pickler(file, model, left_out)
    pickler.dump(model)
    pickler.dump(pickler.parts)  # adds only references, because the pickle has all parts
    return pickler, file.getvalue()


def _pickled(value: Any, numbers: Mapping[int, int]) -> bytes | None:
    """The pickle of an attribute (see `_Pickler` for `numbers`); None if pickle rejects it."""
    file = io.BytesIO()
    try:
        _Pickler(file, numbers=numbers).dump(value)
    except Exception:
        return None
    return file.getvalue()


class Unpacked:
    """A model that the child process gets from `Packed.data`, without env and logger."""

    def __init__(self, data: bytes) -> None:
        unpickler = pickle.Unpickler(io.BytesIO(data))
        self.model: PPO = unpickler.load()
        self._parts: list[Any] = unpickler.load()
        for name in _STAYS:
            vars(self.model)[name] = None
        self._numbers = {id(part): number for number, part in enumerate(self._parts)}
        self._before = self._entries()

    def changes(self) -> bytes:
        """The model's changes since this object was made, in the form that `Packed.adopt` gets."""
        tensors, storages = {}, set()
        for number, part in enumerate(self._parts):
            if _holds_values(part):
                # If two tensors share memory, like a parameter and its data, send only one of them.
                place = part.untyped_storage().data_ptr(), part.storage_offset(), part.shape
                if place not in storages:
                    storages.add(place)
                    tensors[number] = part.detach(), part.requires_grad
        entries: dict[int, dict[str, bytes | None]] = {}
        now = self._entries()
        for number, name in self._before.keys() - now.keys():
            entries.setdefault(number, {})[name] = None
        for (number, name), data in now.items():
            if data is not None and data != self._before.get((number, name)):
                entries.setdefault(number, {})[name] = data
        return pickle.dumps((tensors, entries), protocol=pickle.HIGHEST_PROTOCOL)

    def _entries(self) -> dict[tuple[int, str], bytes | None]:
        """The pickled attributes by part and name; None for an attribute that pickle rejects."""
        return {
            (number, name): _pickled(value, self._numbers)
            for number, part in enumerate(self._parts)
            if not isinstance(part, th.Tensor)
            for name, value in vars(part).items()
            if part is not self.model or name not in _STAYS | _INPUTS
        }
