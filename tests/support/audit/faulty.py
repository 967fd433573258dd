"""Installations of `faulty_game.py`, whose games do harm when a test orders it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.support.installations import changed

PROGRAM = Path(__file__).with_name("faulty_game.py")


@dataclass(frozen=True)
class Faulty:
    """An installation of `faulty_game.py`, and the file of its orders."""

    installation: Path
    orders: Path

    @classmethod
    def install(cls, standin: Path, folder: Path) -> Faulty:
        """Make an installation of `faulty_game.py` below `folder`, from one of the stand-in."""
        orders, installation = folder / "orders", folder / "installation"
        program = f'"{PROGRAM}" "{orders}" '
        changed(standin, installation, lambda script: script.replace("-m sc2standin ", program))
        return cls(installation, orders)

    def order(self, harm: str, at: str, **more: Any) -> None:
        """Order one harm; the first game that gets to the point `at` does it."""
        whole = self.orders.with_suffix(".new")
        whole.write_text(json.dumps({"id": uuid4().hex, "harm": harm, "at": at, **more}))
        whole.rename(self.orders)

    @property
    def done(self) -> bool:
        """True if the last order was carried out."""
        return not self.orders.exists()
