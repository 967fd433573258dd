"""The table of checks: what is looked at, why, and who judges it.

Rules: a check is a row here and nothing else; a probe that notes a measurement uses the row's
name. `judge` turns all measurements into findings and is pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sc2pool.cli.doctor import judge_game, judge_machine
from sc2pool.cli.doctor.verdict import Broke, Outcome, Unknown, Verdict


class Part(StrEnum):
    """A part of the report."""

    INSTALLATION = "installation"
    MACHINE = "machine"
    TIMES = "times and memory of the game"
    BEHAVIOUR = "behaviour of the game"


@dataclass(frozen=True)
class Check:
    """One row of the table."""

    name: str
    part: Part
    purpose: str
    """What it is for: the question it answers, or what sc2pool needs it for."""
    judge: Callable[[Any], Verdict]
    mend: str = ""
    """What to do when the measuring itself failed, and not for a fault of a game."""


@dataclass(frozen=True)
class Finding:
    """A check with its outcome."""

    check: Check
    verdict: Verdict
    measurement: object


def map_check(map_name: str) -> str:
    """The name of the check that looks for this map."""
    return f"map {map_name}"


_IN_REAL_TIME = "for playing in real time and pausing the game while the learner learns"


def all_checks(map_names: Iterable[str]) -> list[Check]:
    """The whole table, in the order of the report, with a row for each of these maps."""
    place, machine, times, behaviour = Part
    on_place, on_machine, on_game = judge_machine, judge_machine, judge_game
    return [
        Check(
            "game",
            place,
            "which game is played, and why this one",
            on_place.judge_installation,
            mend="set SC2PATH to the folder that holds Versions and Maps, or give it as --game. "
            "Blizzard's packages for Linux: github.com/Blizzard/s2client-proto, Downloads. "
            "Without StarCraft II: unset SC2PATH, and the stand-in is played",
        ),
        *(
            Check(map_check(name), place, "a map that tasks are played on", on_place.judge_map)
            for name in map_names
        ),
        Check("python", machine, "what sc2pool runs on", on_machine.judge_python),
        Check("cores", machine, "how many games can compute at a time", on_machine.judge_cores),
        Check("memory", machine, "how many games there is room for", on_machine.judge_memory),
        Check(
            "disk",
            machine,
            "logs and temporary files of games",
            on_machine.judge_disk,
            mend="set TMPDIR to a folder that can be written to",
        ),
        Check("shared memory", machine, "the size of /dev/shm", on_machine.judge_shared_memory),
        Check("open files", machine, "ulimit -n", on_machine.judge_files),
        Check("processes", machine, "ulimit -u", on_machine.judge_processes),
        Check("ports", machine, "each game needs one", on_machine.judge_ports),
        Check(
            "listener",
            machine,
            "can it be proven that a port's listener is our game?",
            on_machine.judge_listener,
        ),
        Check(
            "launch",
            times,
            "from the start of the process to an answer",
            on_game.judge_launch,
            mend="the executable cannot be run on this system: a package for another one, a file "
            "system without the right to execute, or no room for temporary files (TMPDIR)",
        ),
        Check("launch again", times, "the same, with all files cached", on_game.judge_launch),
        Check("create+join", times, "a reset with a seed", on_game.judge_create),
        Check(
            "restart", times, "a reset without a seed, observation included", on_game.judge_reset
        ),
        Check("burst step", times, "one env step as sc2pool makes it", on_game.judge_step),
        Check("single step", times, "the same, one request after the other", on_game.judge_step),
        Check("memory growth", times, "does the game grow with resets?", on_game.judge_growth),
        Check("kill", times, "how fast close() can be", on_game.judge_kill),
        Check("version", behaviour, "what the game says it is", on_game.judge_version),
        Check(
            "ready markers",
            behaviour,
            "does the game print that it is ready?",
            on_game.judge_markers,
        ),
        Check("proven listener", behaviour, "was the listener our game?", on_game.judge_proof),
        Check("reply ids", behaviour, "does Response.id come back?", on_game.judge_ids),
        Check(
            "determinism",
            behaviour,
            "do the same seed and actions give the same episode?",
            on_game.judge_determinism,
        ),
        Check(
            "bursts",
            behaviour,
            "do bursts give the same observations as single requests?",
            on_game.judge_bursts,
        ),
        Check("seed", behaviour, "does another seed give another episode?", on_game.judge_seed),
        Check(
            "restart and seed",
            behaviour,
            "does restart_game repeat the seed?",
            on_game.judge_restart_seed,
        ),
        Check(
            "restart variety",
            behaviour,
            "do restarted episodes without a seed differ?",
            on_game.judge_variety,
        ),
        Check("hard reset", behaviour, "does need_hard_reset come?", on_game.judge_hard_reset),
        Check(
            "episode end",
            behaviour,
            "does player_result come at once or one observation later?",
            on_game.judge_episode_end,
        ),
        Check(
            "restart after end",
            behaviour,
            "can an ended episode be restarted?",
            on_game.judge_ended_restart,
        ),
        Check(
            "exit on request",
            behaviour,
            "does DebugTestProcess work (exit, tried last)?",
            on_game.judge_process_test,
        ),
        Check("real time", behaviour, f"the game's own pace; {_IN_REAL_TIME}", on_game.judge_pace),
        Check(
            "awaited loop",
            behaviour,
            "is RequestObservation.game_loop honoured in real time?",
            on_game.judge_awaited_loop,
        ),
        Check(
            "stop and go on",
            behaviour,
            "does a stopped game catch up in real time?",
            on_game.judge_pause,
        ),
    ]


def judge(checks: Iterable[Check], measured: Mapping[str, object]) -> list[Finding]:
    """The findings, one for each check, in the checks' order."""
    findings = []
    for check in checks:
        measurement = measured.get(check.name, Unknown("it was not looked at"))
        if isinstance(measurement, Unknown):
            verdict = Verdict(Outcome.NOT_POSSIBLE, measurement.reason)
        elif isinstance(measurement, Broke):
            verdict = judge_game.judge_broken(measurement, check.mend)
        else:
            verdict = check.judge(measurement)
        findings.append(Finding(check, verdict, measurement))
    return findings
