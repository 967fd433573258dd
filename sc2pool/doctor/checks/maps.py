"""The checks of `--full` about maps and their scripts; `maps` measures for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypedDict

from sc2pool.doctor.findings import Judgement, Section, differs, expect, ok, shortened

LATE_LOOPS: Final = 2
"""The latest normal loop for the appearance of an episode's or a debug command's units."""

MAPS = Section("maps and their scripts", needed=False)


class Opened(TypedDict):
    """An attempt to play a map, with one way of naming it."""

    what: str
    outcome: str
    bad: bool
    """Whether the game fails without naming the map as the cause."""


class Appearance(TypedDict):
    """The loops at which an installed map first shows the units of each side."""

    map_name: str
    reset: str
    own: int | None
    """None if the units do not appear."""
    enemy: int | None


@MAPS.check("D20 debug units", "how many loops until created or killed units are observed?")
def debug_units(created: int | None, killed: int | None) -> Judgement:
    told = [
        f"{name} after {loops} loop(s)" if loops is not None else f"{name}: not seen"
        for name, loops in (("created", created), ("killed", killed))
    ]
    late = created is None or killed is None or max(created, killed) > LATE_LOOPS
    return expect(not late, ", ".join(told), "tests that change a game must step it further")


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
            "a map that ends the game, or cannot be joined, may come from a newer editor, or its "
            "file may be damaged"
        )
    return expect(not late and not failures, "; ".join(told), advice)


@MAPS.check("D21 waves", "does a new wave come if the last two enemies die in the same loop?")
def waves(usual_loops: int | None, same_loop_loops: int | None, watched_loops: int) -> Judgement:
    """Judge the map's waves.

    Args:
        usual_loops: loops until a new wave if the last enemies die one by one, or None.
        same_loop_loops: loops until a new wave if they die in the same loop, or None.
        watched_loops: how many loops a wave was awaited.
    """
    if usual_loops is None:
        return differs(
            f"no wave comes within {watched_loops} loops, however they die",
            "the map's script fails",
        )
    if same_loop_loops is None:
        return differs(
            f"no: the map stalls for {watched_loops} loops and more; one by one they are replaced "
            f"after {usual_loops}",
            "an episode may have no enemies until its end: this is a fault of the map, and lowers "
            "a policy's score",
        )
    return ok(f"yes, after {same_loop_loops} loop(s); one by one after {usual_loops}")


@MAPS.check("D22 odd maps", "what does the game say of a map that it cannot read?")
def odd_maps(opened: Sequence[Opened]) -> Judgement:
    told = [f"{one['what']}: {shortened(one['outcome'])}" for one in opened]
    bad = [one["what"] for one in opened if one["bad"]]
    return expect(
        not bad,
        "; ".join(told),
        f"the game does not name the map as the cause ({', '.join(bad)}): after such a failure, "
        "look at the map's file",
    )
