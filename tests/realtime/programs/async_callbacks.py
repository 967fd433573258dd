"""Callbacks and interrupts for the tests of the algorithms that act while they learn."""

from __future__ import annotations

import itertools
import linecache
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecNormalize


class Recording(BaseCallback):
    """A callback that records the order and threads of calls, and the local variables of steps."""

    def __init__(self, last_call: int | None = None) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.steps: list[dict[str, Any]] = []
        self.threads: set[str] = set()
        self._last_call = last_call

    def _record(self, call: str) -> None:
        self.calls.append(f"{call} {self.model.num_timesteps}")
        self.threads.add(threading.current_thread().name)

    def _on_training_start(self) -> None:
        self._record("training_start")

    def _on_rollout_start(self) -> None:
        self._record("rollout_start")

    def _on_step(self) -> bool:
        self._record("step")
        self.steps.append(dict(self.locals))
        return self.n_calls != self._last_call

    def _on_rollout_end(self) -> None:
        self._record("rollout_end")

    def _on_training_end(self) -> None:
        self._record("training_end")


class Raises(BaseCallback):
    def _on_step(self) -> bool:
        raise LookupError("the callback has failed")


class Interrupts:
    """A tracer that interrupts `learn` a second time, `line` lines after a first Ctrl-C.

    The tracer does not interrupt at the end of a `with` block, because no real Ctrl-C can come
    between the block and the call of `__exit__`.
    `reached` is True if `learn` has reached the line of the second interrupt.
    """

    def __init__(self, line: int) -> None:
        self.reached = False
        self._lines_left = line
        self._ending = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.endswith(("contextlib.py", "threading.py")) and "sc2pool/realtime" not in file:
            return None
        if event == "exception" and frame.f_code.co_name == "collect_rollouts":
            self._ending = True
        elif event == "line" and self._ending and not is_with(frame):
            self._lines_left -= 1
            if self._lines_left == 0:
                self.reached = True
                raise KeyboardInterrupt
        return self


def is_with(frame: FrameType) -> bool:
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    return line.lstrip().startswith("with ")


class RaisesInterrupt(BaseCallback):
    def _on_step(self) -> bool:
        raise KeyboardInterrupt


def interrupt_at_every_line(
    model: Any, env: VecNormalize, steps: int, wait_for: Callable[[Callable[[], object]], None]
) -> None:
    """At each line after a first Ctrl-C, interrupt `learn` again; afterwards no actor may act.

    The observations count the env's steps. After each interrupt, a training must succeed.
    """
    for line in itertools.count(1):
        before = threading.gettrace()
        interrupts = Interrupts(line)
        sys.settrace(interrupts)
        try:
            with pytest.raises(KeyboardInterrupt):
                model.learn(10**9, callback=RaisesInterrupt())
        finally:
            sys.settrace(before)
        wait_for(lambda: "sc2pool-actor" not in {one.name for one in threading.enumerate()})
        assert type(env.ret_rms) is RunningMeanStd
        model.learn(steps, reset_num_timesteps=False)
        assert model._last_obs[:, 0].tolist() == env.get_attr("_steps")
        if not interrupts.reached:
            break
    assert line > 20, "all lines of the end were tried"
