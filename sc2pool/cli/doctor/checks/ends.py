"""The checks of `--full` about ends of games and about real time; `ends` measures for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, TypedDict

from s2clientprotocol import error_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.cli.doctor.checks.game import CATCHES_UP_ABOVE, FREEZES_BELOW
from sc2pool.cli.doctor.findings import Judgement, Section, differs, expect, ok, seconds
from sc2pool.protocol.game_time import LOOPS_PER_S

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
    """Until the reply; None if there was none."""
    loop: int
    status: str
    told: bool
    """Whether the reply has the result."""
    refused: str
    """The game's words; empty if it has answered with an observation."""


class End(TypedDict):
    """The end of a game, and what it answers after that."""

    way: str
    told_in: int
    """In how many observations the result was."""
    told_first: int | None
    """How many observations after the end the first of these came; None if none came."""
    stubs: int
    """Observations without content."""
    status: str
    after: dict[str, str]
    """By kind of request: "answered", or the words with which it is refused."""


class MatchEnd(TypedDict):
    """The end of a match, as both sides see it."""

    realtime: bool
    results: list[str]
    """The host's and the guest's; empty if it was never told."""
    statuses: list[str]
    loops_after: int
    """By how much the host's loop grew in the time after the end."""
    watched_s: float
    """That time."""
    action_result: str
    """What an action of the host's got; empty if nothing was tried."""


class Stop(TypedDict):
    """A real-time game that was stopped and resumed."""

    stopped_s: float
    missed: float
    """Loops that the game would have played in that time."""
    made_up: float
    """Loops that it played in addition after it was resumed."""


def after_stop(stops: Sequence[Stop]) -> str:
    """What a real-time game does about the loops that it missed; a value of `AFTER_STOP`."""
    shares = [stop["made_up"] / stop["missed"] for stop in stops]
    if max(shares) <= FREEZES_BELOW:
        return "freeze"
    return "catch-up" if min(shares) >= CATCHES_UP_ABOVE else "in part"


@ENDS.check(
    "D01 awaited end", "in real time: is a request for a later loop answered if the game ends?"
)
def awaited_end(samples: Sequence[AwaitedEnd], waited_s: float) -> Judgement:
    """The samples, and after which time a request counts as unanswered."""
    silent = [sample for sample in samples if sample["after_s"] is None]
    if silent:
        ways = sorted({f"{sample['way']}, {sample['ahead']} loops ahead" for sample in silent})
        return differs(
            f"no: {len(silent)} of {len(samples)} were not answered within {waited_s:g} s of the "
            f"end ({'; '.join(ways)})",
            "a client may not wait at the game for a loop that is still to come; a pool waits by "
            "its own clock then",
        )
    refused = sorted({sample["refused"] for sample in samples} - {""})
    told = sum(sample["told"] for sample in samples)
    longest_s = max(sample["after_s"] or 0.0 for sample in samples)
    figure = f"yes: {len(samples)} of {len(samples)}, {told} with the result, "
    figure += f"the slowest after {seconds(longest_s)}"
    if refused:
        figure += f"; refused: {', '.join(refused)}"
    return expect(
        not refused and told == len(samples), figure, "the result has to be observed after that"
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
        "a result may never come: a pool keeps the last observation, and counts such an episode "
        "as ended without a result",
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
        figure + ")", "a match in real time has to be ended by another sign, or by its time limit"
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
        "a pause does not stop this game's time: what it missed is played without an action",
    )


stops = ENDS.check("D16 stops", "in real time: does a stopped game make up for what it missed?")(
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
        "an episode in real time begins when part of it is over",
    )


def _after(samples: Sequence[End]) -> str:
    """What is refused after an end, observations aside."""
    said: dict[str, list[str]] = {}
    for sample in samples:
        for kind, words in sample["after"].items():
            kinds = said.setdefault(words, [])
            if kind not in kinds:
                kinds.append(kind)
    told = [f"{', '.join(kinds)}: {words}" for words, kinds in said.items() if words != "answered"]
    return f"after the end {'; '.join(told)}" if told else ""


def result_name(result: int) -> str:
    """A player's result by its name in the protocol."""
    return str(sc_pb.Result.Name(result))


def action_result_name(result: int) -> str:
    """An action's result by its name in the protocol."""
    return str(error_pb2.ActionResult.Name(result))
