"""`examine_game`: makes all checks of the doctor, and returns its findings.

The modules `machine` and `stepping` measure the machine and a stepped game. The constant PARTS
lists the measurements of behaviour that the documentation leaves open (`--full`). The module
`checks` judges measurements. The module `findings` keeps a judgement for each check, and writes the
report. The function settled_by extracts from the findings the facts that later pools use.

The function `examine` launches the games, within a time limit. The first game is stepped, and at
the end asked to exit. The second game plays in real time and is killed; at its launch, the system
has already cached the game's files. The measurements of `--full` are made one after the other, and
each launches its own games.

Rules: a missing, broken or hung game is a finding, and ends only the measurements that depend on
the game. Every launched game is closed, whatever happens. A game is never stopped while a request
is in flight, and is always resumed. Ctrl-C, SIGTERM and SIGHUP first end the games.

Rules of `--full`: each measurement has its own time limit and its own games. So a game that hangs
or crashes is a finding, and costs at most the time limit of its measurement. An unexpected reply is
also a finding, so that the other measurements are still made. Every game is closed after its
measurement. The sum of the limits is far more than a usual examination takes, because few
measurements need all their time.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import Any, Final, NamedTuple

import psutil

from sc2pool.config import Limits
from sc2pool.deadline import Deadline
from sc2pool.doctor import checks, ends, launches, maps, matches, messages, resets, stepping
from sc2pool.doctor import findings as reports
from sc2pool.doctor.checks import BEHAVIOUR, INSTALLATION, MACHINE, TIMES, map_check
from sc2pool.doctor.findings import Check, Finding, Findings, Grade, ProbeFailed
from sc2pool.doctor.lab import Lab, NotPossible
from sc2pool.doctor.machine import (
    Playable,
    probe_installation,
    probe_machine,
    probe_maps,
    tasks_by_map,
)
from sc2pool.doctor.stepping import durations, observe
from sc2pool.errors import FaultKind
from sc2pool.game.game import Game
from sc2pool.game.program.builds import Settled, settle, settled_on
from sc2pool.game.program.installation import Installation
from sc2pool.platform import WINDOWS
from sc2pool.protocol import requests
from sc2pool.waiting import run_in_selector_loop

FULL_S = 900.0
"""Time limit of an examination with `full`, in seconds."""


@dataclass(frozen=True)
class Diagnosis:
    """The doctor's findings, one per check, in order; `base_build` is None if no game was found."""

    findings: Sequence[Finding]
    base_build: int | None

    def works(self) -> bool:
        """True if sc2pool works with this game, False if something must be fixed first."""
        return reports.works(self.findings)

    def as_text(self, width: int) -> str:
        """The report for people; only a long word makes a line longer than `width` characters."""
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
    terminated: Callable[[int], BaseException] = lambda _: KeyboardInterrupt(),
) -> Diagnosis:
    """Check the machine, an installation of the game and running games.

    With `full`, also measure behaviour that the game's documentation leaves open, and save the
    facts that later pools use. With `quick`, make fewer resets and steps.

    Args:
        game_choice: "auto", "real", "standin", or the path of an installation.
        timeout_s: The time limit for examining games; None for 600 s, or 900 s with `full`.
        say: A function that is called with the name of each check that begins.
        terminated: A function that is called with the number of a SIGTERM or SIGHUP. It returns the
            exception to raise after the games are closed.
    """
    plan = QUICK if quick else Plan()
    if full:
        plan = replace(plan, timeout_s=FULL_S, full=True)
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


def all_checks(map_names: Iterable[str], *, full: bool = False) -> list[Check[...]]:
    """All checks in the order of the report, with one check for each of these maps."""
    found = [*INSTALLATION, *map(map_check, map_names), *MACHINE, *TIMES, *BEHAVIOUR]
    if full:
        found += [*ends.ENDS, *resets.RESETS, *matches.MATCHES]
        found += [*launches.LAUNCHES, *maps.MAPS, *messages.MESSAGES]
    return found


