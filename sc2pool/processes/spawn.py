"""Starts child Pythons; those of a pool all from one thread that lives as long as the trainer.

Why a thread: the parent-death signal of a worker follows the *thread* that spawned it (prctl(2)).
A worker spawned from a short-lived thread would be killed at the end of that thread, and not at
the end of the trainer. A thread of our own also keeps Ctrl-C, which interrupts the main thread,
out of the middle of a spawn.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path

from sc2pool.processes.with_parent import kill_group_at_end_of

Child = subprocess.Popen[bytes]


def start_python(
    module: str,
    *arguments: str,
    descriptors: tuple[int, ...] = (),
    environment: Mapping[str, str] | None = None,
    own_session: bool = False,
    stdin: int = subprocess.DEVNULL,
) -> Child:
    """Start `python -m module` with this package on its path.

    The child leads a process group, so the terminal's Ctrl-C reaches only this program, and one
    signal to the group ends the child with all that it has started.

    Args:
        module: to run.
        arguments: its command line.
        descriptors: what it inherits, under the same numbers.
        environment: added to this process's own.
        own_session: whether it leads a session, too. Linux shares CPU time among sessions first
            (autogroup, sched(7)). For a worker that costs most of the speed: a wake-up from one
            session to another waits its turn (on two cores, two thirds of all steps). For the
            update process it is the gain: in the trainer's session it would get one share of the
            CPU beside two for every game, while all games wait for it.
        stdin: as for `subprocess.Popen`.
    """
    package_root = str(Path(__file__).resolve().parents[2])
    search_path = os.pathsep.join(filter(None, [package_root, os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        pass_fds=descriptors,
        stdin=stdin,
        start_new_session=own_session,
        process_group=None if own_session else 0,
        env={**os.environ, "PYTHONPATH": search_path, **(environment or {})},
    )


class Spawner:
    """The spawning thread; one per process, started by the first `spawn`."""

    def __init__(self) -> None:
        self._orders: queue.SimpleQueue[tuple[Callable[[], Child], Future[Child]]]
        self._orders = queue.SimpleQueue()
        threading.Thread(target=self._run, name="sc2pool-spawner", daemon=True).start()

    def spawn(
        self, module: str, descriptors: tuple[int, ...], temp_dir: Path, lifeline: int
    ) -> Child:
        """Start a worker: `python -m module PARENT_PID DESCRIPTOR …`.

        Args:
            module: to run.
            descriptors: what it inherits, in the order of its command line.
            temp_dir: the folder for its temporary files and its game's.
            lifeline: one of the descriptors; see `with_parent`.
        """
        arguments = [str(os.getpid()), *map(str, descriptors)]
        environment = {"TMPDIR": str(temp_dir)}

        def start() -> Child:
            child = start_python(
                module, *arguments, descriptors=descriptors, environment=environment
            )
            kill_group_at_end_of(lifeline, child.pid)
            return child

        result: Future[Child] = Future()
        self._orders.put((start, result))
        try:
            return result.result()
        except BaseException:
            # After a Ctrl-C in this wait no caller would hold the worker that is being started.
            result.add_done_callback(_end)
            raise

    def _run(self) -> None:
        while True:
            start, result = self._orders.get()
            try:
                result.set_result(start())
            except BaseException as error:
                result.set_exception(error)


def _end(result: Future[Child]) -> None:
    if result.exception() is None:
        process = result.result()
        process.kill()
        process.wait()


_spawner: tuple[int, Spawner] | None = None


def spawner() -> Spawner:
    """This process's spawner; a forked child gets one of its own."""
    global _spawner  # noqa: PLW0603 - one thread per process is the point
    if _spawner is None or _spawner[0] != os.getpid():
        _spawner = (os.getpid(), Spawner())
    return _spawner[1]
