"""How the benchmark is run: what the command line says, for every case alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sc2pool.cli.bench.rounds import Round, Side, alternate
from sc2pool.game.installation import Installation


class Closable(Side, Protocol):
    """A side that has processes to end."""

    def close(self) -> None: ...


T = TypeVar("T", bound=Closable)


@dataclass(frozen=True)
class Settings:
    """Of a run."""

    installation: Installation
    rounds: int
    seconds: float
    """About how long a round takes."""
    tell: Callable[[str], None]
    """Takes a line on what is going on."""
    ns: tuple[int, ...] | None = None
    """Numbers of envs, or None for each case's own."""
    sizes_kb: tuple[int, ...] | None = None
    maps: tuple[str, ...] | None = None
    costs: tuple[str, ...] | None = None
    spares: tuple[int, ...] | None = None
    sides: tuple[str, ...] | None = None
    """Of those a case compares, by a part of their names; None for all."""

    def pick(self, own: tuple[Any, ...], given: tuple[Any, ...] | None) -> tuple[Any, ...]:
        """What was asked for, or the case's own."""
        return own if given is None else given

    def compare(
        self, title: str, makers: Mapping[str, Callable[[], Closable]]
    ) -> dict[str, list[Round]]:
        """Make the sides, measure them in turn, and close them whatever happens."""
        wanted = {
            name: make
            for name, make in makers.items()
            if self.sides is None or any(part in name for part in self.sides)
        }
        with ExitStack() as running:
            made: dict[str, Closable] = {}
            for name, make in wanted.items():
                self.tell(f"{title}: starting {name}")
                made[name] = make()
                running.callback(close, made[name])

            def on_round(name: str, one: Round) -> None:
                self.tell(f"{title}: {name} {one.steps_per_s:,.0f} steps/s")

            return alternate(made, self.rounds, self.seconds, on_round)


def close(side: Closable) -> None:
    """End its processes; after a Ctrl-C those of the baselines may have ended before."""
    with suppress(EOFError, ConnectionError):
        side.close()
