"""Someone else listens on the port that a game was to have."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_pools import MakeEnv, Recording, assert_same_bytes, step

from tests.support.audit.faulty import Faulty


@pytest.fixture
def report(tmp_path: Path) -> Iterator[Path]:
    """Where the impostor tells who it is and what it was sent."""
    path = tmp_path / "impostor"
    yield path
    pid, _ = path.read_text().splitlines()[0].split()
    os.kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize("harm", ["port taken", "port stolen"])
def test_the_game_gets_another_port_and_the_impostor_not_a_byte(
    make_env: MakeEnv, faulty: Faulty, report: Path, undisturbed: Recording, harm: str
) -> None:
    """A stolen one is the worse: our game is silent, and all that answers is the impostor."""
    faulty.order(harm, "start", report=str(report))
    env = make_env(game=faulty.installation)
    assert_same_bytes(env.reset(), undisturbed.observations[0][:2])
    assert_same_bytes(step(env, 0, 0)[0], undisturbed.observations[1][:2])
    assert faulty.done
    (_, port), *visits = (line.split() for line in report.read_text().splitlines())
    assert visits == [["0"]] * len(visits), "not even a websocket's upgrade"
    if harm == "port stolen":
        assert visits
    stats = env.stats()
    assert int(port) not in [instance.port for instance in stats.instances]
    assert stats.recycles == {}
