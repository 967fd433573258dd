"""Play for an hour while games and workers are killed, and prove that nothing was lost.

    python scripts/soak.py --minutes 60 --n 8 --fault-every 2 --report soak.json
    python scripts/soak.py --minutes 20 --n 3 --fault-every 2 --matches

It checks every transition at once and at the end every injected fault (`tests.support.audit`, in
`checker` and `ledger`), what is left on the machine, and the growth of the trainer's memory. The
exit code is 1 if anything is wrong; a step that does not end prints a traceback of all threads.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import psutil

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig, RestartPolicy
from tests.support.audit.belongings import Belongings
from tests.support.audit.checker import Checker, Record
from tests.support.audit.injector import Injector
from tests.support.audit.ledger import Ledger
from tests.support.audit.match_task import AuditMatch
from tests.support.audit.measures import bounded, growth_of
from tests.support.audit.playing import first_ready, in_sync
from tests.support.audit.recording import marks_of
from tests.support.audit.task import AuditTask

LIMITS = Limits(launch_s=20.0, create_join_s=10.0, reset_s=10.0, step_s=4.0, worker_grace_s=3.0)
"""Small, so that a hung game is detected within seconds."""
ANY_NUMBER = 1_000_000
SETTLE_S = 90.0
"""How long the detection of the last faults may take, once no more are injected."""
SHOWN_EVERY_S = 30.0
SAMPLE_EVERY_S = 1.0
GROWTH_BYTES = 16_000_000
"""How much the trainer's memory may grow in a run of any length."""
REPORTS_KEPT = 50
VIOLATIONS_KEPT = 100
SHOWN = {
    "game_version",
    "env_steps",
    "episodes",
    "launches",
    "recovery_s",
    "reset_s",
    "watchdog_cpu_s",
}
"""The pool's statistics in the figures."""


