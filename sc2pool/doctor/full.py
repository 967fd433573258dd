"""`sc2pool doctor --full`: the table of measurements, carried out one after the other.

    PARTS ── measure ──► findings ── settled_by ──► facts that later pools rely on

Rules: each measurement has its own limit and its own games. So a game that hangs or crashes costs
only that limit, and is a finding. An unexpected reply is also a finding, so that the other
measurements are still made. Every game is closed after its measurement. The sum of the limits is
longer than the usual duration, because hardly any game hangs in every measurement.
"""

from __future__ import annotations

import asyncio
import shutil
import traceback
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from datetime import date
from typing import Any, Final, NamedTuple

import psutil

from sc2pool.deadline import Deadline
from sc2pool.doctor import ends, launches, maps, matches, messages, resets
from sc2pool.doctor.findings import Check, Findings, Grade
from sc2pool.doctor.lab import Lab, NotPossible
from sc2pool.errors import FaultKind, GameFault, SC2PoolError
from sc2pool.game.program.builds import Settled


class Part(NamedTuple):
    """One measurement."""

    checks: tuple[Check[...], ...]
    measure: Callable[[Lab], Awaitable[None]]
    limit_s: float
    needs: Callable[[Lab], object] = lambda _: None
    """Raises `NotPossible` if a map for the measurement is missing."""

    @property
    def name(self) -> str:
        """The name that selects this part; the names of its checks begin with it."""
        return self.checks[0].name.split()[0]


PARTS: Final = (
    Part((resets.restart_restores,), resets.measure_restores, 120.0, Lab.mining),
    Part((ends.awaited_end,), ends.measure_awaited_ends, 240.0, Lab.mini),
    Part((ends.polled_end,), ends.measure_polled_ends, 60.0, Lab.mini),
    Part((ends.match_end, ends.match_results), ends.measure_match_ends, 120.0, Lab.melee),
    Part((ends.stepped_end,), ends.measure_stepped_ends, 60.0, Lab.mini),
    Part((matches.match_bursts,), matches.measure_match_bursts, 90.0, Lab.melee),
    Part((ends.stops, ends.match_stops), ends.measure_stops, 60.0, Lab.mini),
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
    """Carry out the measurements with these names."""
    try:
        for part in PARTS:
            if part.name in names:
                await _carry_out(part, lab)
    finally:
        lab.close_games()
        shutil.rmtree(lab.folder, ignore_errors=True)


async def _carry_out(part: Part, lab: Lab) -> None:
    findings = lab.findings
    findings.begin(part.checks[0])
    lab.deadline = Deadline.after(part.limit_s)
    reason = f"it was not measured: see {part.checks[0].name!r}"
    try:
        part.needs(lab)
        async with asyncio.timeout(part.limit_s) as limit:
            await part.measure(lab)
    except NotPossible as missing:
        reason = str(missing)
    except TimeoutError:
        if not limit.expired():
            raise
        detail = f"not done within its limit of {part.limit_s:g} s"
        _note_failure(part, findings, detail, FaultKind.DEADLINE)
    except GameFault as fault:
        _note_failure(part, findings, fault.detail, fault.kind)
    except (SC2PoolError, OSError, psutil.Error) as error:
        _note_failure(part, findings, str(error), None)
    except Exception as error:  # a game may send any reply; see the rules
        where = traceback.extract_tb(error.__traceback__)[-1]
        detail = f"the measurement failed with {error!r} in {where.name}, line {where.lineno}"
        _note_failure(part, findings, detail, None)
    finally:
        lab.close_games()
    for check in part.checks:
        if findings.measured(check) is None:
            findings.note_unknown(check, reason)


def _note_failure(part: Part, findings: Findings, detail: str, kind: FaultKind | None) -> None:
    """Record the failure for the part's first check without a measurement."""
    left = [check for check in part.checks if findings.measured(check) is None]
    findings.note_failure((left or part.checks)[0], detail, kind)


_WITH_CHANCE: Final = (resets.computer_restarts, resets.random_race)
"""The checks of restarts in games with a computer or a random race."""


def settled_by(findings: Findings, before: Settled) -> Settled:
    """The facts that the measurements settle; facts that were not measured stay unchanged."""
    facts: dict[str, Any] = {}
    restores = findings.measured(resets.restart_restores) or {}
    # Reported faults are about exhausted fields, so without one a restart is not proven faithful.
    if restores.get("differences") or restores.get("exhausted"):
        facts["restart_faithful"] = not restores["differences"]
    games = [
        findings.grade(check) is Grade.OK
        for check in _WITH_CHANCE
        if "beginnings" in (findings.measured(check) or {})
    ]
    if False in games or len(games) == len(_WITH_CHANCE):
        facts["restart_with_computer"] = all(games)
    bursts = findings.measured(matches.match_bursts) or {}
    if not bursts.get("undetermined", True):
        facts["bursts_in_matches"] = not bursts["difference"]
    ended = (findings.measured(ends.awaited_end) or {}).get("samples")
    if ended:
        facts["silent_end"] = any(sample["after_s"] is None for sample in ended)
    stops = [
        stop
        for check in (ends.stops, ends.match_stops)
        for stop in (findings.measured(check) or {}).get("measured", ())
    ]
    if stops:
        facts["after_stop"] = ends.after_stop(stops)
    return replace(before, **facts, measured=date.today().isoformat()) if facts else before
