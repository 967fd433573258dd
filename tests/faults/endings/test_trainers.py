"""What befalls a trainer that continues: it is stopped and continued, its disk is full, it is not
alone on the machine.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.programs import Trainer, assert_gone

pytestmark = pytest.mark.usefixtures("swept")

STOPPED_FOR_S = 2.5
"""Longer than the trainer of "is stopped" waits for any reply."""


@pytest.mark.parametrize("stage", ["resetting", "training"])
def test_ctrl_z_and_fg_is_no_fault(trainer: Callable[..., Trainer], stage: str) -> None:
    """Ctrl-Z stops the trainer alone: its workers have a session of their own."""
    stopped = trainer("is stopped")
    stopped.wait_for_stage(stage)
    stopped.process.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED_FOR_S)  # that time passes is the point
    stopped.process.send_signal(signal.SIGCONT)
    if stage == "resetting":
        stopped.wait_for_stage("training")
        stopped.wait_for_stage("playing")
    time.sleep(0.5)  # two more looks of its watchdog
    stopped.process.send_signal(signal.SIGINT)
    said = stopped.wait_for_stage("interrupted")
    assert said["recycles"] == {}
    assert said["env_steps"] > 0


def test_full_disk_stops_no_trainer(
    trainer: Callable[..., Trainer], installation: Callable[[str], Path]
) -> None:
    """A limit on the size of files stands in for it: no fault report or log can be written."""
    talkative = installation("seq -f 'line %092.0f' 20")  # two thousand bytes
    unlucky = trainer("finds the disk full", game=talkative)
    said = unlucky.wait_for_stage("played on")
    assert [told["kind"] for told in said["told"]] == ["game-exited"] * 2
    assert [told["fault_report"] for told in said["told"]] == [None, None]
    assert said["recycles"] == {"game-exited": 2}
    assert said["env_steps"] == 16


def test_two_trainers_on_one_machine(trainer: Callable[..., Trainer]) -> None:
    """They start at the same time and take their ports from the same place."""
    two = [trainer("trains", 4) for _ in range(2)]
    ports = [one.wait_for_stage("training")["ports"] for one in two]
    assert len({*ports[0], *ports[1]}) == 8
    for one in two:
        children = one.children
        one.wait_for_stage("playing")
        one.process.send_signal(signal.SIGINT)
        said = one.wait_for_stage("interrupted")
        assert said["recycles"] == {}
        assert said["env_steps"] > 0
        assert_gone(children)
