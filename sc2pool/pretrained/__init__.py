"""Small policies that were trained on the stand-in, for `sc2pool play NAME`.

The file NAME.zip is a policy in SB3's format. The file scores.json has each policy's command and
scores. Both files are written by `scripts/pretrained.py`.

The policies were trained on the stand-in, so their scores say nothing about StarCraft II.
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
    """The command that trained the policy."""
    game_version: str
    """The version of the game on which the policy was trained and scored."""
    episodes: int
    """The number of episodes over which the scores were measured."""
    mean_return: float
    std_return: float
    outcome: str = ""
    """A text on the results of the policy's matches; empty for a task of one player."""

    @property
    def path(self) -> Path:
        """The model's file."""
        return _FOLDER / f"{self.task}.zip"


def pretrained() -> dict[str, Pretrained]:
    """All pretrained policies, by the task's name."""
    found: list[dict[str, Any]] = json.loads((_FOLDER / "scores.json").read_text())
    return {one["task"]: Pretrained(**one) for one in found}
