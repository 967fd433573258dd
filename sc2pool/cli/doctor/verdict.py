"""What a check can end in, and what stands in a measurement's place where there is none."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from sc2pool.errors import FaultKind


class Outcome(StrEnum):
    """How a check went."""

    OK = "ok"
    DIFFERS = "differs"
    """It works, but not as sc2pool was developed and tested with, or not as well."""
    FAILED = "failed"
    """It does not work, and has to be mended before sc2pool can."""
    NOT_POSSIBLE = "not possible"
    """There was nothing to measure, or what it needs was not there."""


class Verdict(NamedTuple):
    """A judged measurement."""

    outcome: Outcome
    figure: str
    """What was measured, in words and with units."""
    advice: str = ""
    """What it means and what to do about it; empty if nothing has to be done."""


@dataclass(frozen=True)
class Unknown:
    """A check that could not be made."""

    reason: str


@dataclass(frozen=True)
class Broke:
    """A check during which something failed."""

    detail: str
    kind: FaultKind | None = None
    """What the game did; None if something was wrong before it was spoken to."""
