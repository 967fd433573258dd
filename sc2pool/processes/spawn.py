"""Starts workers, all from one thread that lives as long as the trainer.

Why a thread: the parent-death signal that a worker asks for follows the *thread* that spawned it
(prctl(2)), so one spawned from a short-lived thread would get it when that thread ends, and none
when the trainer does. And Ctrl-C strikes the main thread, so never in the midst of a spawn. Each
worker leads a process group: what the terminal sends reaches only the trainer, and one signal to
the group ends the worker, its game, and all else that it has started.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Order:
    """A worker to be started, and where to put the result."""

    descriptors: tuple[int, ...]
    temp_dir: Path
    result: Future[subprocess.Popen[bytes]]


class Spawner:
    """The spawning thread; one a process, started when first needed."""

    def __init__(self) -> None:
        self._orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="sc2pool-spawner", daemon=True).start()

    def spawn(self, descriptors: tuple[int, ...], temp_dir: Path) -> subprocess.Popen[bytes]:
        """Start `python -m sc2pool.pool.worker.worker`.

        Args:
            descriptors: what it inherits, in the order of its command line.
            temp_dir: the folder for its temporary files and its game's.
        """
        order = Order(descriptors, temp_dir, Future())
        self._orders.put(order)
        try:
            return order.result.result()
        except BaseException:
            # After a Ctrl-C in this wait nobody would hold the worker that is being started.
            order.result.add_done_callback(_end)
            raise

    def _run(self) -> None:
        while True:
            order = self._orders.get()
            try:
                order.result.set_result(_start(order.descriptors, order.temp_dir))
            except BaseException as error:
                order.result.set_exception(error)


def _end(result: Future[subprocess.Popen[bytes]]) -> None:
    if result.exception() is None:
        process = result.result()
        process.kill()
        process.wait()


def _start(descriptors: tuple[int, ...], temp_dir: Path) -> subprocess.Popen[bytes]:
    package_root = str(Path(__file__).resolve().parents[2])
    search_path = os.pathsep.join(filter(None, [package_root, os.environ.get("PYTHONPATH")]))
    arguments = [str(os.getpid()), *map(str, descriptors)]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "sc2pool.pool.worker.worker", *arguments],
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        # Not a session of its own: Linux would make it a scheduling group of its own too, and a
        # wake-up from one such group to another waits its turn. On two cores that took two thirds
        # of all steps.
        process_group=0,
        env={**os.environ, "PYTHONPATH": search_path, "TMPDIR": str(temp_dir)},
    )


_spawner: tuple[int, Spawner] | None = None


def spawner() -> Spawner:
    """This process's spawner; a forked child gets one of its own."""
    global _spawner  # noqa: PLW0603 - one thread a process is the point
    if _spawner is None or _spawner[0] != os.getpid():
        _spawner = (os.getpid(), Spawner())
    return _spawner[1]
