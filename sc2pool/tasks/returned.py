"""What a task's hooks return, checked; an error names the hook, its class and its place."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import ObservationError


def as_reward(task: object, value: Any) -> float:
    """What `reward` returned.

    Raises:
        ObservationError: it is no number, or NaN or infinite.
    """
    # An array without dimensions is what numpy's functions return for one number.
    is_array = isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf"
    if is_array or isinstance(value, Real | np.bool_):
        with suppress(OverflowError):  # an int may be too large
            reward = float(value)
            if isfinite(reward):
                return reward
    raise wrong(task, "reward", value, "a finite number")


def as_flag(task: object, value: Any) -> bool:
    """What `terminated` returned.

    Raises:
        ObservationError: it is an array, or another value that is neither true nor false.
    """
    try:
        return bool(value)
    except (TypeError, ValueError):
        raise wrong(task, "terminated", value, "true or false") from None


def as_info(task: object, value: Any) -> Mapping[str, Any]:
    """What `info` returned; None is an empty one.

    Raises:
        ObservationError: it is no dict.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong(task, "info", value, "a dict")
    return value


def as_result(task: object, value: Any) -> int | None:
    """What `result` returned; None is undecided.

    Raises:
        ObservationError: it is no `sc2api_pb2.Result`.
    """
    if value is None or (isinstance(value, int) and value in sc_pb.Result.values()):
        return value
    raise wrong(task, "result", value, "None or a sc2api_pb2.Result, such as sc2api_pb2.Victory")


def wrong(task: object, hook: str, value: object, expected: str) -> ObservationError:
    """The error that names the hook and what it returned."""
    given = f"{value!r:.80} of type {type(value).__name__}" if value is not None else "nothing"
    return ObservationError(f"{place_of(task, hook)} returned {given}, expected {expected}")


def place_of(task: object, hook: str) -> str:
    """`Walk.reward() (my_tasks.py, line 12)`; the name alone if it is not written in Python."""
    function = getattr(type(task), hook, None)
    code = getattr(function, "__code__", None)
    place = f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""
    return f"{type(task).__name__}.{hook}(){place}"
