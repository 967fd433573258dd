"""Overwrites every array that a trainer passed or got, because a trainer may change its arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

SCRIBBLE = -7


def arrays_in(value: Any) -> Iterable[np.ndarray[Any, Any]]:
    """Every array in nested values."""
    if isinstance(value, np.ndarray):
        yield value
        if value.dtype != object:
            return
        value = value.tolist()
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple | Iterable) or isinstance(value, str | bytes):
        return
    for part in value:
        if part is not value:
            yield from arrays_in(part)


def scribble(*given: Any) -> None:
    """Write over every number in these values."""
    for array in arrays_in(given):
        if array.dtype != object:
            array[...] = np.array(SCRIBBLE).astype(array.dtype)
