"""A pool under attack: every call of its env has a time limit, and its result is checked.

Attacks act on the env while the arena opens, resets, steps and closes it, and the arena lists the
problems. The attacks so far decide which consequences are allowed (`May`): none, a marked
truncation, or an error of the package's own types after which no process lives. Any other
consequence is a problem. After an interrupt the next reset must work, or report a closed pool.
Attacks act in threads of their own, so that they do their harm while a call of the env runs.
"""

from __future__ import annotations

import gc
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import gymnasium.error
import psutil

from chaos.adapters import ADAPTERS, Adapter, Setting
from sc2pool.config import Limits, PoolConfig, RecyclePolicy, RestartPolicy
from sc2pool.errors import ClosedError, PauseError, SC2PoolError
from tests.support.audit.belongings import GONE_WITHIN_S
from tests.support.audit.checker import Checker, Received, Record
from tests.support.audit.faulty import Faulty
from tests.support.audit.ledger import Ledger
from tests.support.audit.measures import bounded
from tests.support.audit.recording import marks_of
from tests.support.audit.victims import pid_of

if TYPE_CHECKING:
    from chaos.nodes import Cluster

ANY_NUMBER = 1_000_000
LIMITS = Limits(
    worker_start_s=40.0,
    launch_s=15.0,
    create_join_s=15.0,
    reset_s=15.0,
    step_s=4.0,
    worker_grace_s=3.0,
)
"""Short limits, which detect hung games within seconds, but suffice on a busy machine."""
HARD_MEMORY_BYTES = 400_000_000
REOPENED_WITHIN_S = 60.0
"""How long an attack on resources may prevent a new pool from being made."""
SETTLED_WITHIN_S = 120.0
"""How long the report of a fault may take; during this time, ready envs are stepped."""
CLOSED = (ClosedError, gymnasium.error.ClosedEnvironmentError)
TYPED = (SC2PoolError, *CLOSED)
REFUSED = (*TYPED, gymnasium.error.AlreadyPendingCallError, gymnasium.error.ResetNeeded)
"""The errors that a step after an interrupt may raise."""


class May(IntEnum):
    """The consequences that an attack may have; a higher value allows the lower values, too."""

    NOTHING = 0
    TRUNCATION = 1
    """A marked truncation, or a fault marked in a reset."""
    ENDED = 2
    """An error of the package's own types, after which no process lives."""


class UnplayableError(Exception):
    """No pool can be made within `REOPENED_WITHIN_S`."""


