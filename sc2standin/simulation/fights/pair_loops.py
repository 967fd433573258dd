"""Chooses the loops over all pairs: the compiled ones if they are available, or those in Python.

Rule it keeps: the choice changes only the speed of a loop, so two processes of one match may choose
differently. SC2POOL_PURE=1 leaves the compiled loops out, as an installation without a compiler
does.
"""

from __future__ import annotations

import os
from contextlib import suppress

from sc2standin.simulation.fights.pairs import AHEAD, GRAZE, NO_TOUCH, ROUNDS, TINY, TURNS, Pairs
from sc2standin.simulation.world import World

Compiled: type[Pairs] | None = None
"""`Pairs` with the compiled loops; None if they are not available."""

if os.environ.get("SC2POOL_PURE", "0") == "0":
    with suppress(ImportError):
        from sc2standin.simulation.fights._pairs import Geometry

        class _Compiled(Geometry, Pairs):
            def __init__(self, world: World) -> None:
                Pairs.__init__(self, world)
                told = (self.units, self.index, self._targets, self.scan, self.closest)
                self.lay_out(*told, NO_TOUCH, TINY, AHEAD, GRAZE, ROUNDS, TURNS)

        Compiled = _Compiled


def pairs_of(world: World) -> Pairs:
    """The pairs of the world's units."""
    return Pairs(world) if Compiled is None else Compiled(world)
