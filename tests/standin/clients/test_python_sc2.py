"""python-sc2, unmodified: its helpers work on the stand-in, and its replays are found again."""

from __future__ import annotations

import pytest
from sc2.main import get_replay_version

from sc2standin.version import BASE_BUILD, DATA_VERSION
from tests.standin.clients.conftest import said


def test_a_bots_helpers(run, tmp_path):
    replay = tmp_path / "game.SC2Replay"
    told = said(run("python_sc2_bot", "MoveToBeacon", replay))
    assert told.pop("distance") == pytest.approx(5.0)
    dps, reach, speed = told.pop("dps")
    assert (dps, reach, speed) == pytest.approx((6 / 0.860839844, 5, 2.25))
    assert told == {
        "costs": [[50, 0], [200, 150], [100, 100]],
        "supply": 1,
        "value": 550,
        "can_afford": False,
        "pending": [0, 0, 0, 0],
        "damage": 6,
        "place": [True, False],
        "found": True,
        "abilities": [
            "SMART",
            "STOP_STOP",
            "MOVE_MOVE",
            "PATROL_PATROL",
            "HOLDPOSITION_HOLD",
            "ATTACK_ATTACK",
        ],
        "can_cast": True,
    }
    assert get_replay_version(replay) == (f"Base{BASE_BUILD}", DATA_VERSION)