class Arena:
    """One adapter of a round.

    Attributes:
        adapter: the env under attack, or None before it is made and after it has ended.
        games: the installation whose games do harm on order.
        cluster: the nodes that play the games, or None to play on this machine without Ray.
        may: the consequences that the attacks so far may have.
        problems: descriptions of everything that is wrong.
        transitions: the number of checked transitions.
        counts: the number of each other event.
        helpers: process ids of the attacks' own processes, which the pool need not end.
        took_s: how long each call of the env took last, for attacks that act during a call.
    """

    def __init__(  # noqa: PLR0917
        self,
        name: str,
        n: int,
        spares: int,
        games: Faulty,
        reports: Path,
        cluster: Cluster | None = None,
    ) -> None:
        self.kind = ADAPTERS[name]
        self.cluster = cluster
        n = 1 if self.kind.one else n
        self.games = games
        self._setting = Setting(
            n=n,
            spares=spares if self.kind.games and not self.kind.one else 0,
            game=games.installation,
            config=PoolConfig(
                limits=LIMITS,
                restart=RestartPolicy(per_env=ANY_NUMBER, per_pool_per_env=ANY_NUMBER),
                recycle=RecyclePolicy(hard_memory_bytes=HARD_MEMORY_BYTES),
                watchdog_interval_s=0.5,
                fault_report_dir=reports,
            ),
        )
        self.adapter: Adapter | None = None
        self.may = May.NOTHING
        self.problems: list[str] = []
        self.transitions = 0
        self.counts: Counter[str] = Counter()
        self.helpers: set[int] = set()
        self.took_s: dict[str, float] = {}
        self._threads: list[threading.Thread] = []
        self._new_books()

    def _new_books(self) -> None:
        ahead = self._setting.n + self._setting.spares
        self._checker = Checker(
            ahead,
            book=self.kind.games and not self.kind.on_nodes,
            realtime=self.kind.realtime,
            rows=self.kind.rows,
            agents=self.kind.agents,
        )
        self._ledger = Ledger()
        self._interrupted = False

    # The methods below make a trainer's calls of the env.

    def open(self) -> None:
        """Make the env and reset it; retry until both succeed.

        Raises:
            UnplayableError: All attempts within `REOPENED_WITHIN_S` failed.
        """
        give_up_s = time.monotonic() + REOPENED_WITHIN_S
        while self.adapter is None:
            if time.monotonic() > give_up_s:
                self.problems.append("no pool can be made any more")
                raise UnplayableError
            self.construct()
            if self.adapter is None:
                time.sleep(0.2)
            else:
                self.reset()

    def construct(self) -> None:
        """Try to make the env."""
        self._new_books()
        try:
            with bounded():
                self.adapter = self.kind.make(self._setting)
        except Exception as error:
            self._judge("the construction", error)

    def reset(self) -> None:
        """Reset the env; if it has ended, make a new one."""
        self._call("reset")

    def step(self) -> None:
        """Step the env; if it has ended, make a new one."""
        self._call("step")

    def close(self) -> None:
        """Close the env, and compare its fault events with the marks in its transitions."""
        adapter, self.adapter = self.adapter, None
        if adapter is None:
            return
        try:
            self._take_events(adapter)
            self.problems += self._ledger.misreported()
        finally:
            with bounded():
                adapter.env.close()

    def aside(self, what: str, call: Callable[[], object]) -> None:
        """Make a call other than a step; a refused pause is counted, but is not a problem."""
        try:
            with bounded():
                call()
        except PauseError:
            self.counts["pauses refused"] += 1
        except Exception as error:
            self._judge(f"the {what}", error)

    def wait_for_attacks(self) -> None:
        """Wait for attacks that still act."""
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def settle(self) -> None:
        """Wait for attacks that still act, and play until every fault is reported."""
        self.wait_for_attacks()
        deadline_s = time.monotonic() + SETTLED_WITHIN_S
        while time.monotonic() < deadline_s:
            self.step()
            if self.adapter is not None:
                self._take_events(self.adapter)
            if self._interrupted or not self._ledger.unreported():
                return  # after an interrupt some faults are never reported
        self.problems += [
            f"the fault of instance {number} is not reported: {self._ledger.events[number]}"
            for number in self._ledger.unreported()
        ]

    def interrupt(self, rng: Random, what: str, call: Callable[[], Any]) -> None:
        """Make a call of the env that is being interrupted, and let the env recover.

        Args:
            rng: draws whether the env is stepped before it is reset.
            what: the name of the call, for counting.
            call: the call, which raises KeyboardInterrupt unless it ends before the interrupt.
        """
        try:
            call()
        except KeyboardInterrupt:
            self.counts["interrupts"] += 1
            self.counts[f"interrupts: {what}"] += 1
        else:
            return
        self._interrupted = True
        self._checker.interrupted(2 * (self._setting.n + self._setting.spares))
        adapter = self.adapter
        if adapter is None:
            return
        if rng.random() < 0.3:
            with bounded():
                self._refused(adapter)
        try:
            with bounded():
                records = adapter.reset()
        except CLOSED as error:
            if not adapter.pool.closed and self.may < May.ENDED:
                self.problems.append(f"after an interrupt reset() says {error!r}")
            self.counts["closed by interrupts"] += 1
            self.close()
        except Exception as error:
            self._judge("the reset after an interrupt", error)
        else:
            self._take(records)

    def _refused(self, adapter: Adapter) -> None:
        try:
            adapter.step()
        except REFUSED:
            self.counts["steps refused"] += 1
        except Exception:
            self.problems.append(f"a step after an interrupt: {traceback.format_exc()}")

    def _call(self, what: str) -> None:
        if self.adapter is None:
            self.open()
            return
        try:
            with bounded():
                records = getattr(self.adapter, what)()
        except Exception as error:
            self._judge(f"the {what}", error)
        else:
            self._take(records)

    def _take(self, records: Sequence[Record]) -> None:
        for record in records:
            self.problems += map(str, self._checker.check(record))
            if isinstance(record, Received):
                self.transitions += 1
                self.counts["synthetic"] += record.synthetic
                if record.synthetic and self.may < May.TRUNCATION:
                    self.problems.append(f"nothing may follow, but {record.mark} is a truncation")
        if not self.kind.on_nodes:
            self._ledger.take_marks(marks_of(records, self.kind.rows), time.monotonic())

    def _take_events(self, adapter: Adapter) -> None:
        if self.kind.on_nodes:
            return  # the unreported events of an actor are lost when it dies
        with suppress(OSError):  # the system may have no free descriptor
            self._ledger.take_events(adapter.pool.stats().events)

    def _judge(self, what: str, error: Exception) -> None:
        """Record a problem if the error that ended the env is not allowed."""
        text = "".join(traceback.format_exception(error))
        self._interrupted = True  # perhaps the env has not reported all its faults
        if not isinstance(error, TYPED):
            self.problems.append(f"{what} raised {error!r}, which is no error of sc2pool:\n{text}")
        elif self.may < May.ENDED:
            self.problems.append(f"{what} raised {error!r}, which no attack allows:\n{text}")
        else:
            self.counts[f"ended with {type(error).__name__}"] += 1
            self.problems += [
                f"{what} raised {error!r}, but {process} lives" for process in self.alive()
            ]
        with suppress(Exception):
            self.close()

    def alive(self) -> list[psutil.Process]:
        """The pool's processes that still live after a few seconds."""
        if self.cluster is not None:
            return self.cluster.living()
        deadline_s = time.monotonic() + GONE_WITHIN_S
        while True:
            gc.collect()
            living = []
            with suppress(psutil.Error):  # the process may have just ended
                for child in psutil.Process().children():
                    if child.pid not in self.helpers:
                        living += [child, *child.children(recursive=True)]
            if not living or time.monotonic() > deadline_s:
                return living
            time.sleep(0.02)

    # The attacks call the methods below.

    def pid(self, which: float, target: str) -> int | None:
        """The pid of an instance's process, or None if there is no such process now.

        Args:
            which: a number from 0 to 1 that chooses the instance.
            target: the process of the instance, as in `pid_of`.
        """
        adapter = self.adapter
        instances = () if adapter is None else adapter.pool.stats().instances
        if not instances:
            return None
        return pid_of(instances[int(which * len(instances))], target, self.kind.players)

    def beside(self, delay_s: float, act: Callable[..., object], *arguments: Any) -> None:
        """Call `act` in a new thread after a delay; ignore errors if the target has ended."""

        def run() -> None:
            time.sleep(delay_s)
            with suppress(psutil.Error, OSError):
                act(*arguments)

        thread = threading.Thread(target=run, name=act.__name__, daemon=True)
        with suppress(RuntimeError):  # no thread starts at the limit of processes and threads
            thread.start()
            self._threads.append(thread)

    def report(self, problems: Iterable[str]) -> None:
        """Add problems that an attack has found."""
        self.problems += problems
