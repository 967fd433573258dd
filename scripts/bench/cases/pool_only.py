"""Case *pool only*: the envs are empty, so that only the pool around them is measured.

The same env runs under the pool, under SB3's and gymnasium's vector envs, and over bare shared
memory, which is the limit.
"""

from __future__ import annotations

from functools import partial

from bench.report import Row, throughput_rows
from bench.settings import Settings, before
from bench.sides import BARE, GYMNASIUM, POOL, SB3, empty_side

CASE = "pool only"
NS = (1, 8, 32)
SIZES_KB = (1, 32, 256)
PEERS = (SB3, GYMNASIUM, BARE)


def pool_only(settings: Settings) -> list[Row]:
    """Measure all sizes of observations and all numbers of envs."""
    rows = []
    for n in settings.ns or NS:
        for size_kb in settings.sizes_kb or SIZES_KB:
            setting = f"n={n}, {size_kb} KB"
            makers = {kind: partial(empty_side, kind, n, size_kb * 1024) for kind in (POOL, *PEERS)}
            makers |= settings.before("empty_side", {POOL: (POOL, n, size_kb * 1024)})
            measured = settings.compare(f"{CASE}, {setting}", makers)
            rows += throughput_rows(CASE, setting, measured, {POOL: (before(POOL), *PEERS)})
    return rows
