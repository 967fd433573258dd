"""The games that are measured, each behind a pool, and how their infos are read.

Rule: a world is one function that makes a `World`; how late a step was comes from the world's own
infos, in its own ticks.
"""

from __future__ import annotations

import importlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lateness.chased import Chased, write_map
from sc2pool import SubprocSC2VecEnv
from sc2pool.protocol.game_time import LOOPS_PER_S
from sc2standin.install import install
from sc2standin.process.stops import AfterStop


class Reading(NamedTuple):
    """What one step's info says.

    Attributes:
        gap_s: from the observation to the action, while the game ran.
        lost_ticks: of decision periods that ended without a new action.
        died: the character did, in this step.
    """

    gap_s: float
    lost_ticks: int
    died: bool


@dataclass(frozen=True)
class World:
    """A game to be measured.

    Attributes:
        tick_s: length of a game loop, or of the game's own unit of time.
        period_ticks: length of a decision period.
        policy: SB3's name for a policy that fits its observations.
        make: makes a pool of n games.
        read: reads an info; None for an info that the pool made up.
    """

    name: str
    tick_s: float
    period_ticks: int
    policy: str
    make: Callable[[int], SubprocSC2VecEnv]
    read: Callable[[Mapping[str, Any]], Reading | None]


@contextmanager
def standin(after_stop: AfterStop) -> Iterator[World]:
    """`Chased` on the stand-in, in real time."""
    with tempfile.TemporaryDirectory(prefix="sc2pool-lateness-") as folder:
        game = Path(folder) / "StarCraftII"
        install(game, after_stop)
        write_map(game / "Maps" / "mini_games")

        def make(n: int) -> SubprocSC2VecEnv:
            return SubprocSC2VecEnv(n=n, task=Chased, game=game, realtime=True, seed=1)

        def read(info: Mapping[str, Any]) -> Reading | None:
            if "sc2pool.gap_s" not in info:
                return None
            lost = info["sc2pool.lost_periods"] * Chased.step_mul
            return Reading(info["sc2pool.gap_s"], lost, info.get("died", False))

        name = "stand-in" if after_stop is AfterStop.FREEZE else f"stand-in ({after_stop})"
        yield World(name, 1 / LOOPS_PER_S, Chased.step_mul, "MlpPolicy", make, read)


@contextmanager
def supertux() -> Iterator[World]:
    """SuperTux, one of the examples; it has ticks and infos of its own.

    Raises:
        ImportError: the example, or a package that it needs, is missing.
    """
    env = importlib.import_module("examples.supertux.env")
    tick_s: float = importlib.import_module("examples.supertux.game").TICK_S

    def make(n: int) -> SubprocSC2VecEnv:
        return SubprocSC2VecEnv([env.SuperTuxEnv] * n)

    def read(info: Mapping[str, Any]) -> Reading | None:
        if "late_ticks" not in info:
            return None
        late: int = info["late_ticks"]
        return Reading(late * tick_s, late // env.PERIOD_TICKS * env.PERIOD_TICKS, info["died"])

    yield World("SuperTux", tick_s, env.PERIOD_TICKS, "MultiInputPolicy", make, read)


def supertux_is_there() -> bool:
    """True if the game, the display and the example are installed."""
    if not (shutil.which("Xvfb") and Path("/usr/games/supertux2").exists()):
        return False
    try:
        importlib.import_module("examples.supertux.env")
    except ImportError:
        return False
    return True