async def _examine_until_signalled(
    installation: Installation,
    playable: Playable | None,
    plan: Plan,
    findings: Findings,
    terminated: Callable[[int], BaseException],
) -> str:
    """Call `examine`; a SIGTERM, SIGHUP or Ctrl-C first closes the games, then raises."""
    task = asyncio.current_task()
    assert task is not None
    received: list[int] = []

    def terminate(number: int) -> None:
        received.append(number)
        task.cancel()

    numbers = [signal.SIGTERM]
    # A SIGHUP that is ignored, as in a program started with nohup, stays ignored.
    if not WINDOWS and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    with suppress(NotImplementedError):  # Windows
        for number in numbers:
            asyncio.get_running_loop().add_signal_handler(number, terminate, number)
    try:
        return await examine(installation, playable, plan, findings)
    except asyncio.CancelledError:
        if received:
            raise terminated(received[0]) from None
        raise


def _note_room_for_games(findings: Findings) -> None:
    """Judge the machine's memory again, now that a game's memory is measured."""
    memory, growth = findings.measured(checks.memory), findings.measured(checks.memory_growth)
    if memory and "last_bytes" in growth:
        findings.note(checks.memory, **{**memory, "game_bytes": growth["last_bytes"]})


def _note_settled(installation: Installation, findings: Findings) -> None:
    """Save the facts that these findings prove, and add all facts known so far to the report."""
    before = settled_on(installation)
    facts = settled_by(findings, before)
    if facts != before:
        with suppress(ProbeFailed), findings.trying(checks.settled):
            settle(installation, facts)
    if not findings.measured(checks.settled):
        findings.note(checks.settled, facts)


READY_MARKERS: Final = ("Listening on:", "Startup Phase 3 complete. Ready for commands.")
FIRST_LAUNCH_FACTOR: Final = 2
"""A first launch may take this many times the usual limit, as in a pool."""
AWAITED_LOOPS: Final = 20


@dataclass(frozen=True)
class Plan:
    """How much an examination measures, and for how long."""

    resets: int = 50
    steps: int = 100
    """The number of steps of each episode that is compared."""
    watch_s: float = 2.0
    """How long a real-time game is watched; the game is then stopped for the same time."""
    timeout_s: float = 600.0
    """The time limit of the whole examination."""
    limits: Limits = field(default_factory=Limits)
    full: bool = False
    """Whether to make the additional measurements of `--full`."""


QUICK = Plan(resets=10, steps=40, watch_s=1.0)


async def examine(
    installation: Installation, playable: Playable | None, plan: Plan, findings: Findings
) -> str:
    """Launch games and measure them; without a playable map, measure only the launches.

    Returns the reasons why some checks could not be made.
    """
    reasons = []
    try:
        async with asyncio.timeout(plan.timeout_s):
            for part in (_examine_stepped, _examine_realtime, _examine_fully):
                try:
                    await part(installation, playable, plan, findings)
                except ProbeFailed as failed:
                    reasons.append(f"what it needs failed: see {str(failed)!r}")
                    if str(failed) == checks.launch.name:
                        break  # a second launch would also fail
    except TimeoutError:
        findings.note_timeout(plan.timeout_s)
        reasons.append("the time was up (--timeout)")
    return reasons[0] if reasons else "no map to play was found"


async def _examine_stepped(
    installation: Installation, playable: Playable | None, plan: Plan, findings: Findings
) -> None:
    async with _launched(installation, plan, findings, checks.launch) as game:
        findings.note(checks.version, game.version, game.base_build, installation.base_build)
        findings.note(checks.proven_listener, game.listener_proven)
        log = game.process.log_tail(lines=1000)
        printed = [marker for marker in READY_MARKERS if marker in log]
        missing = [marker for marker in READY_MARKERS if marker not in log]
        findings.note(checks.ready_markers, printed, missing)
        with findings.trying(checks.reply_ids):
            reply = await game.request(requests.ping())
            findings.note(checks.reply_ids, reply.HasField("id"))
        if playable is not None:
            await stepping.probe(game, playable, plan.steps, plan.resets, findings)


async def _examine_realtime(
    installation: Installation, playable: Playable | None, plan: Plan, findings: Findings
) -> None:
    async with _launched(installation, plan, findings, checks.launch_again) as game:
        try:
            if playable is not None:
                await _probe_realtime(game, playable, plan.watch_s, findings)
        finally:
            begun_s = time.monotonic()
            game.close()
            took_s = time.monotonic() - begun_s
            findings.note(checks.kill, took_s, gone=not psutil.pid_exists(game.pid))


