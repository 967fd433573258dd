"""Checks, their findings, and the report of an examination: text for people, JSON for programs.

A check has a pure function, whose arguments are the measured values and whose result is the
judgement. `Findings.note` calls the function with measured values, and stores them with the
judgement. The type checker compares the values with the function's parameters. A `Section` has the
checks of one part of the report.

Rule: if the block of `trying(check)` fails, `trying` records the failure for the check and raises
`ProbeFailed`, which ends the measurements that depend on the block. Measurements do not catch
errors.

In the report's text, a check is one line, with its advice below it. Checks that were not possible
are at the end of their part, grouped by reason. The report ends with the faults and how to fix
them, and with one closing sentence.
"""

from __future__ import annotations

import inspect
import json
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any, Final, Generic, NamedTuple, ParamSpec

import psutil

from sc2pool.errors import FaultKind, GameFault, SC2PoolError
from sc2pool.game.program.builds import diagnose

P = ParamSpec("P")


class Grade(StrEnum):
    """The outcome of a check."""

    OK = "ok"
    DIFFERS = "differs"
    """The game or the machine works, but is worse than sc2pool expects, or behaves differently."""
    FAILED = "failed"
    """Something does not work and must be fixed before sc2pool can be used."""
    NOT_POSSIBLE = "not possible"
    """There was nothing to measure, or the measurement lacked something that it needs."""


class Judgement(NamedTuple):
    """The result of judging a measurement."""

    outcome: Grade
    figure: str
    """What was measured, in words and with units."""
    advice: str = ""
    """The consequence for the user, and what to do; empty if nothing needs to be done."""


@dataclass(frozen=True)
class Check(Generic[P]):
    """One question about the installation, the machine or a game."""

    name: str
    part: str
    """The part of the report in which the check is."""
    purpose: str
    """The question that the check answers, or the measured quantity and its purpose."""
    judge: Callable[P, Judgement]
    """A pure function that takes the measured values and returns the judgement."""
    remedy: str = ""
    """The advice if the measurement fails for a reason other than a game's fault."""
    needed: bool = True
    """True if a failure of this measurement means that sc2pool cannot be used."""


class Finding(NamedTuple):
    """A check, its judgement, and the measured value of each parameter of the check's function."""

    check: Check[...]
    judgement: Judgement
    measured: Mapping[str, Any]


class ProbeFailed(Exception):
    """Raised when a finding has recorded a failed measurement; the message is the check's name."""


FAULT_ADVICE: Final[dict[FaultKind, str]] = {
    FaultKind.LAUNCH_FAILED: (
        "the game ended by itself while it started: the end of its log is above. On Linux a "
        "library may be missing: ldd on the executable names missing ones. It needs no display"
    ),
    FaultKind.GAME_EXITED: (
        "the game ended: the end of its log is above. If SIGKILL ended it and no user sent that, "
        "the system was out of memory"
    ),
    FaultKind.DEADLINE: (
        "the game runs but does not answer: it hangs, or the machine is too busy. If this was "
        "the launch: a first launch can take minutes, so repeat it with a longer --timeout"
    ),
    FaultKind.CONNECTION_LOST: (
        "the game closed its connection: its log may have the reason; repair the installation"
    ),
    FaultKind.BAD_REPLY: (
        "the game's reply violates the protocol: the game is too old, or too new for the installed "
        "s2clientprotocol (pip install -U pys2clientprotocol)"
    ),
    FaultKind.PORT_TAKEN: (
        "another program listens on the ports of the games, or a firewall blocks them"
    ),
}
"""The advice for each kind of fault of a game."""


