"""`sc2pool doctor`: measures, judges and reports.

    machine, examine, stepping   measure
    checks                       a measurement → a judgement, with advice
    findings                     one judgement for each check; the report

Rules: stdout holds the report and nothing else; progress goes to stderr, if that is a terminal;
Ctrl-C and SIGTERM end the games first, then the command. A game that is missing, broken or hung
ends the measurements that need it, and is a finding.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
from contextlib import suppress
from dataclasses import replace

from sc2pool.cli.doctor.checks import all_checks, game, machine
from sc2pool.cli.doctor.examine import QUICK, Plan, examine
from sc2pool.cli.doctor.findings import Findings, as_json, as_text, exit_status
from sc2pool.cli.doctor.machine import (
    Playable,
    probe_installation,
    probe_machine,
    probe_maps,
    tasks_by_map,
)
from sc2pool.cli.stop import Stopped
from sc2pool.foreign import printable
from sc2pool.game.program.installation import Installation
from sc2pool.waiting import run_in_selector_loop

NARROW, WIDE = 72, 120
"""The report's lines are as wide as the terminal, within these bounds."""


def run(args: argparse.Namespace) -> int:
    """Make all checks and print the report.

    Returns:
        The exit status: 0 if sc2pool works with the game, 1 if something has to be fixed.
    """
    plan = replace(QUICK if args.quick else Plan(), timeout_s=args.timeout)
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

    found = findings.in_order(all_checks(tasks), reason)
    width = min(max(shutil.get_terminal_size().columns, NARROW), WIDE)
    text = as_json(found) if args.json else as_text(found, width)
    print(printable(text, None, keep="\n"))
    return exit_status(found)


async def _examine_until_signalled(
    installation: Installation, playable: Playable | None, plan: Plan, findings: Findings
) -> str:
    """`examine`; SIGTERM ends it as Ctrl-C does: the games are closed first."""
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
    """Judge the machine's memory by what a game took."""
    memory, growth = findings.measured(machine.memory), findings.measured(game.memory_growth)
    if memory is not None and growth is not None and "last_bytes" in growth:
        findings.note(machine.memory, **{**memory, "game_bytes": growth["last_bytes"]})


def _say(name: str) -> None:
    print(f"sc2pool doctor: {name} …", file=sys.stderr, flush=True)