async def _examine_fully(
    installation: Installation, playable: Playable | None, plan: Plan, findings: Findings
) -> None:
    if plan.full:
        await measure(Lab(installation, playable, findings), {part.name for part in PARTS})


@asynccontextmanager
async def _launched(
    installation: Installation,
    plan: Plan,
    findings: Findings,
    check: Check[[int, float, float, float, float]],
) -> AsyncIterator[Game]:
    """Launch a game, record how long that took, and close the game after the block."""
    begun_s = time.monotonic()
    with findings.trying(check):
        # The deadline of a launch gives a more exact fault than the time limit of the examination.
        limit_s = min(plan.limits.launch_s * FIRST_LAUNCH_FACTOR, 0.9 * plan.timeout_s)
        game = await Game.launch(installation, plan.limits, deadline=Deadline.after(limit_s))
        findings.note(check, *durations([time.monotonic() - begun_s]))
    with closing(game):
        yield game


async def _probe_realtime(
    game: Game, playable: Playable, watch_s: float, findings: Findings
) -> None:
    """Begin an episode in real time, watch the game, and stop it for a while."""
    setup, map_path = playable
    with findings.trying(checks.real_time):
        await game.start_episode(replace(setup, realtime=True), map_path, None)
        begin, begin_s = await _loop(game), time.monotonic()
        await asyncio.sleep(watch_s)
        loops, took_s = await _loop(game) - begin, time.monotonic() - begin_s
        findings.note(checks.real_time, loops, took_s)
    with findings.trying(checks.awaited_loop):
        now, now_s = await _loop(game), time.monotonic()
        asked = now + AWAITED_LOOPS
        got = await _loop(game, asked)
        findings.note(checks.awaited_loop, now, asked, got, time.monotonic() - now_s)
    if loops <= 0:
        findings.note_unknown(checks.stop_and_go_on, "the game does not move by itself")
        return
    with findings.trying(checks.stop_and_go_on):
        seen = await ends.stop_and_watch(partial(_loop, game), [game.pid], watch_s, watch_s)
        findings.note(checks.stop_and_go_on, *seen, loops_per_s=loops / took_s)


async def _loop(game: Game, game_loop: int | None = None) -> int:
    """The loop of the game's current state; if `game_loop` is given, wait for that loop."""
    return (await observe(game, game_loop)).observation.game_loop


# ---- the measurements of `--full` ---------------------------------------------------------------


class Part(NamedTuple):
    """One measurement of `--full`."""

    checks: tuple[Check[...], ...]
    measure: Callable[[Lab], Awaitable[None]]
    limit_s: float
    needs: Callable[[Lab], object] = lambda _: None
    """A function that raises `NotPossible` if a map for the measurement is missing."""

    @property
    def name(self) -> str:
        """The name that selects this measurement; the names of its checks begin with this name."""
        return self.checks[0].name.split()[0]


