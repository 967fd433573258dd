"""`sc2pool doctor`: probes, judges, reports.

Rules: stdout holds the report and nothing else; what is going on is told on stderr where somebody
looks on; Ctrl-C and SIGTERM end the games first, then the command.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
from contextlib import suppress
from dataclasses import replace

from sc2pool.cli.doctor.checks import all_checks, judge
from sc2pool.cli.doctor.examine import QUICK, Plan, examine
from sc2pool.cli.doctor.machine import probe_machine
from sc2pool.cli.doctor.measurements import Growth, Memory
from sc2pool.cli.doctor.notes import Notes
from sc2pool.cli.doctor.place import (
    Playable,
    probe_installation,
    probe_maps,
    tasks_by_map,
)
from sc2pool.cli.doctor.report import as_json, as_text, exit_status
from sc2pool.cli.stop import Stopped
from sc2pool.game.installation import Installation

NARROW, WIDE = 72, 120
"""The report's lines are as wide as the terminal, within these bounds."""


def run(args: argparse.Namespace) -> int:
    """Look at everything, and tell.

    Returns:
        The exit status: 0 if sc2pool works with the game, 1 if something has to be mended.
    """
    plan = replace(QUICK if args.quick else Plan(), timeout_s=args.timeout)
    notes = Notes(say if sys.stderr.isatty() else lambda _: None)
    tasks = tasks_by_map()
    checks = all_checks(tasks)

    probe_machine(notes)
    installation = probe_installation(args.game, notes)
    if installation is None:
        reason = "there is no game to look at"
    else:
        playable = probe_maps(installation, tasks, notes)
        reason = asyncio.run(examine_until_signalled(installation, playable, plan, notes))
    notes.rest_unknown((check.name for check in checks), reason)
    note_game_memory(notes)

    findings = judge(checks, notes.measured)
    width = min(max(shutil.get_terminal_size().columns, NARROW), WIDE)
    print(as_json(findings) if args.json else as_text(findings, width))
    return exit_status(findings)


async def examine_until_signalled(
    installation: Installation, playable: Playable | None, plan: Plan, notes: Notes
) -> str:
    """`examine`; SIGTERM ends it as Ctrl-C does, in that the games are closed first."""
    task = asyncio.current_task()
    assert task is not None
    terminated = False

    def terminate() -> None:
        nonlocal terminated
        terminated = True
        task.cancel()

    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):  # Windows
        loop.add_signal_handler(signal.SIGTERM, terminate)
    try:
        return await examine(installation, playable, plan, notes)
    except asyncio.CancelledError:
        if terminated:
            raise Stopped(signal.SIGTERM) from None
        raise


def note_game_memory(notes: Notes) -> None:
    """How much memory there is means something only beside what a game takes."""
    memory, growth = notes.measured["memory"], notes.measured.get("memory growth")
    if isinstance(memory, Memory) and isinstance(growth, Growth):
        notes.put("memory", replace(memory, game_bytes=growth.last_bytes))


def say(name: str) -> None:
    """Shows what is being looked at."""
    print(f"sc2pool doctor: {name} …", file=sys.stderr, flush=True)
