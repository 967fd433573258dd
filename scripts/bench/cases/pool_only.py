"""Case *pool only*: empty envs, so that only the pool around them is measured.

The same env under the pool, under SB3's and gymnasium's, and over bare shared memory, which is the
limit. Case *waiting*: the CPU time of trainer and workers while all envs sleep; it shows busy
waiting.
"""

from __future__ import annotations

from functools import partial

from bench.report import Row, throughput_rows, value_row
from bench.settings import Settings, before
from bench.sides import BARE, GYMNASIUM, POOL, SB3, empty_side

CASE = "pool only"
WAITING = "waiting"
NS = (1, 8, 32)
SIZES_KB = (1, 32, 256)
PEERS = (SB3, GYMNASIUM, BARE)
SLEEP_S = 0.02
N_SLEEPING = 8


def pool_only(settings: Settings) -> list[Row]:
    """All sizes and numbers of envs."""
    rows = []
    for n in settings.ns or NS:
        for size_kb in settings.sizes_kb or SIZES_KB:
            setting = f"n={n}, {size_kb} KB"
            makers = {kind: partial(empty_side, kind, n, size_kb * 1024) for kind in (POOL, *PEERS)}
            makers |= settings.before("empty_side", {POOL: (POOL, n, size_kb * 1024)})
            measured = settings.compare(f"{CASE}, {setting}", makers)
            rows += throughput_rows(CASE, setting, measured, {POOL: (before(POOL), *PEERS)})
    return rows


def waiting(settings: Settings) -> list[Row]:
    """CPU time while the envs sleep, as a share of one core."""
    rows = []
    for n in (settings.ns or (N_SLEEPING,))[-1:]:
        setting = f"n={n}, envs sleep {SLEEP_S * 1000:g} ms"
        makers = {
            kind: partial(empty_side, kind, n, 1024, SLEEP_S) for kind in (POOL, SB3, GYMNASIUM)
        }
        measured = settings.compare(f"{WAITING}, {setting}", makers)
        for kind, rounds in measured.items():
            shares = [100 * sum(one.cpu_s.values()) / one.seconds for one in rounds]
            rows.append(value_row(WAITING, setting, kind, shares, unit="% of a core"))
    return rows
