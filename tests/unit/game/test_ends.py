"""The signs of the end of a game in real time, and the state that is shown once more."""

from __future__ import annotations

import pytest
from s2clientprotocol import error_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.game.ends import EndSigns, shown_again
from sc2pool.protocol.observed import Observed

SUCCESS = int(error_pb2.Success)
NOT_OURS = int(error_pb2.YouCantControlThatUnit)


def observed(loop: int, own_units: int = 1) -> Observed:
    response = sc_pb.ResponseObservation()
    response.observation.game_loop = loop
    units = response.observation.raw_data.units
    for alliance in [raw_pb2.Enemy, *[raw_pb2.Self] * own_units]:
        units.add(alliance=alliance, tag=len(units) + 1, unit_type=48).pos.SetInParent()
    return Observed.of(response)


@pytest.fixture
def signs() -> EndSigns:
    signs = EndSigns()
    signs.begin(has_opponent=True)
    return signs


def looked(signs: EndSigns, *loops_and_times: tuple[int, float], **options: float) -> list[str]:
    return [signs.look(observed(loop), at_s, **options) for loop, at_s in loops_and_times]


class TestStandstill:
    def test_a_loop_that_stands_for_a_second(self, signs):
        found = looked(signs, *((8, 0.05 * look) for look in range(22)))
        assert found[-1] == "the game loop stood still"
        assert not any(found[:20])

    def test_a_loop_that_moves_in_between(self, signs):
        assert not any(looked(signs, *((8 + look // 15, 0.05 * look) for look in range(60))))

    def test_time_between_two_looks_counts_little(self, signs):
        """The game, or this process, may have been stopped."""
        assert not any(looked(signs, (8, 0.0), (8, 30.0), (8, 60.0)))

    def test_a_pause_does_not_count(self, signs):
        looked(signs, *((8, 0.05 * look) for look in range(19)))
        signs.resume()
        assert not any(looked(signs, *((8, 9.0 + 0.05 * look) for look in range(19))))

    def test_the_other_game_must_answer_meanwhile(self, signs):
        stands = [(8, 0.05 * look) for look in range(40)]
        assert not any(looked(signs, *stands, others_answered_s=0.3))
        assert signs.look(observed(8), 2.0, others_answered_s=1.9)


class TestUnits:
    def test_no_own_unit_for_a_second_of_loops(self, signs):
        assert not signs.look(observed(10), 0.0)
        found = [signs.look(observed(loop, own_units=0), loop / 22.4) for loop in (20, 30, 41, 42)]
        assert found == ["", "", "", "no own unit was left"]

    def test_units_that_come_back(self, signs):
        signs.look(observed(10), 0.0)
        signs.look(observed(20, own_units=0), 1.0)
        assert not signs.look(observed(40), 2.0)
        assert not signs.look(observed(50, own_units=0), 3.0)

    def test_units_that_were_never_there(self, signs):
        found = [signs.look(observed(loop, own_units=0), loop / 22.4) for loop in range(0, 300, 10)]
        assert not any(found)

    def test_without_an_opponent_nobody_has_lost(self):
        signs = EndSigns()
        signs.begin(has_opponent=False)
        signs.look(observed(10), 0.0)
        found = [signs.look(observed(loop, own_units=0), loop / 22.4) for loop in range(20, 99, 8)]
        assert not any(found)


class TestCommands:
    def test_units_that_do_not_obey_any_more(self, signs):
        signs.note_results([SUCCESS, NOT_OURS], 10)
        signs.note_results([NOT_OURS], 20)
        signs.note_results([], 28)
        signs.note_results([NOT_OURS, NOT_OURS], 36)
        assert looked(signs, (41, 2.0), (42, 2.1)) == [
            "",
            "the own units could not be commanded any more",
        ]

    def test_units_that_have_never_obeyed_are_the_tasks_mistake(self, signs):
        signs.note_results([NOT_OURS], 10)
        assert not any(looked(signs, (50, 2.0)))

    def test_one_that_obeys_again(self, signs):
        signs.note_results([SUCCESS], 2)
        signs.note_results([NOT_OURS], 10)
        signs.note_results([SUCCESS], 20)
        assert not any(looked(signs, (50, 2.0)))


class TestShownAgain:
    @pytest.fixture
    def last(self) -> Observed:
        response = observed(96).response
        response.action_errors.add(unit_tag=1)
        response.chat.add(message="gg")
        response.actions.add()
        response.observation.alerts.append(sc_pb.MergeComplete)
        response.observation.raw_data.event.dead_units.append(77)
        response.observation.score.score = 12
        return Observed.of(response)

    def test_the_state_without_its_events(self, last):
        again = shown_again(last)
        assert (again.game_loop, again.score) == (96, 12)
        assert list(again.columns.tag) == list(last.columns.tag)
        told = again.response
        assert not (told.action_errors or told.chat or told.actions)
        assert not told.observation.alerts
        assert not told.observation.raw_data.event.dead_units

    def test_with_the_events_of_a_later_stub(self, last):
        stub = sc_pb.ResponseObservation()
        stub.observation.game_loop = 2**32 - 1
        stub.player_result.add(player_id=1, result=sc_pb.Victory)
        stub.action_errors.add(unit_tag=5)
        again = shown_again(last, stub)
        assert again.game_loop == 96
        assert [error.unit_tag for error in again.response.action_errors] == [5]
        assert [result.result for result in again.response.player_result] == [sc_pb.Victory]
