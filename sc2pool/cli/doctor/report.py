"""The findings as text for people and as JSON for programs. Pure.

A line per check; under it, indented, the advice where there is some. Checks that were not possible
follow their part, by reason. At the end: what has to be mended and how, and one sentence for all.
"""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from itertools import groupby
from typing import Any

from sc2pool.cli.doctor.checks import Finding
from sc2pool.cli.doctor.verdict import Outcome

_OUTCOME_WIDTH = max(len(outcome) for outcome in Outcome) + 2
_ADVICE = "→ "


def exit_status(findings: Sequence[Finding]) -> int:
    """0 if sc2pool works with this game, 1 if something has to be mended first."""
    return int(any(finding.verdict.outcome is Outcome.FAILED for finding in findings))


def as_text(findings: Sequence[Finding], width: int) -> str:
    """The whole report, in lines of at most `width` characters but for long words."""
    lines: list[str] = []
    for part, group in groupby(findings, key=lambda finding: finding.check.part):
        members = list(group)
        looked_at = [f for f in members if f.verdict.outcome is not Outcome.NOT_POSSIBLE]
        name_width = max((len(finding.check.name) for finding in looked_at), default=0) + 2
        lines += [part.upper(), ""]
        for finding in looked_at:
            lines += _rows(finding, name_width, width)
        lines += _not_possible(members, width)
        lines.append("")
    lines += _mending(findings, width)
    lines += _wrap(conclusion(findings), width, "", "")
    return "\n".join(lines)


def _rows(finding: Finding, name_width: int, width: int) -> list[str]:
    check, verdict = finding.check, finding.verdict
    indent = " " * (_OUTCOME_WIDTH + name_width)
    head = f"{verdict.outcome:{_OUTCOME_WIDTH}}{check.name:{name_width}}"
    question = f"{check.purpose} " if check.purpose.endswith("?") else ""
    # The rest of a long detail (the end of a log) is told once, where it is to be mended.
    figure, _, more = verdict.figure.partition("\n")
    rows = _wrap(question + figure + (" (see below)" if more else ""), width, head, indent)
    if verdict.advice and verdict.outcome is not Outcome.FAILED:
        rows += _wrap(verdict.advice, width, indent + _ADVICE, indent + "  ")
    return rows


def _not_possible(findings: Sequence[Finding], width: int) -> list[str]:
    """One entry for each reason: a game that is not there prevents many checks."""
    names: dict[str, list[str]] = {}
    for finding in findings:
        if finding.verdict.outcome is Outcome.NOT_POSSIBLE:
            names.setdefault(finding.verdict.figure, []).append(finding.check.name)
    lines: list[str] = []
    for reason, prevented in names.items():
        head = f"{Outcome.NOT_POSSIBLE:{_OUTCOME_WIDTH}}"
        lines += _wrap(f"{', '.join(prevented)}: {reason}", width, head, " " * _OUTCOME_WIDTH)
    return lines


def _mending(findings: Sequence[Finding], width: int) -> list[str]:
    failed = [finding for finding in findings if finding.verdict.outcome is Outcome.FAILED]
    if not failed:
        return []
    lines = ["WHAT IS WRONG, AND HOW TO MEND IT", ""]
    for number, finding in enumerate(failed, start=1):
        first, *more = finding.verdict.figure.splitlines()
        lines += _wrap(first, width, f"{number}. {finding.check.name}: ", "   ")
        lines += [f"   | {line}" for line in more]
        if finding.verdict.advice:
            lines += _wrap(finding.verdict.advice, width, "   " + _ADVICE, "     ")
    return [*lines, ""]


def conclusion(findings: Sequence[Finding]) -> str:
    """The report in one sentence."""
    counts = Counter(finding.verdict.outcome for finding in findings)
    counted = ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome])
    if exit_status(findings):
        return f"sc2pool does not work with this game as things are: {counted}."
    return f"sc2pool works with this game: {counted}."


def _wrap(text: str, width: int, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text,
        max(width, len(rest) + 30),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def as_json(findings: Sequence[Finding]) -> str:
    """The report with all measurements."""
    checks = [
        {
            "name": finding.check.name,
            "part": finding.check.part,
            "purpose": finding.check.purpose,
            "outcome": finding.verdict.outcome,
            "figure": finding.verdict.figure,
            "advice": finding.verdict.advice,
            "measured": _plain(finding.measurement),
        }
        for finding in findings
    ]
    whole = {
        "works": exit_status(findings) == 0,
        "conclusion": conclusion(findings),
        "checks": checks,
    }
    return json.dumps(whole, indent=2, default=str)


def _plain(measurement: object) -> Any:
    return asdict(measurement) if is_dataclass(measurement) else measurement  # type: ignore[arg-type]
