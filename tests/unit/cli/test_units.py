"""Durations and sizes as people read them."""

from __future__ import annotations

import math

import pytest

from sc2pool.cli.units import NONE, duration, size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.9, "0s"),
        (59, "59s"),
        (184, "3m04s"),
        (7500, "2h05m"),
        (273_600, "3d04h"),
        (math.inf, NONE),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("size_bytes", "text"), [(12_400_000, "12M"), (1_234_567_890, "1.2G")])
def test_size(size_bytes: int, text: str) -> None:
    assert size(size_bytes) == text
