"""Which games are restarted, and when a restart is not taken for one."""

from __future__ import annotations

from pathlib import Path

import pytest
from s2clientprotocol import common_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import Computer, GameSetup
from sc2pool.game.program.settled import Settled
from sc2pool.game.resets import Beginning, ResetLadder

ALONE = (GameSetup("BuildMarines"), Path("/maps/BuildMarines.SC2Map"))
AREA = common_pb2.RectangleI(p0=common_pb2.PointI(x=1, y=0), p1=common_pb2.PointI(x=3, y=2))


def first(
    *, minerals: int = 1800, marines: int = 1, enemies: int = 1, fog: bool = True, score: int = 0
) -> sc_pb.Observation:
    """An episode's first observation."""
    seen = sc_pb.Observation()
    seen.score.score = score
    raw = seen.raw_data
    raw.units.add(unit_type=341, owner=16, alliance=raw_pb2.Neutral, mineral_contents=minerals)
    for _ in range(marines):
        raw.units.add(unit_type=48, owner=1, alliance=raw_pb2.Self)
    for _ in range(enemies):
        raw.units.add(unit_type=105, owner=2, alliance=raw_pb2.Enemy)
    visibility = raw.map_state.visibility
    visibility.size.x, visibility.size.y, visibility.bits_per_pixel = 4, 2, 8
    visibility.data = bytes([0, 2, 1 if fog else 2, 0] * 2)
    return seen


def beginning(**what: object) -> Beginning:
    return Beginning.of(first(**what))  # type: ignore[arg-type]


@pytest.fixture
def ladder() -> ResetLadder:
    ladder = ResetLadder(Settled())
    ladder.created(ALONE, None)
    assert not ladder.difference(beginning(), AREA, restarted=False)
    return ladder


class TestWhatIsRestarted:
    def test_the_same_players_on_the_same_map_without_a_seed(self, ladder):
        assert ladder.may_restart(ALONE, None)
        assert not ladder.may_restart(ALONE, 7)
        assert not ladder.may_restart((GameSetup("BuildMarines", disable_fog=True), ALONE[1]), None)

    def test_not_a_game_that_was_made_with_a_seed(self, ladder):
        ladder.created(ALONE, 7)
        assert not ladder.may_restart(ALONE, None)

    @pytest.mark.parametrize("leave", [ResetLadder.lost, ResetLadder.match_created])
    def test_not_one_of_two_players_nor_one_that_ended_without_a_word(self, ladder, leave):
        leave(ladder)
        assert not ladder.may_restart(ALONE, None)

    @pytest.mark.parametrize(
        "setup",
        [
            GameSetup("Simple64", opponents=(Computer(),)),
            GameSetup("Simple64", race=common_pb2.Random),
        ],
        ids=["computer", "random race"],
    )
    @pytest.mark.parametrize("settled", [None, False, True])
    def test_games_with_chance_only_if_doctor_has_shown_it(self, setup, settled):
        ladder = ResetLadder(Settled(restart_with_computer=settled))
        ladder.created((setup, ALONE[1]), None)
        assert ladder.may_restart((setup, ALONE[1]), None) == (settled is True)

    def test_none_if_doctor_has_shown_that_restarts_leave_something_out(self):
        ladder = ResetLadder(Settled(restart_faithful=False))
        ladder.created(ALONE, None)
        assert not ladder.may_restart(ALONE, None)

    def test_none_if_the_task_says_so(self):
        never = (GameSetup("BuildMarines", restart="never"), ALONE[1])
        ladder = ResetLadder(Settled())
        ladder.created(never, None)
        assert not ladder.may_restart(never, None)


class TestWhatARestartBringsBack:
    def test_the_same_again(self, ladder):
        assert not ladder.difference(beginning(), AREA, restarted=True)
        assert ladder.may_restart(ALONE, None)

    @pytest.mark.parametrize(
        ("otherwise", "words"),
        [
            ({"minerals": 1795}, "minerals: 1795 in place of 1800"),
            ({"marines": 0}, "1 units of type 48 of player 1 are missing"),
            ({"marines": 3}, "2 more units of type 48 of player 1 are there"),
            ({"score": 5}, "score: 5 in place of 0"),
        ],
    )
    def test_a_difference_ends_restarts_on_this_map_alone(self, ladder, otherwise, words):
        assert ladder.difference(beginning(**otherwise), AREA, restarted=True) == words
        assert not ladder.may_restart(ALONE, None)
        elsewhere = (GameSetup("MoveToBeacon"), Path("/maps/MoveToBeacon.SC2Map"))
        ladder.created(elsewhere, None)
        assert ladder.may_restart(elsewhere, None)
        ladder.created(ALONE, None)
        assert not ladder.may_restart(ALONE, None)

    def test_upgrades(self, ladder):
        upgraded = first()
        upgraded.raw_data.player.upgrade_ids.append(15)
        found = ladder.difference(Beginning.of(upgraded), AREA, restarted=True)
        assert found == "other upgrades: [15]"

    def test_another_game_begins_otherwise_for_good_reason(self, ladder):
        ladder.created(ALONE, None)
        assert not ladder.difference(beginning(minerals=5), AREA, restarted=False)
        assert ladder.may_restart(ALONE, None)

    def test_enemies_in_the_fog_are_not_counted(self, ladder):
        assert not ladder.difference(beginning(enemies=3), AREA, restarted=True)

    @pytest.mark.parametrize("area", [AREA, None], ids=["known", "unknown"])
    def test_enemies_on_a_map_that_is_seen_as_a_whole_are(self, area):
        seen = [beginning(enemies=n, fog=False) for n in (1, 3)]
        assert bool(seen[0].difference(seen[1], area)) == (area is not None)
