"""`sc2pool doctor`: measures, judges and reports.

    machine, examine, stepping   measure the machine and the game
    full, and its measurements   measure behaviour that the documentation leaves open (`--full`)
    checks                       judge a measurement, and give advice
    findings                     keep one judgement for each check, and write the report

Rules: stdout holds only the report. Progress goes to stderr, if that is a terminal. Ctrl-C and
SIGTERM end the games first, then the command. A missing, broken or hung game is a finding, and ends
the measurements that need it. The report is printed before files are written, which may fail.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from sc2pool.cli.arguments import check_writable
from sc2pool.cli.stop import FULL_DISK, Stopped
from sc2pool.doctor.checks import all_checks, game, machine
from sc2pool.doctor.examine import FULL, QUICK, Plan, examine
from sc2pool.doctor.findings import (
    Finding,
    Findings,
    ProbeFailed,
    as_json,
    as_text,
    exit_status,
)
from sc2pool.doctor.full import settled_by
from sc2pool.doctor.machine import (
    Playable,
    probe_installation,
    probe_machine,
    probe_maps,
    tasks_by_map,
)
from sc2pool.errors import ConfigError
from sc2pool.foreign import printable
from sc2pool.game.program.installation import Installation
from sc2pool.game.program.settled import settle, settled_on
from sc2pool.replacing import replacing
from sc2pool.waiting import run_in_selector_loop

FULL_S = 900.0
"""Time limit of `--full`."""
NARROW, WIDE = 72, 120
"""Bounds of the report's width, which is the terminal's width within them."""


def run(args: argparse.Namespace) -> int:
    """Make all checks and print the report.

    Returns:
        The exit status: 0 if sc2pool works with the game, 1 if something must be fixed.
    """
    plan = QUICK if args.quick else Plan()
    if args.full:
        check_writable(args.out, "--out")
        plan = replace(plan, timeout_s=FULL_S, parts=FULL)
    if args.timeout is not None:
        plan = replace(plan, timeout_s=args.timeout)
    findings = Findings(_say) if sys.stderr.isatty() else Findings()
    tasks = tasks_by_map()

    probe_machine(findings)
    installation = probe_installation(args.game, findings)
    if installation is None:
        reason = "there is no game to look at"
    else:
        playable = probe_maps(installation, tasks, findings)
        reason = run_in_selector_loop(
            _examine_until_signalled(installation, playable, plan, findings)
        )
        _note_room_for_games(findings)
        _note_settled(installation, findings)

    found = findings.in_order(all_checks(tasks, full=args.full), reason)
    width = min(max(shutil.get_terminal_size().columns, NARROW), WIDE)
    text = as_json(found) if args.json else as_text(found, width)
    print(printable(text, None, keep="\n"))
    if args.full and installation is not None:
        _write_report(args.out, installation, found)
    return exit_status(found)


async def _examine_until_signalled(
    installation: Installation, playable: Playable | None, plan: Plan, findings: Findings
) -> str:
    """Call `examine`; at SIGTERM, like at Ctrl-C, close the games before the command ends."""
    task = asyncio.current_task()
    assert task is not None
    terminated = False

    def terminate() -> None:
        nonlocal terminated
        terminated = True
        task.cancel()

    with suppress(NotImplementedError):  # Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminate)
    try:
        return await examine(installation, playable, plan, findings)
    except asyncio.CancelledError:
        if terminated:
            raise Stopped(signal.SIGTERM) from None
        raise


def _note_room_for_games(findings: Findings) -> None:
    """Judge the machine's memory by the measured memory of a game."""
    memory, growth = findings.measured(machine.memory), findings.measured(game.memory_growth)
    if memory is not None and growth is not None and "last_bytes" in growth:
        findings.note(machine.memory, **{**memory, "game_bytes": growth["last_bytes"]})


def _note_settled(installation: Installation, findings: Findings) -> None:
    """Save newly settled facts, and add all settled facts to the report."""
    before = settled_on(installation)
    facts = settled_by(findings, before)
    if facts != before:
        with suppress(ProbeFailed), findings.trying(machine.settled):
            settle(installation, facts)
    if findings.measured(machine.settled) is None:
        findings.note(machine.settled, facts)


def _write_report(folder: Path, installation: Installation, found: list[Finding]) -> None:
    """Write the report as JSON and as text, for an issue, and print the paths.

    Raises:
        ConfigError: the folder may not be written to.
        OSError: the disk is full.
    """
    name = f"doctor-Base{installation.base_build}"
    written = []
    for suffix, content in ((".json", as_json(found)), (".txt", as_text(found, NARROW))):
        path = folder / f"{name}{suffix}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as unfinished:
                unfinished.write_text(content + "\n", encoding="utf-8")
        except OSError as error:
            if error.errno in FULL_DISK:
                raise
            raise ConfigError(f"the report cannot be written to {path}: {error}") from error
        written.append(str(path))
    print(f"sc2pool doctor: the report is in {' and '.join(written)}", file=sys.stderr)


def _say(name: str) -> None:
    print(f"sc2pool doctor: {name} …", file=sys.stderr, flush=True)
