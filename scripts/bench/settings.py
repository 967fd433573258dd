"""The settings of the benchmark, which come from the command line and apply to all cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from bench.comparison import alternate
from bench.revision import CHECKOUT, RevisionSide
from sc2pool.cli.bench.measuring import Round, Rounds, Side, tell
from sc2pool.game.program.installation import Installation


class Closable(Side, Protocol):
    """A side that has processes to end."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Settings:
    """Options of the command line; None stands for each case's own values."""

    installation: Installation
    rounds: int
    seconds: float
    """The approximate duration of a round in seconds."""
    ns: tuple[int, ...] | None = None
    """The numbers of envs to measure."""
    sizes_kb: tuple[int, ...] | None = None
    maps: tuple[str, ...] | None = None
    costs: tuple[str, ...] | None = None
    spares: tuple[int, ...] | None = None
    sides: tuple[str, ...] | None = None
    """Parts of the names of the sides to compare; None for all sides."""
    most_rounds: int = 0
    """The largest number of rounds, which is reached only if a ratio stays uncertain."""
    revision: Path | None = None
    """The folder of an earlier commit to compare with."""

    @property
    def root(self) -> str:
        """The installation's folder."""
        return str(self.installation.root)

    def wants(self, side: str) -> bool:
        """True if the options ask for this side."""
        return self.sides is None or any(part in side for part in self.sides)

    def before(
        self, maker: str, arguments: Mapping[str, Sequence[Any]]
    ) -> dict[str, Callable[[], Closable]]:
        """The sides of the earlier commit and of this checkout; {} if no earlier commit is given.

        A child process plays each of these sides, because a side is a tenth slower in the
        benchmark's own process.

        Args:
            maker: the name of a maker of `bench.sides`.
            arguments: a dict from sides' names to the maker's arguments, without the installation.
        """
        if self.revision is None:
            return {}
        return {
            name: partial(RevisionSide, folder, maker, *values)
            for side, values in arguments.items()
            for name, folder in ((side, CHECKOUT), (before(side), self.revision))
        }

    def compare(
        self, title: str, makers: Mapping[str, Callable[[], Closable]]
    ) -> dict[str, Rounds]:
        """Make the sides, measure them in turn, and always close them."""
        with ExitStack() as running:
            made: dict[str, Closable] = {}
            for name in filter(self.wants, makers):
                tell(f"{title}: starting {name}")
                made[name] = makers[name]()
                running.callback(close, made[name])

            def on_round(name: str, one: Round) -> None:
                tell(f"{title}: {name} {one.steps_per_s:,.0f} steps/s")

            return alternate(made, self.rounds, self.seconds, on_round, self.most_rounds)


def before(side: str) -> str:
    """The name of this side at the earlier commit."""
    return f"{side} before"


def close(side: Any) -> None:
    """End a side's processes; after a Ctrl-C, a baseline's processes may have ended already."""
    with suppress(EOFError, ConnectionError):
        side.close()
