"""Tries on a child process what a pool does with a worker: start, wake, measure, stop and end it.

The function probe_worker wakes a child process through a doorbell. The child runs main, answers
through a doorbell, and counts in shared memory. So the report shows whether workers can run on a
system on which sc2pool was not tested.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from contextlib import ExitStack, closing, suppress
from typing import Final

from sc2pool.deadline import Deadline
from sc2pool.doctor import checks
from sc2pool.doctor.findings import Findings, ProbeFailed
from sc2pool.pool.queues import memory
from sc2pool.pool.queues.doorbell import Doorbell, Waiter
from sc2pool.processes.tree import STOPS_WITHIN_S, ProcessTree, process_table
from sc2pool.processes.with_parent import become_follower, start_follower

_STARTS_WITHIN_S: Final = 30.0
_ENDS_WITHIN_S: Final = 10.0
_WATCHED_S: Final = 0.3
_COUNT: Final = struct.Struct("=Q")


def probe_worker(findings: Findings) -> None:
    """Start, stop and kill a child, and record the results."""
    with (
        suppress(ProbeFailed, subprocess.TimeoutExpired),  # the failure is already recorded
        findings.trying(checks.worker),
        ExitStack() as owned,
    ):
        request = owned.enter_context(closing(Doorbell.create()))
        reply = owned.enter_context(closing(Doorbell.create()))
        waiter = owned.enter_context(closing(Waiter.create()))
        waiter.add_doorbell(reply, "reply")
        descriptor = memory.create()
        owned.callback(os.close, descriptor)
        memory.claim(descriptor, _COUNT.size)
        begun_s = time.monotonic()
        doorbells = request.listening, reply.ringing
        follower = start_follower(__name__, doorbells, {}, file=descriptor)
        owned.callback(follower.close)
        owned.callback(follower.process.wait, _ENDS_WITHIN_S)
        owned.callback(follower.process.kill)
        pid = follower.process.pid
        request.ring()
        if not waiter.wait(_STARTS_WITHIN_S):
            raise TimeoutError(f"the child has not rung within {_STARTS_WITHIN_S:g} s")
        started_s = time.monotonic() - begun_s

        def cpu_s() -> float:
            row = process_table(os.getpid()).read().at(pid)
            return 0.0 if row is None else row.cpu_s

        def count() -> int:
            (counted,) = _COUNT.unpack(memory.read(descriptor, _COUNT.size))
            return int(counted)

        used_s, counted = cpu_s(), count()
        time.sleep(_WATCHED_S)
        cpu_seen, counts = cpu_s() > used_s, count() > counted
        tree = ProcessTree(pid)
        tree.stop(Deadline.after(STOPS_WITHIN_S))
        try:
            row = process_table(os.getpid()).read().at(pid)
            stop_seen, counted = row is not None and row.stopped, count()
            time.sleep(_WATCHED_S)
            stands_still = count() == counted
        finally:
            tree.resume()
        killed_s = time.monotonic()
        follower.kill()
        ended_s = None
        with suppress(subprocess.TimeoutExpired):
            follower.process.wait(_ENDS_WITHIN_S)
            ended_s = time.monotonic() - killed_s
        findings.note(checks.worker, started_s, counts, cpu_seen, stop_seen, stands_still, ended_s)


def main() -> None:
    """Run the child: wait for a wake-up, answer it, and count until the child is killed."""
    request, reply, descriptor = become_follower(sys.argv[1:])
    with closing(Waiter.create()) as waiter:
        waiter.add_doorbell(Doorbell.inherited(listening=request), "request")
        waiter.wait(_STARTS_WITHIN_S)
    shared = memory.map_memory(descriptor, _COUNT.size)
    Doorbell.inherited(ringing=reply).ring()
    counted = 0
    while True:
        counted += 1
        shared[:] = _COUNT.pack(counted)


if __name__ == "__main__":
    main()
