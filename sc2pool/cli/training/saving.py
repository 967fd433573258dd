"""Saves a run while it goes on: the model and the curve.

Rules: a file is replaced as a whole, so the last good one stays if a save fails; a save that fails
(full disk, lost permission) is said in one line and tried again, and the training goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stable_baselines3.common.base_class import BaseAlgorithm

from sc2pool.cli.stop import say
from sc2pool.cli.training.run_folder import MODEL_FILE
from sc2pool.tasks.opponents.models import save_model


class Saver:
    """Saves one run.

    Attributes:
        problem: why the newest save failed; None if it did not.
    """

    def __init__(self, model: BaseAlgorithm, folder: Path, draw_curve: Callable[[], None]) -> None:
        self._model = model
        self._path = folder / MODEL_FILE
        self._draw_curve = draw_curve
        self.problem: str | None = None

    def save(self) -> None:
        """Save the model and the curve, or say why that failed."""
        try:
            save_model(self._model, self._path)
            self._draw_curve()
        except OSError as error:
            self.problem = f"cannot save to {self._path.parent}: {error.strerror or error}"
            say(f"{self.problem}; {self.last_good()}")
        else:
            self.problem = None

    def last_good(self) -> str:
        """Where the newest model is that could be saved."""
        return (
            f"the last good model is {self._path}" if self._path.exists() else "no model is saved"
        )
