"""Two runs of observations: the same but for the units' tags, or where they differ."""

from __future__ import annotations

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.cli.doctor.stepping import beginning, first_difference


def seen(loop: int, *units: tuple[int, float], target: int = 0) -> sc_pb.Observation:
    """An observation of units of some tags, each at some x; the first may have a target."""
    observation = sc_pb.Observation(game_loop=loop)
    for tag, x in units:
        unit = observation.raw_data.units.add(tag=tag)
        unit.pos.x = x
    if target:
        observation.raw_data.units[0].engaged_target_tag = target
    return observation


def test_the_same() -> None:
    run = [seen(0, (7, 1.0)), seen(8, (7, 2.0), (9, 3.0))]
    assert first_difference(run, run) == ""
    assert first_difference([], []) == ""


def test_other_tags_are_no_difference() -> None:
    ours = [seen(0, (7, 1.0), (9, 2.0)), seen(8, (9, 2.0), (7, 1.0), target=7)]
    theirs = [seen(0, (70, 1.0), (5, 2.0)), seen(8, (5, 2.0), (70, 1.0), target=70)]
    assert first_difference(ours, theirs) == ""
    assert beginning(ours[0]) == beginning(theirs[0])


def test_another_unit_in_its_place_is_one() -> None:
    ours = [seen(0, (7, 1.0), (9, 1.0)), seen(8, (7, 1.0), (9, 1.0), target=7)]
    theirs = [seen(0, (7, 1.0), (9, 1.0)), seen(8, (7, 1.0), (9, 1.0), target=9)]
    assert first_difference(ours, theirs) == (
        "observation 1, raw_data.units[0].engaged_target_tag: 1 and 2"
    )


def test_the_first_difference_is_told() -> None:
    ours = [seen(0, (7, 1.0)), seen(8, (7, 2.0)), seen(16, (7, 3.0))]
    theirs = [seen(0, (7, 1.0)), seen(8, (7, 2.5)), seen(16, (7, 9.0))]
    assert first_difference(ours, theirs) == "observation 1, raw_data.units[0].pos.x: 2.0 and 2.5"
    assert beginning(ours[1]) != beginning(theirs[1])


def test_something_more_on_one_side() -> None:
    ours, theirs = [seen(0, (7, 1.0), (8, 2.0))], [seen(0, (7, 1.0))]
    assert first_difference(ours, theirs) == (
        "observation 0, raw_data.units[1] on one side, game_loop on the other"
    )
    assert first_difference(ours, [*ours, *theirs]) == (
        "1 observations on one side, 2 on the other"
    )


def test_bytes_are_told_by_their_length() -> None:
    ours, theirs = seen(0), seen(0)
    ours.raw_data.map_state.creep.data = b"\0" * 100
    theirs.raw_data.map_state.creep.data = b"\1" * 100
    assert "creep.data: 100 bytes and 100 bytes" in first_difference([ours], [theirs])
