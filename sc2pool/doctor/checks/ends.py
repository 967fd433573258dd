"""The checks of `--full` about ends of games and about real time; `ends` measures for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, TypedDict

from s2clientprotocol import error_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.doctor.checks.game import CATCHES_UP_ABOVE, FREEZES_BELOW
from sc2pool.doctor.findings import Judgement, Section, differs, expect, ok, seconds
from sc2pool.protocol import LOOPS_PER_S

FIRST_LOOP_MAX: Final = int(LOOPS_PER_S)
"""The latest usual loop of a real-time game's first observation."""

ENDS = Section("ends of games, and real time", needed=False)


class AwaitedEnd(TypedDict):
    """A request for a later loop, in real time, during which the game ended."""

    way: str
    """How the game ended."""
    ahead: int
    """How many loops the request was ahead of the newest observation."""
    after_s: float | None
    """Seconds until the reply; None without a reply."""
    loop: int
    status: str
    told: bool
    """Whether the reply has the result."""
    refused: str
    """The game's words of refusal; empty if it replied with an observation."""


class End(TypedDict):
    """The end of a game, and its replies after that."""

    way: str
    told_in: int
    """The number of observations with the result."""
    told_first: int | None
    """The number of observations after the end before the first one with the result, or None."""
    stubs: int
    """Observations without content."""
    status: str
    after: dict[str, str]
    """By kind of request: "answered", or the game's words of refusal."""


class MatchEnd(TypedDict):
    """The end of a match, as seen by both sides."""

    realtime: bool
    results: list[str]
    """The results of the host and the guest; "" for a side that never got its result."""
    statuses: list[str]
    loops_after: int
    """Loops that the host's game played in the second after `watched_s`."""
    watched_s: float
    """How long both sides were observed after the end."""
    action_result: str
    """The result of an action of the host after the end; empty if no action was sent."""


class Stop(TypedDict):
    """A real-time game that was stopped and resumed."""

    stopped_s: float
    missed: float
    """Loops that the game would have played in that time."""
    made_up: float
    """Additional loops that the game played after it was resumed."""


def after_stop(stops: Sequence[Stop]) -> str:
    """How a real-time game treats missed loops: "freeze", "catch-up" or "in part"."""
    shares = [stop["made_up"] / stop["missed"] for stop in stops]
    if max(shares) <= FREEZES_BELOW:
        return "freeze"
    return "catch-up" if min(shares) >= CATCHES_UP_ABOVE else "in part"


@ENDS.check(
    "D01 awaited end", "in real time: is a request for a later loop answered if the game ends?"
)
def awaited_end(samples: Sequence[AwaitedEnd], waited_s: float) -> Judgement:
    """Judge the samples; a request counts as unanswered after `waited_s`."""
    silent = [sample for sample in samples if sample["after_s"] is None]
    if silent:
        ways = sorted({f"{sample['way']}, {sample['ahead']} loops ahead" for sample in silent})
        return differs(
            f"no: {len(silent)} of {len(samples)} were not answered within {waited_s:g} s of the "
            f"end ({'; '.join(ways)})",
            "a client must not wait in the game for a later loop; a pool then waits by its own "
            "clock",
        )
    refused = sorted({sample["refused"] for sample in samples} - {""})
    told = sum(sample["told"] for sample in samples)
    longest_s = max(sample["after_s"] or 0.0 for sample in samples)
    figure = f"yes: {len(samples)} of {len(samples)}, {told} with the result, "
    figure += f"the slowest after {seconds(longest_s)}"
    if refused:
        figure += f"; refused: {', '.join(refused)}"
    return expect(
        not refused and told == len(samples), figure, "a client must observe again for the result"
    )


@ENDS.check(
    "D02 polled end", "in real time: do observations tell the end, and are they answered after it?"
)
def polled_end(samples: Sequence[End]) -> Judgement:
    untold = sum(sample["told_first"] is None for sample in samples)
    refused = Counter(
        f"{sample['after'].get('observation')} (status {sample['status']})"
        for sample in samples
        if sample["after"].get("observation") != "answered"
    )
    figure = f"the result was told in {len(samples) - untold} of {len(samples)} ends"
    if refused:
        figure += f"; after the end an observation is refused: {', '.join(refused)}"
    later = _after(samples)
    figure += f"; {later}" if later else ""
    return expect(
        not untold and not refused,
        figure,
        "a result may never come: a pool keeps the last observation, and ends such an episode "
        "without a result",
    )


