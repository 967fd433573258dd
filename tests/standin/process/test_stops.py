"""A game in real time that is stopped: with one clock no time has passed, with the other it has."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.install import MARKER

STOP_S = 0.6
"""13 loops of real time."""


def loop_of(wire: Any, game_loop: int = 0) -> int:
    """The game's loop now, or once it has come to `game_loop`."""
    reply = wire.ask(observation=sc_pb.RequestObservation(game_loop=game_loop))
    return int(reply.observation.observation.game_loop)


@pytest.mark.timing
@pytest.mark.parametrize(("after_stop", "fewest", "most"), [("freeze", 0, 1), (None, 13, 15)])
def test_loops_after_a_stop(launch, after_stop, fewest, most):
    game = launch(*([] if after_stop is None else ["--after-stop", after_stop]))
    wire = game.connect()
    wire.start(realtime=True)
    before = loop_of(wire, 5)
    game.process.send_signal(signal.SIGSTOP)
    time.sleep(STOP_S)
    game.process.send_signal(signal.SIGCONT)
    after = loop_of(wire)
    assert fewest <= after - before <= most
    # And on it goes, at its usual pace.
    began_s = time.monotonic()
    assert loop_of(wire, after + 9) >= after + 9
    assert time.monotonic() - began_s == pytest.approx(9 / 22.4, abs=0.15)


def test_an_unknown_choice_is_told_and_nothing_written(tmp_path):
    command = [sys.executable, "-m", "sc2standin", "install", str(tmp_path / "game")]
    done = subprocess.run(
        [*command, "--after-stop=rewind"], check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2
    assert "rewind" in done.stderr
    assert not (tmp_path / "game" / MARKER).exists()
