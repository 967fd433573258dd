"""Which way to look at all pairs is used: the compiled loop if it is there, else by their number.

Rule it keeps: it changes how fast a loop is and nothing else, so two processes of one match may
differ in it. SC2POOL_PURE=1 leaves it out, as an installation without a compiler does.
"""

from __future__ import annotations

import os
from contextlib import suppress

from sc2standin.simulation.fights.pairs import (
    MANY,
    NO_TOUCH,
    PUSH_SHARE,
    TINY,
    Few,
    Many,
    Pairs,
)
from sc2standin.simulation.world import World

Compiled: type[Pairs] | None = None
"""A loop over the pairs that is faster than both others for any number; None if it is not there."""

if os.environ.get("SC2POOL_PURE", "0") == "0":
    with suppress(ImportError):
        from sc2standin.simulation.fights._pairs import Geometry

        class _Compiled(Geometry, Pairs):
            def __init__(self, world: World) -> None:
                Pairs.__init__(self, world)
                told = (self.units, self._targets, self.scan, self.closest)
                self.lay_out(*told, NO_TOUCH, TINY, PUSH_SHARE)

        Compiled = _Compiled


def pairs_of(world: World) -> Pairs:
    """The pairs of the world's units."""
    if Compiled is not None:
        return Compiled(world)
    return Few(world) if len(world.walkers) < MANY else Many(world)
