"""Paths and commands as a user can paste them into a shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from sc2pool import shell
from sc2pool.shell import quoted


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
    monkeypatch.setattr(shell, "WINDOWS", windows)
    assert quoted(Path(path)) == word
