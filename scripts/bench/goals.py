"""The goals of the benchmark, as data, and the table that shows which were reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench import sides
from bench.report import Row, number
from sc2pool.cli.bench.measuring import markdown

POOL_ONLY, WHOLE_STACK, GAME_COST = "pool only", "whole stack", "game cost"
RESETS, MEMORY = "resets", "memory"


@dataclass(frozen=True)
class Goal:
    """A bound on one figure of one row."""

    case: str
    setting: str
    side: str
    against: str | None
    """The bound is on the ratio to this side; None: the bound is on the row's own figure."""
    bound: float
    at_most: bool = False

    def figure(self, rows: Sequence[Row]) -> float | None:
        """The measured figure; None if it was not measured."""
        for row in rows:
            if (row.case, row.setting, row.side) == (self.case, self.setting, self.side):
                return row.figure if self.against is None else row.ratios.get(self.against)
        return None

    def reached(self, figure: float) -> bool:
        return figure <= self.bound if self.at_most else figure >= self.bound

    def __str__(self) -> str:
        compared = f" ÷ {self.against}" if self.against else ""
        return f"{self.side}{compared} {'≤' if self.at_most else '≥'} {self.bound:g}"


GOALS = (
    Goal(POOL_ONLY, "n=8, 1 KB", sides.POOL, sides.SB3, 4.0),
    Goal(POOL_ONLY, "n=8, 1 KB", sides.POOL, sides.GYMNASIUM, 3.0),
    Goal(POOL_ONLY, "n=8, 1 KB", sides.POOL, sides.BARE, 0.7),
    Goal(POOL_ONLY, "n=8, 32 KB", sides.POOL, sides.SB3, 3.5),
    Goal(POOL_ONLY, "n=8, 32 KB", sides.POOL, sides.GYMNASIUM, 2.5),
    Goal(POOL_ONLY, "n=8, 32 KB", sides.POOL, sides.BARE, 0.7),
    Goal(WHOLE_STACK, "n=8, Canned", sides.POOL_TASK, sides.RECIPE, 10.0),
    Goal(WHOLE_STACK, "n=8, Canned", sides.POOL_BOT, sides.RECIPE, 3.5),
    Goal(GAME_COST, "n=8, nothing", sides.POOL_TASK, sides.WIRE, 0.5),
    Goal(GAME_COST, "n=8, burn 0.5 ms", sides.POOL_TASK, sides.WIRE, 0.85),
    Goal(GAME_COST, "n=8, burn 2 ms", sides.POOL_TASK, sides.WIRE, 0.93),
    Goal(GAME_COST, "n=32, sleep 5 ms", sides.POOL_FIRST_READY, sides.WIRE, 0.85),
    Goal(GAME_COST, "n=32, sleep 5 ms", sides.POOL_TASK, sides.WIRE, 0.85),
    Goal(GAME_COST, "n=64, sleep 5 ms", "CPU of a step, without games", "n=8", 1.15, at_most=True),
    Goal(RESETS, "n=8, spares=1", "batch with restart_game", None, 10.0, at_most=True),
    Goal(RESETS, "n=8, spares=1", "batch with create_game", None, 10.0, at_most=True),
    Goal(MEMORY, "n=8, worker, USS", sides.POOL_TASK, sides.SB3_ENV, 0.5, at_most=True),
)


def goals_table(rows: Sequence[Row]) -> str:
    """The table of measured goals, in Markdown; "" if no goal was measured."""
    lines = [
        (goal.case, goal.setting, str(goal), number(figure), yes_or_no(goal.reached(figure)))
        for goal in GOALS
        if (figure := goal.figure(rows)) is not None
    ]
    return markdown(("case", "setting", "goal", "measured", "reached"), lines) if lines else ""


def yes_or_no(reached: bool) -> str:
    return "yes" if reached else "**no**"
