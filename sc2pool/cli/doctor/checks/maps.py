"""The checks of `--full` about maps and their scripts; `maps` measures for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypedDict

from sc2pool.cli.doctor.findings import Judgement, Section, differs, expect, ok, shortened

LATE_LOOPS: Final = 2
"""The latest usual loop at which an episode's units, or a debug command's, are there."""

MAPS = Section("maps and their scripts", needed=False)


class Opened(TypedDict):
    """A map that was to be played, in one way of naming it."""

    what: str
    outcome: str
    bad: bool
    """Whether the game fails in a way that tells its client nothing of the map."""


class Appearance(TypedDict):
    """The loops at which an installed map first shows the units of each side."""

    map_name: str
    reset: str
    own: int | None
    """None if they do not appear."""
    enemy: int | None


@MAPS.check("D20 debug units", "how many loops until units that were created or killed are seen?")
def debug_units(created: int | None, killed: int | None) -> Judgement:
    told = [
        f"{name} after {loops} loop(s)" if loops is not None else f"{name}: not seen"
        for name, loops in (("created", created), ("killed", killed))
    ]
    late = created is None or killed is None or max(created, killed) > LATE_LOOPS
    return expect(not late, ", ".join(told), "tests that change a game have to step it further")


@MAPS.check("D21 installed maps", "can they be loaded, and when do their units appear?")
def installed_maps(appearances: Sequence[Appearance], failures: dict[str, str]) -> Judgement:
    late: dict[str, int] = {}
    for one in appearances:
        loop = max(one["own"] or 0, one["enemy"] or 0)
        if loop > LATE_LOOPS:
            late[one["map_name"]] = max(loop, late.get(one["map_name"], 0))
    empty = sorted({one["map_name"] for one in appearances if one["own"] is None})
    names = {one["map_name"] for one in appearances}
    told = [f"{name} fails: {shortened(words)}" for name, words in failures.items()]
    if late:
        many = "" if len(late) <= 3 else ", …"
        listed = ", ".join(f"{name} at loop {loop}" for name, loop in list(late.items())[:3])
        told.append(f"units of {len(late)} maps appear late: {listed}{many}")
    if empty:
        told.append(f"no own units within the time: {', '.join(empty)}")
    told.append(f"{len(names)} loaded")
    advice = "a task waits for its units" if late and not failures else ""
    if failures:
        advice = (
            "a map that ends the game, or cannot be joined, may be of a newer editor, or its file "
            "may be damaged"
        )
    return expect(not late and not failures, "; ".join(told), advice)


@MAPS.check("D21 waves", "does a new wave come if the last two enemies die in the same loop?")
def waves(usual_loops: int | None, same_loop_loops: int | None, watched_loops: int) -> Judgement:
    """Loops until a new wave if they die one by one, and in the same loop; None if none comes."""
    if usual_loops is None:
        return differs(
            f"no wave comes within {watched_loops} loops, however they die",
            "the map's script fails",
        )
    if same_loop_loops is None:
        return differs(
            f"no: the map stalls for {watched_loops} loops and more; one by one they are replaced "
            f"after {usual_loops}",
            "an episode may go on to its end without an enemy: the map's own fault, and a policy's "
            "score is lower for it",
        )
    return ok(f"yes, after {same_loop_loops} loop(s); one by one after {usual_loops}")


@MAPS.check("D22 odd maps", "what does the game say of a map that it cannot read?")
def odd_maps(opened: Sequence[Opened]) -> Judgement:
    told = [f"{one['what']}: {shortened(one['outcome'])}" for one in opened]
    bad = [one["what"] for one in opened if one["bad"]]
    return expect(
        not bad,
        "; ".join(told),
        f"the game does not name the map as the cause ({', '.join(bad)}): such a failure "
        "means that the file has to be looked at",
    )
