"""`examine_game`: makes all checks of the doctor, and returns the report.

    machine, examine, stepping   measure the machine and the game
    full, and its measurements   measure behaviour that the documentation leaves open
    checks                       judge a measurement, and give advice
    findings                     keep one judgement for each check, and write the report

Rules: a missing, broken or hung game is a finding, and ends the measurements that need it. Ctrl-C
and SIGTERM end the games before anything else.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from sc2pool.doctor import findings as reports
from sc2pool.doctor.checks import all_checks, game, machine
from sc2pool.doctor.examine import FULL, QUICK, Plan, examine
from sc2pool.doctor.findings import Finding, Findings, ProbeFailed
from sc2pool.doctor.full import settled_by
from sc2pool.doctor.machine import (
    Playable,
    probe_installation,
    probe_machine,
    probe_maps,
    tasks_by_map,
)
from sc2pool.game.program.builds import settle, settled_on
from sc2pool.game.program.installation import Installation
from sc2pool.waiting import run_in_selector_loop

FULL_S = 900.0
"""Time limit of the measurements with `full`."""


@dataclass(frozen=True)
class Diagnosis:
    """The doctor's report.

    Attributes:
        findings: one for each check, in the order of the report.
        base_build: the build of the game; None if no game was found.
    """

    findings: Sequence[Finding]
    base_build: int | None

    def works(self) -> bool:
        """True if sc2pool works with this game, False if something must be fixed first."""
        return reports.exit_status(self.findings) == 0

    def as_text(self, width: int) -> str:
        """The report for people, in lines of at most `width` characters except for long words."""
        return reports.as_text(self.findings, width)

    def as_json(self) -> str:
        """The report for programs, with all measurements."""
        return reports.as_json(self.findings)


def examine_game(
    game_choice: str = "auto",
    *,
    quick: bool = False,
    full: bool = False,
    timeout_s: float | None = None,
    say: Callable[[str], None] = lambda _: None,
    terminated: BaseException | None = None,
) -> Diagnosis:
    """Check the machine, an installation of the game and running games.

    With `full`, facts that later pools use are saved.

    Args:
        game_choice: "auto", "real", "standin" or the path of an installation.
        quick: whether to make fewer resets and steps.
        full: whether to measure behaviour that the game's documentation leaves open, too.
        timeout_s: the time limit for examining the games; None for 600 s, with `full` 900 s.
        say: called with the name of each check when it begins.
        terminated: raised after SIGTERM, when the games are closed; None for `KeyboardInterrupt`.
    """
    plan = QUICK if quick else Plan()
    if full:
        plan = replace(plan, timeout_s=FULL_S, parts=FULL)
    if timeout_s is not None:
        plan = replace(plan, timeout_s=timeout_s)
    findings, tasks = Findings(say), tasks_by_map()
    probe_machine(findings)
    installation = probe_installation(game_choice, findings)
    if installation is None:
        reason = "there is no game to look at"
    else:
        playable = probe_maps(installation, tasks, findings)
        reason = run_in_selector_loop(
            _examine_until_signalled(installation, playable, plan, findings, terminated)
        )
        _note_room_for_games(findings)
        _note_settled(installation, findings)
    found = findings.in_order(all_checks(tasks, full=full), reason)
    return Diagnosis(found, None if installation is None else installation.base_build)


async def _examine_until_signalled(
    installation: Installation,
    playable: Playable | None,
    plan: Plan,
    findings: Findings,
    terminated: BaseException | None,
) -> str:
    """Call `examine`; at SIGTERM, like at Ctrl-C, close the games first, then raise."""
    task = asyncio.current_task()
    assert task is not None
    signalled = False

    def terminate() -> None:
        nonlocal signalled
        signalled = True
        task.cancel()

    with suppress(NotImplementedError):  # Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminate)
    try:
        return await examine(installation, playable, plan, findings)
    except asyncio.CancelledError:
        if signalled:
            raise terminated or KeyboardInterrupt from None
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
