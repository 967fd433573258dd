"""Small policies that were trained on the stand-in, for `sc2pool play NAME`.

NAME.zip      what SB3 saved; trained on the stand-in, so no measure of play in StarCraft II
scores.json   how each was made, and how well it plays; `scripts/pretrained.py` writes both
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Pretrained:
    """One of them."""

    task: str
    command: str
    """That trained it."""
    game_version: str
    """Of the game that it was trained on and that it was scored on."""
    episodes: int
    """That its scores are of."""
    mean_return: float
    std_return: float
    outcome: str = ""
    """Of matches, in words; empty for a task of one player."""

    @property
    def path(self) -> Path:
        """The model's file."""
        return _FOLDER / f"{self.task}.zip"


def pretrained() -> dict[str, Pretrained]:
    """All of them, by the task's name."""
    found: list[dict[str, Any]] = json.loads((_FOLDER / "scores.json").read_text())
    return {one["task"]: Pretrained(**one) for one in found}
