"""The table of all known attacks."""

from __future__ import annotations

from chaos.attacks import (
    clock,
    files,
    forks,
    games,
    interrupts,
    nodes,
    resources,
    signals,
)
from chaos.attacks.attack import Attack

ATTACKS: dict[str, Attack] = {
    **signals.ATTACKS,
    **games.ATTACKS,
    **resources.ATTACKS,
    **files.ATTACKS,
    **clock.ATTACKS,
    **interrupts.ATTACKS,
    **forks.ATTACKS,
    **nodes.ATTACKS,
}
