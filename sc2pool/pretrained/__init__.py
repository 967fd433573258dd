"""Small policies that were trained on the stand-in, for `sc2pool play NAME`.

NAME.zip      SB3's file
scores.json   how each policy was made, and its scores; `scripts/pretrained.py` writes both

The policies were trained on the stand-in, so they are no measure of play in StarCraft II.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Pretrained:
    """A pretrained policy."""

    task: str
    command: str
    """The command that trained it."""
    game_version: str
    """The version of the game on which it was trained and scored."""
    episodes: int
    """The number of episodes of its scores."""
    mean_return: float
    std_return: float
    outcome: str = ""
    """The results of its matches, in words; empty for a task of one player."""

    @property
    def path(self) -> Path:
        """The model's file."""
        return _FOLDER / f"{self.task}.zip"


def pretrained() -> dict[str, Pretrained]:
    """All pretrained policies, by the task's name."""
    found: list[dict[str, Any]] = json.loads((_FOLDER / "scores.json").read_text())
    return {one["task"]: Pretrained(**one) for one in found}
