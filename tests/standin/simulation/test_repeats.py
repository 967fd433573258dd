"""What is begun in the same way continues in the same way, in steps of any size."""

from __future__ import annotations

import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from tests.standin.maps.test_smac import begin as begin_smac
from tests.standin.sessions import OfflineSession, place_of

LOOPS = 240
SCV, MARINE, ROACH, OBSERVER, TEMPLAR, TUMOR, INFESTOR = 45, 48, 110, 82, 76, 87, 111
BARRACKS, BARRACKS_LAB, TECH_LAB, BAY = 21, 37, 5, 22
MOVE, SCAN_MOVE, ATTACK, FUNGAL, REPAIR = 16, 19, 23, 74, 3685
STIMPACK, STIM, WEAPONS = 730, 3675, 3698


def _a_fight(session: OfflineSession) -> None:
    session.start("DefeatRoaches", seed=5)
    session.order(session.units(MARINE), ATTACK, place_of(session.units(ROACH)[0]))


def _a_detector_on_its_way(session: OfflineSession) -> None:
    session.arena((OBSERVER, 1, 12, 30), (MARINE, 1, 30, 30), (TEMPLAR, 2, 44, 30))
    session.order(session.one(OBSERVER), SCAN_MOVE, (40, 30))


def _fog(session: OfflineSession) -> None:
    session.arena((MARINE, 1, 12, 12), fog=True)
    session.order(session.one(MARINE), MOVE, (50, 12))


def _creep(session: OfflineSession) -> None:
    session.arena((TUMOR, 2, 20.5, 30.5), (MARINE, 1, 40, 40), fog=True)


def _a_spell(session: OfflineSession) -> None:
    session.arena((INFESTOR, 1, 20, 30), (MARINE, 2, 28, 30, 5))
    session.state.game.world.owned_by(1)[0].energy = 200.0
    session.order(session.one(INFESTOR), FUNGAL, (28, 30))


def _an_economy(session: OfflineSession) -> None:
    session.start("BuildMarines", seed=4)


def _a_repair(session: OfflineSession) -> None:
    session.start("Melee/Simple64")
    session.create((BARRACKS, 1, 24.5, 45.5), (SCV, 1, 24.5, 42.0))
    barracks = session.one(BARRACKS)
    session.state.game.world.by_tag[barracks.tag].life = 500.0
    session.order(session.units(SCV)[-1], REPAIR, target=barracks)


def _upgrades(session: OfflineSession) -> None:
    session.start("Melee/Simple64")
    session.create((BARRACKS, 1, 24.5, 45.5), (BAY, 1, 30.5, 45.5), (MARINE, 1, 30, 50, 6))
    session.create((TECH_LAB, 1, 27.0, 45.0))
    for state in (debug_pb.all_resources, debug_pb.fast_build, debug_pb.tech_tree):
        session.debug(debug_pb.DebugCommand(game_state=state))
    session.step()
    session.order(session.one(BARRACKS_LAB), STIMPACK)
    session.order(session.one(BAY), WEAPONS)
    session.step(20)
    session.create((MARINE, 2, 34.0, 50.0, 6))
    assert session.order(session.units(MARINE), STIM) == 1


def _zealots_in_a_corridor(session: OfflineSession) -> None:
    begin_smac(session, "corridor")


def _medivacs(session: OfflineSession) -> None:
    begin_smac(session, "MMM")


@pytest.mark.parametrize(
    "begin",
    [
        *(_a_fight, _a_detector_on_its_way, _fog, _creep, _a_spell, _an_economy, _a_repair),
        *(_upgrades, _zealots_in_a_corridor, _medivacs),
    ],
    ids=lambda begin: begin.__name__.strip("_"),
)
def test_steps_of_any_size_give_the_same_bytes(session_for, begin):
    def play(size: int) -> bytes:
        session = session_for()
        begin(session)
        for _ in range(LOOPS // size):
            session.step(size)
        return session.ask_bytes(observation=sc_pb.RequestObservation())

    assert play(1) == play(8) == play(LOOPS)
