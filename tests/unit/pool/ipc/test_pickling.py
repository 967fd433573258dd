"""What cannot be pickled says where it was to go."""

from __future__ import annotations

import threading

import pytest

from sc2pool.pool.ipc.pickling import for_trainer, for_worker
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon


def test_what_cannot_travel_to_a_worker_says_so():
    class Locked(MoveToBeacon):
        lock = threading.Lock()

    with pytest.raises(TypeError, match="cannot pickle") as raised:
        for_worker(Locked)
    (note,) = raised.value.__notes__
    assert note.startswith("values for a worker process are pickled: a task's class")


def test_what_cannot_travel_to_the_trainer_says_so():
    with pytest.raises(TypeError, match="cannot pickle") as raised:
        for_trainer({"lock": threading.Lock()})
    (note,) = raised.value.__notes__
    assert note.startswith("values from a worker process are pickled: infos, results of calls")
