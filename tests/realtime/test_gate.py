"""The pause gate on programs that no pool has started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from realtime_tasks import start_family

from sc2pool.errors import ClosedError, PauseError
from sc2pool.realtime.gate import PauseGate
from tests.support.programs import Trainer, assert_gone, has_ended


@pytest.fixture
def family() -> Iterator[list[psutil.Process]]:
    """A program, its child and its grandchild."""
    root = start_family(2, start_new_session=True)
    process = psutil.Process(root.pid)
    yield [process, *process.children(recursive=True)]
    os.killpg(root.pid, signal.SIGKILL)
    root.communicate()


def stopped(family: list[psutil.Process]) -> set[bool]:
    return {process.status() == psutil.STATUS_STOPPED for process in family}


def test_pauses_are_counted(family):
    assert len(family) == 3
    with PauseGate(family[0].pid) as gate:
        gate.resume()
        assert not gate.paused
        gate.pause()
        gate.pause()
        assert stopped(family) == {True}
        gate.resume()
        assert gate.paused
        assert stopped(family) == {True}
        gate.resume()
        assert not gate.paused
        assert stopped(family) == {False}
        with gate.pausing():
            assert stopped(family) == {True}
        assert stopped(family) == {False}


def test_close_resumes_the_tree(family):
    gate = PauseGate(family[0].pid)
    gate.pause()
    gate.pause()
    gate.close()
    assert stopped(family) == {False}
    gate.close()
    with pytest.raises(ClosedError):
        gate.pause()
    assert stopped(family) == {False}


def test_a_gate_may_be_closed_in_a_pause(family):
    gate = PauseGate(family[0].pid)
    with gate.pausing():
        gate.close()
        assert stopped(family) == {False}
    gate.resume()
    assert not gate.paused


def test_a_process_that_has_ended_is_a_pause_error():
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises(PauseError, match=str(ended.pid)):
        PauseGate(ended.pid)


@pytest.mark.parametrize("how", ["paused", "resumed", "never paused"])
def test_a_paused_tree_ends_with_the_program_that_paused_it(how):
    program = Path(__file__).parent / "programs" / "gate_trainer.py"
    with Trainer(program, how) as trainer:
        trainer.wait_for_stage("waiting")
        family, all_ = trainer.children, psutil.Process(trainer.process.pid).children()
        assert stopped(family) == {how == "paused"}
        (guard,) = (child for child in all_ if child not in family)
    assert_gone([guard], within_s=300.0)
    alive = [process for process in family if not has_ended(process)]
    assert alive == ([] if how == "paused" else family)
    for process in reversed(alive):
        process.kill()
