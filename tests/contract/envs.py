"""Environments for the contract's tests, made in workers.

The classes of these environments are sent to the workers by value, like those of a training script,
so that a worker imports neither this module nor the modules that this one imports.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import cloudpickle
import gymnasium
import numpy as np
from gymnasium import spaces

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Counting(gymnasium.Env):
    """Observes the number of steps of its episode, which ends after `length` steps."""

    action_space = spaces.Discrete(5)
    observation_space = spaces.Box(0, 999, (1,), np.float32)

    def __init__(self, length: int = 3, end: str = "terminated") -> None:
        self.length = length
        self.end = end
        self.count = 0
        self.steps_in_life = 0
        self.actions: list[Any] = []

    def reset(self, **keywords: Any) -> tuple[Any, dict[str, Any]]:
        self.count = 0
        return self.observation(), {"keywords": keywords}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.count += 1
        self.steps_in_life += 1
        self.actions.append(action)
        over = self.count >= self.length
        terminated, truncated = over and self.end != "truncated", over and self.end != "terminated"
        return self.observation(), float(self.count), terminated, truncated, {"count": self.count}

    def observation(self) -> Any:
        return np.array([self.count], np.float32)

    def area(self, height: int = 1, width: int = 1) -> Any:
        return np.ones((height, width))

    def fail(self) -> None:
        raise LookupError("as asked")


class Outer(gymnasium.Wrapper):
    """A wrapper like a user's, with a method and an attribute of its own."""

    outer_only = "outer"

    def wrapped_twice(self) -> int:
        return 2


class Derived(Outer):
    """A subclass of `Outer`, for calls that ask for an `Outer`."""


class Sampling(gymnasium.Env):
    """Observes samples of a space, and has random rewards; the seed of `reset` decides both."""

    def __init__(self, space: spaces.Space, action_space: spaces.Space | None = None) -> None:
        self.observation_space = space
        self.action_space = action_space or space
        self.random = np.random.default_rng(0)
        self.last_action: Any = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self.random = np.random.default_rng(seed)
            self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.last_action = action
        return self.observation_space.sample(), self.random.random(), False, False, {}


class Words(spaces.Space):
    """A space of another class than gymnasium's."""

    def sample(self, **_: Any) -> str:
        return "word"

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Words)

    def __hash__(self) -> int:
        return hash(Words)


class Gated(Counting):
    """Each step ends when a file exists, or after 20 s, so that a failed test does not hang."""

    def __init__(self, gate: str, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.gate = Path(gate)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        give_up_s = time.monotonic() + 20.0
        while not self.gate.exists() and time.monotonic() < give_up_s:
            time.sleep(0.002)
        return super().step(action)


class Crowded(Counting):
    """Counts with files in a folder how many envs of this class step or reset at the same time."""

    def __init__(self, folder: str, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.folder = Path(folder)
        self.most = 0

    def meet(self) -> None:
        mine = self.folder / str(os.getpid())
        mine.touch()
        leave_s = time.monotonic() + 0.03
        while time.monotonic() < leave_s:
            self.most = max(self.most, len(list(self.folder.iterdir())))
        mine.unlink()

    def reset(self, **keywords: Any) -> tuple[Any, dict[str, Any]]:
        self.meet()
        return super().reset(**keywords)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.meet()
        return super().step(action)


class Hanging(Counting):
    """Hangs in its step ("step"), or in a call of its method `area` ("call")."""

    def __init__(self, hangs_in: str) -> None:
        super().__init__()
        self.hangs_in = hangs_in

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self.hangs_in == "step":
            time.sleep(60)
        return super().step(action)

    def area(self, *_: Any, **__: Any) -> int:
        if self.hangs_in == "call":
            time.sleep(60)
        return 0


class Drawing(Counting):
    """Renders a picture of one given colour."""

    metadata: ClassVar = {"render_modes": ["rgb_array"]}

    def __init__(self, colour: int, render_mode: str | None = "rgb_array") -> None:
        super().__init__()
        self.colour = colour
        self.render_mode = render_mode

    def render(self) -> Any:
        return np.full((4, 6, 3), self.colour, np.uint8)


class Mischief(Counting):
    """Calls a given function at one point of its life: "init", "reset", "step" or "close"."""

    def __init__(self, when: str, harm: Any) -> None:
        super().__init__()
        self.when = when
        self.harm = harm
        self.at("init")

    def at(self, point: str) -> None:
        if self.when == point:
            self.harm()

    def reset(self, **keywords: Any) -> tuple[Any, dict[str, Any]]:
        self.at("reset")
        return super().reset(**keywords)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at("step")
        return super().step(action)

    def close(self) -> None:
        self.at("close")


class Answering(Counting):
    """An env whose steps return its constructor's reward and, if given, observation and info."""

    def __init__(self, observation: Any = None, info: Any = None, reward: Any = 0.0) -> None:
        super().__init__()
        self.answer = (observation, reward, info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
        normal, _, _, _, _ = super().step(action)
        observation, reward, info = self.answer
        return normal if observation is None else observation, reward, False, False, info or {}


class OldInterface(Counting):
    """An env with a method that returns values as in gym, the predecessor of gymnasium."""

    def __init__(self, method: str = "", space: Any = Counting.observation_space) -> None:
        super().__init__()
        self.method = method
        self.observation_space = space

    def reset(self, **keywords: Any) -> Any:
        begun = super().reset(**keywords)
        return begun[0] if self.method == "reset" else begun

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        if self.method == "step":
            return observation, reward, terminated or truncated, info
        return observation, reward, terminated, truncated, info


class OfTwo(Exception):
    """An error that cannot be unpickled: its class needs two values, and the pickle has one."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first + second)


def raise_of_two() -> None:
    """A function for `Mischief` to call; its exception cannot be unpickled."""
    raise OfTwo("of ", "two")


def raise_cancelled() -> None:
    """A function for `Mischief` to call; it raises CancelledError."""
    raise asyncio.CancelledError("by the user")


class RaisesWhenUnpickled:
    """An object that a worker can unpickle; if the worker sends it back, the trainer cannot."""

    def __init__(self, travelled: bool = False) -> None:
        self.travelled = travelled

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return (raise_of_two, ()) if self.travelled else (RaisesWhenUnpickled, (True,))