PARTS: Final = (
    Part((resets.restart_restores,), resets.measure_restores, 120.0, Lab.mining),
    Part((ends.awaited_end,), ends.measure_awaited_ends, 240.0, Lab.mini),
    Part((ends.polled_end,), ends.measure_polled_ends, 60.0, Lab.mini),
    Part((ends.match_end, ends.match_results), ends.measure_match_ends, 120.0, Lab.melee),
    Part((ends.stepped_end,), ends.measure_stepped_ends, 60.0, Lab.mini),
    Part((matches.match_bursts,), matches.measure_match_bursts, 90.0, Lab.melee),
    Part((ends.stops,), ends.measure_stops, 30.0, Lab.mini),
    Part((ends.match_stops,), ends.measure_match_stops, 30.0, Lab.melee),
    Part((resets.computer_restarts,), resets.measure_computers, 90.0, Lab.melee),
    Part((resets.random_race,), resets.measure_random_race, 90.0, Lab.melee),
    Part((resets.many_resets,), resets.measure_many_resets, 45.0, Lab.mini),
    Part((launches.closed_socket,), launches.measure_closed_sockets, 75.0, Lab.mini),
    Part((launches.ends,), launches.measure_ends, 90.0, Lab.mini),
    Part((launches.launches_at_once,), launches.measure_launches, 90.0, Lab.mini),
    Part((matches.matches_in_a_row,), matches.measure_matches_in_a_row, 40.0, Lab.melee),
    Part((matches.lost_side,), matches.measure_lost_sides, 90.0, Lab.melee),
    Part((matches.idle,), matches.measure_idle, 60.0, Lab.melee),
    Part((matches.taken_ports,), matches.measure_ports, 60.0, Lab.melee),
    Part((matches.second_client,), matches.measure_second_client, 30.0, Lab.mini),
    Part((messages.action_delay,), messages.measure_action_delays, 60.0, Lab.mini),
    Part((maps.debug_units,), maps.measure_debug_units, 30.0, Lab.mini),
    Part((maps.waves,), maps.measure_waves, 45.0),
    Part((maps.installed_maps,), maps.measure_installed_maps, 75.0),
    Part((maps.odd_maps,), maps.measure_odd_maps, 60.0, Lab.mini),
    Part((messages.replays,), messages.measure_replays, 60.0, Lab.mini),
    Part((launches.speed,), launches.measure_speed, 60.0, Lab.mining),
    Part((resets.limits,), resets.measure_limits, 60.0, Lab.mining),
    Part((ends.first_loop,), ends.measure_first_loops, 60.0, Lab.mini),
    Part((messages.ids,), messages.measure_ids, 30.0),
    Part((messages.warnings,), messages.measure_warnings, 60.0, Lab.mini),
)
"""All measurements, in the order of their importance for pools."""


async def measure(lab: Lab, names: Collection[str]) -> None:
    """Make the measurements that have these names."""
    try:
        for part in PARTS:
            if part.name in names:
                await _carry_out(part, lab)
    finally:
        lab.close_games()
        shutil.rmtree(lab.folder, ignore_errors=True)


async def _carry_out(part: Part, lab: Lab) -> None:
    findings, first = lab.findings, part.checks[0]
    lab.deadline = Deadline.after(part.limit_s)
    reason = f"it was not measured: see {first.name!r}"
    try:
        async with asyncio.timeout(part.limit_s):
            with findings.trying(first):
                part.needs(lab)
                await part.measure(lab)
    except NotPossible as missing:
        reason = str(missing)
    except ProbeFailed:
        pass  # the failure is recorded already
    except TimeoutError:
        detail = f"not done within its limit of {part.limit_s:g} s"
        findings.note_failure(first, detail, FaultKind.DEADLINE)
    except Exception as error:  # a game may send any reply; see this module's rules
        where = traceback.extract_tb(error.__traceback__)[-1]
        detail = f"the measurement failed with {error!r} in {where.name}, line {where.lineno}"
        findings.note_failure(first, detail)
    finally:
        lab.close_games()
    for check in part.checks:
        if not findings.measured(check):
            findings.note_unknown(check, reason)


_WITH_CHANCE: Final = (resets.computer_restarts, resets.random_race)
"""The checks of restarts in games with a computer or a random race."""


def settled_by(findings: Findings, before: Settled) -> Settled:
    """The facts that the findings prove; facts that were not measured are as in `before`."""
    facts: dict[str, Any] = {}
    restores = findings.measured(resets.restart_restores)
    # Restarts may fail to restore exhausted fields, so a test without such a field proves nothing.
    if restores.get("differences") or restores.get("exhausted"):
        facts["restart_faithful"] = not restores["differences"]
    games = [
        findings.grade(check) is Grade.OK
        for check in _WITH_CHANCE
        if "beginnings" in findings.measured(check)
    ]
    if False in games or len(games) == len(_WITH_CHANCE):
        facts["restart_with_computer"] = all(games)
    bursts = findings.measured(matches.match_bursts)
    if not bursts.get("undetermined", True):
        facts["bursts_in_matches"] = not bursts["difference"]
    if ended := findings.measured(ends.awaited_end).get("samples"):
        facts["silent_end"] = any(sample["after_s"] is None for sample in ended)
    stops = [
        stop
        for check in (ends.stops, ends.match_stops)
        for stop in findings.measured(check).get("measured", ())
    ]
    if stops:
        facts["after_stop"] = ends.after_stop(stops)
    return replace(before, **facts, measured=date.today().isoformat()) if facts else before
