"""All known attacks, as one table: `ATTACKS`."""

from __future__ import annotations

from chaos.attacks import files, forks, games, interrupts, resources, signals
from chaos.attacks.attack import Attack

ATTACKS: dict[str, Attack] = {
    **signals.ATTACKS,
    **games.ATTACKS,
    **resources.ATTACKS,
    **files.ATTACKS,
    **interrupts.ATTACKS,
    **forks.ATTACKS,
}