class Findings:
    """The findings of one examination; `say` is called with the name of each check that begins."""

    def __init__(self, say: Callable[[str], None] = lambda _: None) -> None:
        self._by_name: dict[str, Finding] = {}
        self._say = say
        self._under_way: Check[...] | None = None

    def note(self, check: Check[P], *args: P.args, **kwargs: P.kwargs) -> None:
        """Record measured values, and the judgement of the check's function on them."""
        measured = inspect.signature(check.judge).bind(*args, **kwargs)
        measured.apply_defaults()
        judgement = check.judge(*args, **kwargs)
        self._by_name[check.name] = Finding(check, judgement, measured.arguments)

    def note_unknown(self, check: Check[...], reason: str) -> None:
        judgement = Judgement(Grade.NOT_POSSIBLE, reason)
        self._by_name[check.name] = Finding(check, judgement, {"reason": reason})

    def note_failure(self, check: Check[...], detail: str, kind: FaultKind | None = None) -> None:
        """Record that the measurement failed; `kind` is the kind of the game's fault, if any."""
        advice = check.remedy if kind is None else FAULT_ADVICE.get(kind, "")
        known = diagnose(detail, None)
        if known and known not in detail:
            advice = known
        judgement = Judgement(Grade.FAILED if check.needed else Grade.DIFFERS, detail, advice)
        self._by_name[check.name] = Finding(check, judgement, {"detail": detail, "kind": kind})

    @contextmanager
    def trying(self, check: Check[...]) -> Iterator[None]:
        """If the block fails, record the failure for the check, and raise `ProbeFailed`."""
        self._say(check.name)
        self._under_way = check
        try:
            yield
        except GameFault as fault:
            self.note_failure(check, fault.detail, fault.kind)
            raise ProbeFailed(check.name) from fault
        except (SC2PoolError, OSError, psutil.Error) as error:
            self.note_failure(check, str(error))
            raise ProbeFailed(check.name) from error
        self._under_way = None

    def note_timeout(self, timeout_s: float) -> None:
        """Record that the time limit ended the current check."""
        if self._under_way is not None:
            detail = f"this was not done when the {timeout_s:g} s were up"
            self.note_failure(self._under_way, detail, FaultKind.DEADLINE)

    def measured(self, check: Check[...]) -> Mapping[str, Any]:
        """The values measured for this check; empty if nothing was recorded."""
        return self._by_name[check.name].measured if check.name in self._by_name else {}

    def grade(self, check: Check[...]) -> Grade | None:
        """The outcome of this check; None if nothing was recorded."""
        finding = self._by_name.get(check.name)
        return None if finding is None else finding.judgement.outcome

    def in_order(self, checks: Sequence[Check[...]], reason: str) -> list[Finding]:
        """One finding for each check; `reason` says why checks without a finding were not made."""
        for check in checks:
            if check.name not in self._by_name:
                self.note_unknown(check, reason)
        return [self._by_name[check.name] for check in checks]


# ---- the report ---------------------------------------------------------------------------------

_OUTCOME_WIDTH = max(map(len, Grade)) + 2
_ADVICE = "→ "


def works(findings: Sequence[Finding]) -> bool:
    """True if sc2pool works with this game, False if something must be fixed first."""
    return all(finding.judgement.outcome is not Grade.FAILED for finding in findings)


def conclusion(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.judgement.outcome for finding in findings)
    counted = ", ".join(f"{counts[outcome]} {outcome}" for outcome in Grade if counts[outcome])
    if works(findings):
        return f"sc2pool works with this game: {counted}."
    return f"sc2pool does not work with this game as things are: {counted}."


def as_json(findings: Sequence[Finding]) -> str:
    """The report with all measurements."""
    checks = [
        {
            "name": check.name,
            "part": check.part,
            "purpose": check.purpose,
            **judgement._asdict(),
            "measured": measured,
        }
        for check, judgement, measured in findings
    ]
    whole = {"works": works(findings), "conclusion": conclusion(findings), "checks": checks}
    return json.dumps(whole, indent=2, default=_as_data)