@ENDS.check(
    "D04 stepped end", "in lock-step: when is the result told, and what is answered after it?"
)
def stepped_end(samples: Sequence[End]) -> Judgement:
    stubs = sum(sample["stubs"] for sample in samples)
    told = Counter(
        "never" if (first := sample["told_first"]) is None else f"in observation {first + 1}"
        for sample in samples
    )
    figure = "; ".join(f"{count} × {when}" for when, count in sorted(told.items()))
    if stubs:
        figure += f"; {stubs} observation(s) with the end are stubs (no state, loop 2^32 − 1)"
    later = _after(samples)
    figure += f"; {later}" if later else ""
    late = any((sample["told_first"] is None or sample["told_first"] > 1) for sample in samples)
    return expect(
        not stubs and not late,
        figure,
        "the last state of an episode may be missing: a pool uses the observation before it",
    )


@ENDS.check("D03 match end", "in real time: are two clients told of the end?")
def match_end(ends: Sequence[MatchEnd]) -> Judgement:
    untold = [end for end in ends if not all(end["results"])]
    if not untold:
        return ok(f"yes, in {len(ends)} of {len(ends)} matches")
    end = untold[0]
    goes = "stands still" if end["loops_after"] == 0 else f"goes on (+{end['loops_after']} loops)"
    figure = (
        f"no: {len(untold)} of {len(ends)} ends were not told to both within "
        f"{end['watched_s']:.0f} s (status {' and '.join(end['statuses'])}; the loop {goes}"
    )
    if end["action_result"]:
        figure += f"; an action gets {end['action_result']}"
    return differs(
        figure + ")", "a match in real time must be ended by another sign, or by its time limit"
    )


@ENDS.check("D03 match results", "do the two sides of a match agree on its result?")
def match_results(ends: Sequence[MatchEnd]) -> Judgement:
    told = [tuple(end["results"]) for end in ends if all(end["results"])]
    if not told:
        return differs("no match told both results", "a win cannot be told from a loss")
    odd = Counter(pair for pair in told if pair not in _OPPOSITE)
    if not odd:
        return ok(f"yes: {len(told)} of {len(told)} are opposite")
    named = ", ".join(
        f"{count} × both {a}" if a == b else f"{count} × {a} and {b}"
        for (a, b), count in odd.items()
    )
    return differs(f"no: {named}, of {len(told)}", "such a match counts as one without a winner")


_OPPOSITE: Final = {
    ("Victory", "Defeat"),
    ("Defeat", "Victory"),
    ("Tie", "Tie"),
    ("Undecided", "Undecided"),
}


def _stops(measured: Sequence[Stop]) -> Judgement:
    parts = [
        f"{stop['made_up'] / stop['missed']:z.0%} of {stop['missed']:.0f} loops "
        f"({stop['stopped_s']:.0f} s)"
        for stop in measured
    ]
    kind = after_stop(measured)
    return expect(
        kind == "freeze",
        f"{kind}: made up {', '.join(parts)}",
        "a pause does not stop this game's time: the missed loops are played without actions",
    )


stops = ENDS.check("D16 stops", "in real time: does a stopped game make up for missed loops?")(
    _stops
)
match_stops = ENDS.check("D16 match stops", "the same for a match whose games were both stopped")(
    _stops
)


@ENDS.check("D17 first loop", "in real time: how late is the first observation?")
def first_loop(alone: Sequence[int], loaded: Sequence[int]) -> Judgement:
    figure = f"loop {max(alone)} at the latest"
    if loaded:
        figure += f", {max(loaded)} beside games that compute"
    return expect(
        max([*alone, *loaded]) <= FIRST_LOOP_MAX,
        figure,
        "an episode in real time has lost its first loops when it begins",
    )


def _after(samples: Sequence[End]) -> str:
    """The kinds of request that the game refuses after an end, with its words."""
    said: dict[str, list[str]] = {}
    for sample in samples:
        for kind, words in sample["after"].items():
            kinds = said.setdefault(words, [])
            if kind not in kinds:
                kinds.append(kind)
    told = [f"{', '.join(kinds)}: {words}" for words, kinds in said.items() if words != "answered"]
    return f"after the end {'; '.join(told)}" if told else ""


def result_name(result: int) -> str:
    """The protocol's name of a player's result."""
    return str(sc_pb.Result.Name(result))


def action_result_name(result: int) -> str:
    """The protocol's name of an action's result."""
    return str(error_pb2.ActionResult.Name(result))
