"""python-sc2, unmodified: its helpers work on the stand-in, and its replays are found again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sc2.main import get_replay_version

from sc2standin.version import BASE_BUILD, DATA_VERSION

BOT = Path(__file__).with_name("python_sc2_bot.py")


def test_a_bots_helpers(installation, tmp_path):
    replay = tmp_path / "game.SC2Replay"
    done = subprocess.run(
        [sys.executable, BOT, "MoveToBeacon", replay],
        env=os.environ | {"SC2PATH": str(installation), "SC2PF": "Linux"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    distance = said.pop("distance")
    assert distance == pytest.approx(5.0)
    dps, reach, speed = said.pop("dps")
    assert (dps, reach, speed) == pytest.approx((6 / 0.860839844, 5, 2.25))
    assert said == {
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
