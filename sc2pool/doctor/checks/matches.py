"""The checks of `--full` about matches of two clients; `matches` measures for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from sc2pool.doctor.findings import (
    MB,
    Judgement,
    Section,
    differs,
    expect,
    megabytes,
    ok,
    seconds,
    shortened,
)

MATCHES = Section("matches of two clients", needed=False)


class Loss(TypedDict):
    """The game of one side of a match after the other side was lost."""

    way: str
    """How the other side was lost."""
    reply: str
    """The reply to the next step: "answered", "nothing", or the game's words of refusal."""
    after_s: float
    """Seconds until that reply, or until the end of the wait."""
    status: str
    result: str
    """Empty without a result."""


class Pause(TypedDict):
    """A time without a request."""

    where: str
    waited_s: float
    failure: str
    """The failure of the next request; empty if it was answered."""


class Taken(TypedDict):
    """A match, one of whose ports another program has taken."""

    port: str
    kind: str
    outcome: str
    took_s: float


@MATCHES.check(
    "D09 match bursts", "do bursts give the same observations as single requests in a match?"
)
def match_bursts(
    compared: int, undetermined: str, difference: str, realtime_bursts: int
) -> Judgement:
    """Judge bursts in matches.

    Args:
        compared: the number of compared observations.
        undetermined: the first difference between matches with equal seeds and requests, or "".
        difference: the first difference between bursts and single requests, or "".
        realtime_bursts: the number of bursts that were answered in real time.
    """
    figure = (
        f"{compared} observations of both sides are the same; {realtime_bursts} bursts in real time"
    )
    if undetermined:
        return differs(
            f"it cannot be said: the same seed and requests do not give the same match "
            f"({undetermined}); {realtime_bursts} bursts in real time were answered",
            "a match with a seed cannot be repeated exactly",
        )
    if difference:
        advice = "matches must be stepped by single requests, which takes longer"
        return differs(f"no: {difference}", advice)
    return ok(f"yes: {figure}")


@MATCHES.check("D13 matches in a row", "can two processes play match after match?")
def matches_in_a_row(
    played: int, starts_s: Sequence[float], first_bytes: int, last_bytes: int, failure: str
) -> Judgement:
    grown = (last_bytes - first_bytes) / MB / max(1, played - 1)
    figure = f"{played} matches"
    if starts_s:
        figure += (
            f", a start takes {seconds(starts_s[0])} at first, {seconds(starts_s[-1])} at last"
        )
    figure += f"; both games {megabytes(last_bytes)} ({grown:+.1f} MB a match)"
    if failure:
        return differs(
            f"match {played + 1} fails: {failure}; {figure}",
            "the processes of a match must be replaced earlier: RecyclePolicy(episodes=…)",
        )
    return ok(figure)


@MATCHES.check(
    "D14 lost side", "what does a side see when the other one leaves, quits, dies or stops?"
)
def lost_side(losses: Sequence[Loss]) -> Judgement:
    told = [
        f"{one['way']}: {one['reply']} after {seconds(one['after_s'])}, status {one['status']}, "
        + (one["result"] or "no result")
        for one in losses
    ]
    waits = [one["way"] for one in losses if one["reply"] == "nothing" and one["way"] != STOPPED]
    return expect(
        not waits,
        "; ".join(told),
        f"the other side waits for ever ({', '.join(waits)}): a pool ends it by its time limit",
    )


STOPPED = "it is stopped"
"""The only way in which a side is lost for a limited time."""


@MATCHES.check("D15 idle", "does a game survive a time without requests?")
def idle(pauses: Sequence[Pause]) -> Judgement:
    figure = "; ".join(
        f"{one['waited_s']:.0f} s {one['where']}: {one['failure'] or 'answered'}" for one in pauses
    )
    return expect(
        not any(one["failure"] for one in pauses),
        f"{figure} (longer pauses are not tried)",
        "a long update of the learner ends the games: send them requests during an update",
    )


@MATCHES.check("D23 taken ports", "what if another program has taken a port of a match?")
def taken_ports(measured: Sequence[Taken]) -> Judgement:
    told = [
        f"{one['port']} ({one['kind']}): {shortened(one['outcome'])}, {seconds(one['took_s'])}"
        for one in measured
    ]
    return ok("; ".join(told))


@MATCHES.check("D23 second client", "can a second client connect to the same game?")
def second_client(idle: str, waiting: str, first_answers: bool) -> Judgement:
    figure = f"{idle} while the game is idle, {waiting} while it has a request"
    if not first_answers:
        return differs(
            f"{figure}; then the first client gets no answer", "nothing else may connect"
        )
    return ok(figure)
