"""The report of a run: its progress, and the tests that were slow or passed only the second time.

A test's CPU time is that of the test's process and its ended children, and includes the fixtures; a
busy machine does not change it. pytest-xdist's controller gets the time with the test's report.
"""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from tests.tiers import tier_of

SHOWN_EVERY_S = 15.0
SLOWEST = 20
FAST_CPU_S = 5.0
"""If a test of the fast tier takes longer than this, make it faster, or move it to another tier."""
COST = "sc2pool_cost"


def cpu_s() -> float:
    """The CPU time so far of this process and its children that have ended, in seconds."""
    return sum(os.times()[:4])


class Meter:
    """Measures each test in the process that runs it."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self._cpu_s, self._began_s = cpu_s(), time.monotonic()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Any:
        report = yield
        if call.when == "teardown":
            cost = (time.monotonic() - self._began_s, cpu_s() - self._cpu_s)
            report.user_properties.append((COST, cost))
        return report


class Reporter:
    """Shows lines of progress instead of a dot for each test, and a summary.

    Args:
        config: The pytest config in the process that the user has started.
        second_run: True if this run repeats the tests that failed.
    """

    def __init__(self, config: pytest.Config, second_run: bool) -> None:
        self._config = config
        self._second_run = second_run
        self._collected = self._ended = self._failed = 0
        self._began_s = self._shown_s = time.monotonic()
        self._costs: list[tuple[float, float, str]] = []
        self._passed: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._collected = len(session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._collected = len(ids)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Any:
        category, _, word = yield
        return category, "", word

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed += 1
            self._writer().write_line(f"FAILED {report.nodeid} ({report.when}): {_reason(report)}")
        if report.when == "call" and report.passed:
            self._passed.append(report.nodeid)
        if report.when != "teardown":
            return
        self._ended += 1
        self._costs += [
            (*cost, report.nodeid) for name, cost in report.user_properties if name == COST
        ]
        now_s = time.monotonic()
        if now_s - self._shown_s >= SHOWN_EVERY_S or self._ended == self._collected:
            self._shown_s = now_s
            minutes, seconds = divmod(int(now_s - self._began_s), 60)
            self._writer().write_line(
                f"{minutes:3}:{seconds:02}  {self._ended:,} of {self._collected:,} tests, "
                f"{self._failed} failed; {report.nodeid.partition('::')[0]}"
            )

    def pytest_terminal_summary(self) -> None:
        writer = self._writer()
        if not self._costs:
            return
        if self._second_run and self._passed:
            writer.section("passed only the second time: to be mended")
            writer.write_line("\n".join(self._passed))
            return
        writer.section(f"slowest {SLOWEST} tests, with fixtures: seconds, CPU seconds")
        for wall_s, used_s, nodeid in sorted(self._costs, reverse=True)[:SLOWEST]:
            writer.write_line(f"{wall_s:7.1f} {used_s:7.1f}  {nodeid}")
        heavy = [
            f"{used_s:7.1f}  {nodeid}"
            for _, used_s, nodeid in sorted(self._costs, key=lambda cost: -cost[1])
            if used_s > FAST_CPU_S and tier_of(nodeid) == "fast"
        ]
        if heavy:
            writer.section(f"of the fast tier, but more than {FAST_CPU_S:.0f} s of CPU time")
            writer.write_line("\n".join(heavy))

    def _writer(self) -> Any:
        return self._config.pluginmanager.get_plugin("terminalreporter")


def _reason(report: pytest.TestReport) -> str:
    """The first line of a test's error; pytest prints the whole error when the run ends."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longrepr).partition("\n")[0]
