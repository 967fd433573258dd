"""Sections of the report, and the words of a judgement that several checks have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sc2pool.cli.doctor.findings import Check, Grade, Judgement, P

MB: Final = 1_000_000


class Section(list[Check[...]]):
    """The checks of one part of the report, in its order.

    Args:
        part: its title.
        needed: see `Check`.
    """

    def __init__(self, part: str, *, needed: bool = True) -> None:
        super().__init__()
        self.part = part
        self._needed = needed

    def check(
        self, name: str, purpose: str, remedy: str = ""
    ) -> Callable[[Callable[P, Judgement]], Check[P]]:
        """Make a check of the function below, and add it; see `Check`."""

        def make(judge: Callable[P, Judgement]) -> Check[P]:
            made = Check(name, self.part, purpose, judge, remedy, self._needed)
            self.append(made)
            return made

        return make


def ok(figure: str) -> Judgement:
    return Judgement(Grade.OK, figure)


def differs(figure: str, advice: str) -> Judgement:
    return Judgement(Grade.DIFFERS, figure, advice)


def failed(figure: str, advice: str) -> Judgement:
    return Judgement(Grade.FAILED, figure, advice)


def expect(fulfilled: bool, figure: str, advice: str) -> Judgement:
    """OK if sc2pool's expectation is fulfilled, else DIFFERS with the advice."""
    return ok(figure) if fulfilled else differs(figure, advice)


def yes_no(if_yes: str, if_no: str, advice: str) -> Callable[[bool], Judgement]:
    def judge(yes: bool) -> Judgement:
        return ok(if_yes) if yes else differs(if_no, advice)

    return judge


def seconds(duration_s: float) -> str:
    """A duration in the unit that suits it."""
    if duration_s >= 0.5:
        return f"{duration_s:.2f} s"
    return f"{duration_s * 1000:.{0 if duration_s >= 0.02 else 2}f} ms"


def megabytes(size_bytes: float) -> str:
    return f"{size_bytes / MB:,.0f} MB"


def shortened(words: str, most: int = 70) -> str:
    """A game's words, short enough for a line of a report."""
    return words if len(words) <= most else f"{words[: most - 1]}…"
