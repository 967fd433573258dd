"""The checks of `--full` about single messages; `messages` measures for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypedDict

from sc2pool.doctor.findings import Judgement, Section, differs, expect, ok

MESSAGES = Section("messages", needed=False)
_FEW: Final = 3


class Replayed(TypedDict):
    """An attempt to save or start a replay."""

    what: str
    outcome: str
    expected: bool


@MESSAGES.check("D19 action delay", "how many loops until an action is observed?")
def action_delay(loops: Mapping[str, int | None]) -> Judgement:
    """Judge the loops until an action is observed, by kind of game; None if it never was."""
    told = [f"{where}: {'never' if one is None else one}" for where, one in loops.items()]
    return expect(
        None not in loops.values(), ", ".join(told), "actions are lost: look at the game's log"
    )


@MESSAGES.check("D26 ids", "does a reply have the id of its request?")
def ids(returned: Mapping[str, int | None], mistaken: Mapping[str, int]) -> Judgement:
    """Judge the ids of replies.

    Args:
        returned: by the request's id, the id of its reply.
        mistaken: counts of replies that do not fit their request, by description.
    """
    told = [f"{asked} → {'none' if got is None else got}" for asked, got in returned.items()]
    odd = [f"{count} × {what}" for what, count in mistaken.items()]
    lost = any(asked.isdigit() and got != int(asked) for asked, got in returned.items())
    return expect(
        not odd and not lost,
        "; ".join([*odd, ", ".join(told)]),
        "replies can be matched by their order only",
    )


@MESSAGES.check("D27 replays", "can replays be saved and started?")
def replays(measured: Sequence[Replayed]) -> Judgement:
    figure = "; ".join(f"{one['what']}: {one['outcome']}" for one in measured)
    return expect(
        all(one["expected"] for one in measured),
        figure,
        "replays cannot be relied upon; sc2pool replay may fail",
    )


@MESSAGES.check(
    "D18 warnings", "are there texts in Response.error beside a reply that did its work?"
)
def warnings(
    replies: int, texts: Mapping[str, int], answers: Mapping[str, Mapping[str, str]]
) -> Judgement:
    """Judge the texts in `Response.error`.

    Args:
        replies: the number of all replies of the run.
        texts: the count of each text.
        answers: by status and kind of request: "answered", or the game's words of refusal.
    """
    refused = sum(words != "answered" for kinds in answers.values() for words in kinds.values())
    asked = sum(map(len, answers.values()))
    figure = f"{replies:,} replies; {refused} of {asked} kinds of request are refused in a status"
    if not texts:
        return ok(f"no, in {figure}")
    most = sorted(texts.items(), key=lambda item: -item[1])
    listed = "; ".join(f"{count} × {text}" for text, count in most[:_FEW])
    return differs(
        f"yes, in {sum(texts.values())} of {figure}: {listed}{'; …' * (len(most) > _FEW)}",
        "such a text is a warning, and the reply counts",
    )