class Soak:
    """A run: steps the pool, and checks and counts the results."""

    def __init__(self, options: argparse.Namespace, reports: Path) -> None:
        self.options = options
        self.reports = reports
        self.ledger = Ledger()
        self.rows = 2 if options.matches else 1
        self.checker = Checker(ahead=options.n + options.spares, rows=self.rows)
        self.violations: list[str] = []
        self.violation_count = 0
        self.rss_bytes: list[int] = []
        self.most_reports = 0
        self.env = SubprocSC2VecEnv(
            n=options.n,
            task=AuditMatch if options.matches else AuditTask,
            game=options.game,
            spares=options.spares,
            seed=options.seed if options.seeded else None,
            config=PoolConfig(
                envs_per_worker=options.envs_per_worker,
                limits=LIMITS,
                restart=RestartPolicy(per_env=ANY_NUMBER, per_pool_per_env=ANY_NUMBER),
                watchdog_interval_s=0.5,
                fault_report_dir=reports,
            ),
        )
        self.injector = Injector(
            lambda: self.env.stats().instances,
            self.ledger,
            options.fault_every,
            options.seed,
            self.rows,
        )

    def run(self) -> None:
        """Play until the time is over and every fault was detected."""
        began_s = self.now_s = time.monotonic()
        end_s = began_s + 60.0 * self.options.minutes
        settled_by_s = math.inf
        sample_s = show_s = began_s
        play = first_ready if self.options.first_ready else in_sync
        batches = play(self.env, self.injector.harms)
        self.injector.start()
        while self.now_s < end_s or (not self.settled() and self.now_s < settled_by_s):
            with bounded():
                records = next(batches)
            self.take(records)
            if self.now_s >= end_s and settled_by_s == math.inf:
                self.injector.stop()
                # From now, not from `end_s`: a step with recoveries may last longer.
                settled_by_s = time.monotonic() + SETTLE_S
            if self.now_s >= sample_s:
                sample_s = self.now_s + SAMPLE_EVERY_S
                self.sample()
            if self.now_s >= show_s:
                show_s = self.now_s + SHOWN_EVERY_S
                self.show(self.now_s - began_s)
        self.sample()
        self.show(self.now_s - began_s)

    def settled(self) -> bool:
        """True if every harm was detected and every fault reported."""
        self.ledger.take_events(self.env.stats().events)
        return self.ledger.settled()

    def take(self, records: Sequence[Record]) -> None:
        """Check what was sent and what was received."""
        self.now_s = time.monotonic()
        for record in records:
            self.add_violations(self.checker.check(record))
        self.ledger.take_marks(marks_of(records, self.rows), self.now_s)

    def add_violations(self, violations: Iterable[object]) -> None:
        """Count violations; print and keep the first ones."""
        for violation in violations:
            self.violation_count += 1
            if len(self.violations) < VIOLATIONS_KEPT:
                self.violations.append(str(violation))
                print(f"VIOLATION {violation}", flush=True)

    def sample(self) -> None:
        """Once a second: the pool's events, the trainer's memory, the folder of fault reports."""
        self.ledger.take_events(self.env.stats().events)
        self.rss_bytes.append(psutil.Process().memory_info().rss)
        self.most_reports = max(self.most_reports, sum(1 for _ in self.reports.iterdir()))

    def show(self, elapsed_s: float) -> None:
        """Print a line of progress."""
        stats = self.env.stats()
        took = stats.recovery_s
        print(
            f"{elapsed_s:6.0f} s  {stats.env_steps:9,} steps"
            f"  {stats.episodes:7,} episodes"
            f"  faults {len(self.ledger.injected)} injected,"
            f" {len(self.ledger.events)} seen, {len(self.ledger.reported)} marked"
            f"  recovery {'none' if took is None else f'p50 {took.p50:.2f} p95 {took.p95:.2f} s'}"
            f"  violations {self.violation_count}"
            f"  RSS {self.rss_bytes[-1] / 1e6:,.1f} MB",
            flush=True,
        )

    def figures(self) -> dict[str, Any]:
        """All counts, as plain data."""
        stats, ledger = self.env.stats(), self.ledger
        ledger.take_events(stats.events)
        self.add_violations(self.checker.unanswered() if not self.options.first_ready else ())
        self.add_violations(ledger.reconcile())
        if sum(stats.recycles.values()) != len(ledger.events):
            self.add_violations(
                [f"the pool counts {stats.recycles}, its events {ledger.by('cause')}"]
            )
        first, last, growth = growth_of(self.rss_bytes)
        if growth > GROWTH_BYTES:
            self.add_violations([f"the trainer's memory has grown by {growth / 1e6:,.1f} MB"])
        if self.most_reports > REPORTS_KEPT + 1:  # one is written before the oldest is removed
            self.add_violations([f"{self.most_reports} fault reports were kept"])
        return {
            **{name: value for name, value in stats.as_dict().items() if name in SHOWN},
            "faults_injected": dict(self.injector.done.most_common()),
            "faults_seen": ledger.by("cause"),
            "faults_by_phase": ledger.by("phase"),
            "faults_injected_total": len(ledger.injected),
            "faults_seen_total": len(ledger.events),
            "faults_marked": len(ledger.reported),
            "faults_of_spares": len(ledger.of_spares()),
            "faults_shadowed": len(ledger.shadowed()),
            "synthetic_transitions": self.checker.synthetic,
            "most_reports": self.most_reports,
            "trainer_rss_bytes": {"first": first, "last": last, "growth": growth},
        }


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--n", type=int, default=8)
    parser.add_argument("--spares", type=int, default=2)
    parser.add_argument("--envs-per-worker", type=int, default=1)
    parser.add_argument("--fault-every", type=float, default=2.0, help="seconds, on average")
    parser.add_argument("--matches", action="store_true", help="of two players each")
    parser.add_argument("--seed", type=int, default=0, help="of faults, and of --seeded runs")
    parser.add_argument("--seeded", action="store_true", help="play a seeded run")
    parser.add_argument("--first-ready", action="store_true", help="do not wait for all envs")
    parser.add_argument("--game", default="auto")
    parser.add_argument("--report", type=Path, help="write all figures to this JSON file")
    return parser.parse_args()


def main() -> int:
    """Run the soak and report; 0 if nothing at all is wrong."""
    options = parse()
    logging.disable(logging.WARNING)  # the faults are intended, and counted
    temp = Path(tempfile.mkdtemp(prefix="sc2pool-soak-"))
    os.environ["TMPDIR"] = tempfile.tempdir = str(temp)
    reports = temp / "faults"
    reports.mkdir()
    before = Belongings(temp)
    began_s = time.monotonic()
    try:
        soak = Soak(options, reports)
        try:
            soak.run()
            report = soak.figures()
        finally:
            soak.injector.stop()
            with bounded():
                soak.env.close()
        report["elapsed_s"] = time.monotonic() - began_s
        report["leaks"] = before.what_stays()
        report["violations"] = soak.violation_count + len(report["leaks"])
        report["first_violations"] = list(soak.violations)
    finally:
        shutil.rmtree(temp, ignore_errors=True)
    text = json.dumps({"options": vars(options), **report}, indent=2, default=str)
    print(text)
    if options.report:
        options.report.write_text(text + "\n")
    print("FAILED" if report["violations"] else "passed: nothing lost, nothing left")
    return 1 if report["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