def _as_data(value: Any) -> Any:
    """Convert a value that JSON cannot represent, such as a dataclass or a path."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return str(value)


def as_text(findings: Sequence[Finding], width: int) -> str:
    """The whole report; only a long word makes a line longer than `width` characters."""
    lines: list[str] = []
    for part, group in groupby(findings, key=lambda finding: finding.check.part):
        members = list(group)
        made = [f for f in members if f.judgement.outcome is not Grade.NOT_POSSIBLE]
        name_width = max((len(finding.check.name) for finding in made), default=0) + 2
        lines += [part.upper(), ""]
        for finding in made:
            lines += _rows(finding, name_width, width)
        lines += [*_not_possible(members, width), ""]
    lines += _to_fix(findings, width)
    return "\n".join([*lines, *_wrap(conclusion(findings), width)])


def _rows(finding: Finding, name_width: int, width: int) -> list[str]:
    check, judgement, _ = finding
    indent = " " * (_OUTCOME_WIDTH + name_width)
    head = f"{judgement.outcome:{_OUTCOME_WIDTH}}{check.name:{name_width}}"
    question = f"{check.purpose} " if check.purpose.endswith("?") else ""
    # Further lines, such as the end of a log, are shown only at the report's end, with the advice.
    figure, _, more = judgement.figure.partition("\n")
    rows = _wrap(question + figure + (" (see below)" if more else ""), width, head, indent)
    if judgement.advice and judgement.outcome is not Grade.FAILED:
        rows += _wrap(judgement.advice, width, indent + _ADVICE, indent + "  ")
    return rows


def _not_possible(findings: Sequence[Finding], width: int) -> list[str]:
    """The lines for checks that were not possible; checks with the same reason share an entry."""
    names: dict[str, list[str]] = {}
    for finding in findings:
        if finding.judgement.outcome is Grade.NOT_POSSIBLE:
            names.setdefault(finding.judgement.figure, []).append(finding.check.name)
    head, indent = f"{Grade.NOT_POSSIBLE:{_OUTCOME_WIDTH}}", " " * _OUTCOME_WIDTH
    return [
        line
        for reason, prevented in names.items()
        for line in _wrap(f"{', '.join(prevented)}: {reason}", width, head, indent)
    ]


def _to_fix(findings: Sequence[Finding], width: int) -> list[str]:
    failed = [finding for finding in findings if finding.judgement.outcome is Grade.FAILED]
    if not failed:
        return []
    lines = ["WHAT IS WRONG, AND HOW TO FIX IT", ""]
    for number, (check, judgement, _) in enumerate(failed, start=1):
        first, *more = judgement.figure.splitlines()
        lines += _wrap(first, width, f"{number}. {check.name}: ", "   ")
        lines += [f"   | {line}" for line in more]
        if judgement.advice:
            lines += _wrap(judgement.advice, width, "   " + _ADVICE, "     ")
    return [*lines, ""]


def _wrap(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        max(width, len(rest) + 30),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


MB: Final = 1_000_000


class Section(list[Check[...]]):
    """The checks of one part of the report, in the report's order; `part` is the part's title."""

    def __init__(self, part: str, *, needed: bool = True) -> None:
        super().__init__()
        self.part = part
        self._needed = needed

    def check(
        self, name: str, purpose: str, remedy: str = ""
    ) -> Callable[[Callable[P, Judgement]], Check[P]]:
        """A decorator that turns a function into a `Check` and adds the check to this section."""

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
    """The judgement OK if sc2pool's expectation is fulfilled, else DIFFERS with the advice."""
    return ok(figure) if fulfilled else differs(figure, advice)


def yes_no(if_yes: str, if_no: str, advice: str) -> Callable[[bool], Judgement]:
    def judge(yes: bool) -> Judgement:
        return ok(if_yes) if yes else differs(if_no, advice)

    return judge


def seconds(duration_s: float) -> str:
    if duration_s >= 0.5:
        return f"{duration_s:.2f} s"
    return f"{duration_s * 1000:.{0 if duration_s >= 0.02 else 2}f} ms"


def megabytes(size_bytes: float) -> str:
    return f"{size_bytes / MB:,.0f} MB"


def shortened(words: str, most: int = 70) -> str:
    """A text of a game, shortened to fit into a line of a report."""
    return words if len(words) <= most else f"{words[: most - 1]}…"
