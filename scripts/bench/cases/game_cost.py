"""Case *games of a given cost*: in each step a game with prepared answers burns CPU time or sleeps.

Games that burn CPU time use the cores that pool and recipe need, so the bare wire is the limit. A
game that sleeps imitates a game on a core of its own. If the cores suffice for all other work, n
sleeping games can reach n times the rate of a single game on the bare wire. With sleeping games the
CPU time of a step is also measured for several numbers n of games; it should not rise with n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from operator import methodcaller
from typing import Any

import psutil

from bench.comparison import ratio
from bench.report import Row, throughput_rows, value_row
from bench.settings import Settings, before
from bench.sides import (
    POOL_ALONE,
    POOL_FIRST_READY,
    POOL_TASK,
    RECIPE,
    WIRE,
    FirstReadySide,
    game_side,
)
from bench.standin import canned_map
from sc2pool.cli.bench.measuring import ROLES, tell

CASE = "game cost"
BURNS = ("nothing", "burn 0.5 ms", "burn 2 ms")
SLEEP = "sleep 5 ms"
N_BURNING = (8,)
NS_SLEEPING = (1, 8, 32, 64)
NS_SCALING = (8, 16, 32, 64)
MIN_READY = 8
ONE_GAME = f"{WIRE}, one game"
ALONE = "n × one game alone"
GAMES_PER_ENV = 2
"""The number of games that run for each env: one of the pool and one of the bare wire."""
BYTES_PER_GAME = 120_000_000
"""The approximate memory of a stand-in game with its worker."""


def game_cost(settings: Settings) -> list[Row]:
    """Measure burning games, sleeping games, and the CPU time of a step."""
    return [*burning(settings), *sleeping(settings), *scaling(settings)]


def burning(settings: Settings) -> list[Row]:
    """Measure games that burn CPU time."""
    rows = []
    for cost in settings.costs or BURNS:
        if cost == SLEEP:
            continue
        for n in settings.ns or N_BURNING:
            setting = f"n={n}, {cost}"
            makers = {
                kind: partial(game_side, kind, canned_map(cost), n, settings.root)
                for kind in (POOL_TASK, POOL_ALONE, RECIPE, WIRE)
            }
            makers |= settings.before("game_side", {POOL_TASK: (POOL_TASK, canned_map(cost), n)})
            measured = settings.compare(f"{CASE}, {setting}", makers)
            against = {
                POOL_TASK: (before(POOL_TASK), POOL_ALONE, RECIPE, WIRE),
                POOL_ALONE: (WIRE,),
                RECIPE: (WIRE,),
            }
            rows += throughput_rows(CASE, setting, measured, against)
    return rows


def sleeping(settings: Settings) -> list[Row]:
    """Measure n games that sleep, and compare their rate with n times the rate of a single game."""
    rows: list[Row] = []
    for n in wanted_ns(settings, NS_SLEEPING, GAMES_PER_ENV):
        setting = f"n={n}, {SLEEP}"
        measured = settings.compare(f"{CASE}, {setting}", sleeping_sides(settings, n))
        alone = measured.pop(ONE_GAME, None)
        against = {POOL_TASK: (before(POOL_TASK), WIRE), POOL_FIRST_READY: (WIRE,)}
        for row in throughput_rows(CASE, setting, measured, against):
            share = {ALONE: ratio(row.rounds, alone) / n} if alone else {}
            rows.append(replace(row, ratios={**share, **row.ratios}))
        if alone:
            rows += throughput_rows(CASE, setting, {ONE_GAME: alone}, {})
    return rows


def sleeping_sides(settings: Settings, n: int) -> dict[str, Callable[[], Any]]:
    """The sides: the pool, the pool that steps the ready envs, the bare wire, and one game."""
    root, map_name = settings.root, canned_map(SLEEP)
    pool = cache(partial(game_side, POOL_TASK, map_name, n, root))
    return {
        **settings.before("game_side", {POOL_TASK: (POOL_TASK, map_name, n)}),
        POOL_TASK: pool,  # this process makes the pool, because POOL_FIRST_READY uses it, too
        POOL_FIRST_READY: lambda: FirstReadySide(pool(), map_name, n, min(MIN_READY, n)),
        WIRE: partial(game_side, WIRE, map_name, n, root),
        ONE_GAME: partial(game_side, WIRE, map_name, 1, root),
    }


def scaling(settings: Settings) -> list[Row]:
    """Measure how the CPU time of a step grows with the number of sleeping games."""
    root, map_name = settings.root, canned_map(SLEEP)
    ns = wanted_ns(settings, NS_SCALING, 1)
    makers = {f"n={n}": partial(game_side, POOL_TASK, map_name, n, root) for n in ns}
    measured = settings.compare(f"{CASE}, CPU of a step", makers)
    rows = []
    for roles, name in ((ROLES, "CPU of a step, all"), (ROLES[:2], "CPU of a step, without games")):
        smallest = next(iter(measured), "")
        for n, rounds in measured.items():
            cpu_us = methodcaller("cpu_us_per_step", *roles)
            used_us = [cpu_us(one) for one in rounds]
            rise = ratio(rounds, measured[smallest], cpu_us)
            ratios = {smallest: rise} if n != smallest else {}
            rows.append(value_row(CASE, f"{n}, {SLEEP}", name, used_us, unit="µs", ratios=ratios))
    return rows


def wanted_ns(settings: Settings, own: tuple[int, ...], games_per_env: int) -> list[int]:
    """The numbers of sleeping games to measure; empty if the options exclude sleeping games."""
    if SLEEP not in (settings.costs or (SLEEP,)):
        return []
    free_bytes = psutil.virtual_memory().available
    ns = []
    for n in settings.ns or own:
        if n * games_per_env * BYTES_PER_GAME < free_bytes:
            ns.append(n)
        else:
            tell(f"{CASE}: n={n} does not fit into the memory")
    return ns
