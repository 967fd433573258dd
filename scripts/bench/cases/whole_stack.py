"""Case *whole stack*: the pool, the recipe and the bare wire play one task on equal games."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from bench.report import Row, throughput_rows
from bench.settings import Settings, before
from bench.sides import POOL_BOT, POOL_TASK, RECIPE, WIRE, game_side
from bench.tasks import CANNED, bot_on

CASE = "whole stack"
MAPS = (CANNED, "MoveToBeacon", "CollectMineralShards", "DefeatRoaches")
NS = (8,)
END_EARLY = ("DefeatRoaches",)
"""Maps whose episodes may end at any step.

The bare wire cannot play these maps, because it does not notice an episode's end. Rows of these
maps exclude the wall time of resets, and show no CPU time, because resets' share of it is unknown.
"""


def whole_stack(settings: Settings) -> list[Row]:
    """Measure all maps."""
    rows = []
    for map_name in settings.maps or MAPS:
        kinds = [POOL_TASK, RECIPE]
        if bot_on(map_name) is not None:
            kinds.insert(1, POOL_BOT)
        if map_name not in END_EARLY:
            kinds.append(WIRE)
        for n in settings.ns or NS:
            setting = f"n={n}, {map_name}"
            makers = {kind: partial(game_side, kind, map_name, n, settings.root) for kind in kinds}
            ours = {kind: (kind, map_name, n) for kind in kinds if kind in (POOL_TASK, POOL_BOT)}
            makers |= settings.before("game_side", ours)
            measured = settings.compare(f"{CASE}, {setting}", makers)
            against = {kind: (before(kind), RECIPE, WIRE) for kind in ours} | {RECIPE: (WIRE,)}
            for row in throughput_rows(CASE, setting, measured, against):
                early = map_name in END_EARLY
                rows.append(replace(row, cpu_us_per_step=None) if early else row)
    return rows
