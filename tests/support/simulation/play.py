"""Plays a schedule, and returns the first rule that the pool broke."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.simulation.schedule import Schedule
from tests.support.simulation.trainer import Trainer
from tests.support.simulation.world import Violation, World

NO_DISK = Path("/dev/null/full")


def play(schedule: Schedule, reports: Path | None = None) -> Violation | None:
    """Play a schedule.

    Args:
        schedule: The schedule to play.
        reports: A folder for fault reports; None if no reports can be written.

    Returns:
        The first rule that the pool has broken; None if the pool has kept all rules.
    """
    world = World(schedule)
    folder = reports if reports is not None and schedule.disk else NO_DISK
    with time_of(world):
        trainer = Trainer(schedule, world, folder)
        try:
            trainer.play()
        except Violation as violation:
            return violation
        finally:
            world.over = True
            trainer.abandon()
    return world.violation


@contextmanager
def time_of(world: World) -> Iterator[None]:
    """Use the world's clock as the clock of this process, and write no log."""
    monotonic = time.monotonic
    logging.disable()
    time.monotonic = world.monotonic
    try:
        yield
    finally:
        time.monotonic = monotonic
        logging.disable(logging.NOTSET)
