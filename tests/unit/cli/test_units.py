"""Durations and sizes as people read them, and paths as a shell reads them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from sc2pool.cli import units
from sc2pool.cli.units import NONE, duration, quoted, size


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


@pytest.mark.parametrize(
    ("windows", "path", "word"),
    [
        (False, "runs/first", "runs/first"),
        (False, "my runs/it's", """'my runs/it'"'"'s'"""),
        (True, r"runs\first", r"runs\first"),
        (True, r"C:\my runs\first", r'"C:\my runs\first"'),
    ],
)
def test_quoted(monkeypatch: pytest.MonkeyPatch, windows: bool, path: str, word: str) -> None:
    monkeypatch.setattr(units, "WINDOWS", windows)
    assert quoted(Path(path)) == word
