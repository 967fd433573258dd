"""The checks of `--full` about restarts and resets; `resets` measures for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, TypedDict

from sc2pool.doctor.findings import (
    MB,
    Judgement,
    Section,
    differs,
    expect,
    megabytes,
    ok,
    seconds,
)
from sc2pool.protocol.replies import HARD_RESET_LOOP

GROWTH_BYTES: Final = 2 * MB
"""Growth per reset above which the report mentions it."""
RESTARTS_TO_TELL: Final = 4
"""If this many restarts have the same race, it is not drawn again (by chance: 1 in 27)."""

RESETS = Section("restarts and resets", needed=False)


class Beginning(TypedDict):
    """The beginning of an episode against a computer."""

    restarted: bool
    own_race: str
    enemy_race: str
    units: str
    """Counts of all units by owner and type, in one text."""
    growth: int
    """How many units the computer added in the loops that were played."""


class Step(TypedDict):
    """One long step."""

    loops: int
    took_s: float
    refused: str


class Resets(TypedDict):
    """Resets of one kind in one process."""

    kind: str
    done: int
    took_s: float
    first_bytes: int
    last_bytes: int
    threads: int
    """The additional threads of the game."""
    files: int
    """The additional files in the folders that the game writes to."""
    failure: str
    """The failure of the reset after the last one that was done; empty if no reset failed."""


@RESETS.check("D05 restart restores", "does restart_game restore used-up resources?")
def restart_restores(
    mined: int, exhausted: int, loops: int, differences: Sequence[str]
) -> Judgement:
    figure = f"{mined} minerals mined and {exhausted} field(s) exhausted in {loops:,} loops, "
    figure += "units and upgrades given"
    if not differences:
        proof = "" if exhausted else " (without an exhausted field this proves little)"
        return ok(f"yes: {figure}; all is as at first{proof}")
    return differs(
        f"no: {figure}; after the restart {'; '.join(differences)}",
        "a restarted episode keeps changes of the previous one: a pool creates a new game for "
        "each episode of such a task, which takes longer",
    )


def _against_computer(random_side: str, beginnings: Sequence[Beginning], refused: str) -> Judgement:
    """Compare restarted games with created ones.

    Args:
        random_side: the field of `Beginning` with the race that is random.
        beginnings: of created and restarted games.
        refused: the game's refusal of a restart, or "".
    """
    advice = "a pool creates a new game for each such episode, which takes longer"
    if refused:
        return differs(f"restart_game is refused: {refused}", advice)
    restarted = [one for one in beginnings if one["restarted"]]
    created = [one for one in beginnings if not one["restarted"]]
    known: dict[tuple[str, str], set[str]] = {}
    for one in created:
        known.setdefault((one["own_race"], one["enemy_race"]), set()).add(one["units"])
    odd = [
        one
        for one in restarted
        if (seen := known.get((one["own_race"], one["enemy_race"]))) and one["units"] not in seen
    ]
    still = [one for one in restarted if one["growth"] <= 0]
    if any(one["growth"] <= 0 for one in created):
        still = []
    races = {
        name: Counter(one[random_side] for one in group)  # type: ignore[literal-required]
        for name, group in (("restarts", restarted), ("creations", created))
    }
    figure = f"{len(restarted)} restarts and {len(created)} creations; races: " + "; ".join(
        f"{name} {', '.join(f'{count} × {race}' for race, count in counts.items())}"
        for name, counts in races.items()
    )
    stays = len(races["restarts"]) == 1 < len(races["creations"])
    if odd:
        return differs(
            f"no: {len(odd)} began with other units than created games; {figure}", advice
        )
    if still:
        return differs(f"no: the computer does nothing in {len(still)} of them; {figure}", advice)
    if stays and len(restarted) >= RESTARTS_TO_TELL:
        return differs(f"no: the race stays the same; {figure}", advice)
    return ok(f"yes: {figure}")


@RESETS.check(
    "D06 computer restarts", "is a restarted game against a computer as good as a created one?"
)
def computer_restarts(beginnings: Sequence[Beginning], refused: str = "") -> Judgement:
    return _against_computer("enemy_race", beginnings, refused)


@RESETS.check("D07 random race", "the same with a random own race: is the race drawn again?")
def random_race(beginnings: Sequence[Beginning], refused: str = "") -> Judgement:
    return _against_computer("own_race", beginnings, refused)


@RESETS.check("D08 many resets", "what do hundreds of resets in one process leave behind?")
def many_resets(measured: Sequence[Resets]) -> Judgement:
    parts, troubles = [], []
    for one in measured:
        grown = one["last_bytes"] - one["first_bytes"]
        parts.append(
            f"{one['done']} × {one['kind']} in {seconds(one['took_s'])}: "
            f"{megabytes(one['last_bytes'])} ({grown / MB:+.1f} MB), {one['threads']:+d} threads, "
            f"{one['files']:+d} files"
        )
        if one["failure"]:
            troubles.append(f"{one['kind']} {one['done'] + 1} fails: {one['failure']}")
        elif grown > GROWTH_BYTES * max(one["done"], 1):
            troubles.append(f"{one['kind']} makes it grow")
        elif one["files"] > one["done"] // 2:
            troubles.append(f"{one['kind']} leaves files")
    figure = "; ".join([*troubles, *parts])
    return expect(
        not troubles, figure, "a process must be replaced earlier: RecyclePolicy(episodes=…)"
    )


@RESETS.check("D25 limits", "how far can a game be stepped, and does need_hard_reset come?")
def limits(
    steps: Sequence[Step],
    reached: int,
    hard_reset_at: int | None,
    ended: str,
    observation_bytes: int,
) -> Judgement:
    """Judge how far a game can be stepped.

    Args:
        steps: some long steps.
        reached: the loops that were played, with restarts.
        hard_reset_at: the loops after which the game asked for a hard reset, or None.
        ended: the game's refusal to restart, or "".
        observation_bytes: the size of an observation.
    """
    parts = [f"{step['loops']:,} loops in {seconds(step['took_s'])}" for step in steps]
    figure = f"steps of {', '.join(parts)}; {reached:,} loops played with restarts"
    if ended:
        figure += f", then: {ended}"
    figure += f"; an observation has {observation_bytes:,} bytes; "
    if hard_reset_at is not None:
        figure += f"a hard reset is asked for after {hard_reset_at:,} loops"
    elif reached < HARD_RESET_LOOP:
        figure += f"2^18 = {HARD_RESET_LOOP:,} loops took too long"
    else:
        figure += "a hard reset is never asked for"
    refused = [f"a step of {one['loops']:,}: {one['refused']}" for one in steps if one["refused"]]
    if refused:
        return differs(f"refused: {'; '.join(refused)}; {figure}", "such steps must be split")
    if hard_reset_at is not None and hard_reset_at < HARD_RESET_LOOP:
        return differs(f"{figure}, before 2^18", "the pool replaces games more often")
    return ok(figure)
