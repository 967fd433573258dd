"""The checks of the installation and of the machine; `machine` and `worker` measure for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypedDict

from sc2pool.doctor.findings import (
    MB,
    Check,
    Grade,
    Judgement,
    Section,
    differs,
    expect,
    failed,
    megabytes,
    ok,
    seconds,
    yes_no,
)
from sc2pool.game.program.builds import Settled
from sc2pool.shell import called
from sc2pool.tasks.minigames.scores import PUBLISHED

OLDEST_PYTHON: Final = (3, 11)
TOO_NEW_PYTHON: Final = (3, 15)
GB: Final = 1_000_000_000
GAME_BYTES: Final = GB
"""The assumed memory of a game, if it was not measured."""
SHARED_MEMORY_BYTES: Final = 32 * MB
FILES_WANTED: Final = 1024
"""Wanted limit of open files: a pool of dozens of games opens some hundreds."""
THREADS_WANTED: Final = 2048
"""Wanted limit of processes: a game has dozens of threads, and each counts as a process."""

INSTALLATION = Section("installation")
MACHINE = Section("machine")


class Package(TypedDict):
    """A Python package."""

    name: str
    version: str | None
    """None if it is not installed."""
    least: str
    """The oldest version that works; empty if every version works."""


@INSTALLATION.check(
    "game",
    "the selected game, and the reason",
    remedy="set SC2PATH to the folder that holds Versions and Maps, or give it as --game. "
    "Blizzard's packages for Linux: github.com/Blizzard/s2client-proto, Downloads. "
    "Without StarCraft II: unset SC2PATH, and the stand-in is played",
)
def game(root: Path, executable: Path, base_build: int, found_by: str) -> Judgement:  # noqa: ARG001
    return ok(f"Base{base_build} at {root}: {found_by}")


@INSTALLATION.check("settled", "measured facts about this game that pools use")
def settled(facts: Settled) -> Judgement:
    if not facts.measured:
        return ok("nothing: sc2pool doctor --full measures it; until then pools take the safer way")
    told = [
        f"{what} {'unknown' if fact is None else fact if isinstance(fact, str) else _YES_NO[fact]}"
        for what, fact in (
            ("a restart restores all:", facts.restart_faithful),
            ("also with a computer or a random race:", facts.restart_with_computer),
            ("bursts in matches:", facts.bursts_in_matches),
            ("silent ends:", facts.silent_end),
            ("after a stop:", facts.after_stop),
        )
    ]
    return ok(f"{', '.join(told)} (measured {facts.measured})")


_YES_NO: Final = {True: "yes", False: "no"}


def judge_map(path: Path | None, belongs_to: Path, tasks: Sequence[str]) -> Judgement:
    """Judge a map by its file.

    Args:
        path: the map's file, or None.
        belongs_to: the path where the file should be.
        tasks: the built-in tasks that are played on it.
    """
    if path is not None:
        return ok(str(path))
    if not tasks:
        figure = f"not in {belongs_to.parent}; no built-in task needs it"
        return Judgement(Grade.NOT_POSSIBLE, figure)
    source = ""
    if belongs_to.stem in PUBLISHED:
        source = ", from mini_games.zip of github.com/google-deepmind/pysc2, Releases"
    return failed(f"not there; needed by {', '.join(tasks)}", f"put it at {belongs_to}{source}")


def map_check(map_name: str) -> Check[[Path | None, Path, Sequence[str]]]:
    """The check that looks for this map."""
    name, purpose = f"map {map_name}", "a map that tasks are played on"
    return Check(name, INSTALLATION.part, purpose, judge_map)


# ---- the machine --------------------------------------------------------------------------------


@MACHINE.check("python", "the versions of Python and of the required packages")
def python(version: tuple[int, int, int], packages: Sequence[Package]) -> Judgement:
    listed = ", ".join(f"{p['name']} {p['version'] or 'missing'}" for p in packages)
    figure = f"Python {'.'.join(map(str, version))}; {listed}"
    unfit = [
        "'" + p["name"] + (f">={p['least']}" if p["least"] else "") + "'"
        for p in packages
        if p["version"] is None or _numbers(p["version"]) < _numbers(p["least"])
    ]
    if unfit:
        return failed(figure, f"{called('pip')} install {' '.join(unfit)}")
    if not OLDEST_PYTHON <= version[:2] < TOO_NEW_PYTHON:
        return differs(figure, "sc2pool is tested with Python 3.11 to 3.14")
    return ok(figure)


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: (2, 9) of "2.9.0a1" and of "2.9"."""
    parts: list[int] = []
    for part in version.split("."):
        if not part.isdigit():
            break
        parts.append(int(part))
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


@MACHINE.check("step path", "how much CPU time a worker uses for a step")
def step_path(path: str) -> Judgement:
    if path == "compiled":
        return ok(path)
    advice = "nothing is missing, but steps cost more: it needs a C compiler and Python's headers"
    return differs(path, f"{advice} when sc2pool is installed, and SC2POOL_PURE unset")


@MACHINE.check("cores", "how many games can compute at a time")
def cores(usable: int, there: int) -> Judgement:
    return ok(f"{usable} of {there} cores may be used")


@MACHINE.check("worker", "can a worker be started, woken, measured, stopped and ended?")
def worker(  # noqa: PLR0917 - each is one question
    started_s: float,
    counts: bool,
    cpu_seen: bool,
    stop_seen: bool,
    stands_still: bool,
    ended_s: float | None,
) -> Judgement:
    advice = "please report it, with this report"
    if not counts:
        return failed("its memory is not shared", advice)
    if not stands_still:
        return failed("it runs while it is stopped", advice)
    if ended_s is None:
        return failed("it lives on after it was killed", advice)
    figure = f"up and awake after {seconds(started_s)}, gone {seconds(ended_s)} after its kill"
    unseen = [
        what for what, seen in (("CPU time", cpu_seen), ("stopped state", stop_seen)) if not seen
    ]
    if not unseen:
        return ok(figure)
    return differs(
        f"{figure}; the system does not tell its {' and its '.join(unseen)}",
        "as with Wine; a game that hangs or is stopped is noticed only at its deadline",
    )


@MACHINE.check("memory", "how many games fit into the memory")
def memory(available_bytes: int, total_bytes: int, game_bytes: int | None = None) -> Judgement:
    figure = f"{available_bytes / GB:.1f} of {total_bytes / GB:.1f} GB free"
    room = available_bytes // (game_bytes or GAME_BYTES)
    if game_bytes:
        figure += f", room for {room:,} games like the one measured ({megabytes(game_bytes)})"
    if room >= 1:
        return ok(figure)
    judge = failed if game_bytes else differs
    return judge(figure, "end other programs, or raise the container's memory limit")


@MACHINE.check(
    "disk",
    "logs and temporary files of games",
    remedy="set TMPDIR to a folder that can be written to",
)
def disk(place: Path, free_bytes: int, total_bytes: int) -> Judgement:  # noqa: ARG001
    figure = f"{free_bytes / GB:.1f} GB free in {place}"
    if free_bytes >= GB:
        return ok(figure)
    judge = failed if free_bytes < GB // 10 else differs
    return judge(
        figure, "games keep their logs and temporary files there: free space, or set TMPDIR"
    )


@MACHINE.check("shared memory", "the size of /dev/shm")
def shared_memory(place: Path, free_bytes: int, total_bytes: int) -> Judgement:  # noqa: ARG001
    figure = f"{megabytes(free_bytes)} of {megabytes(total_bytes)} free"
    advice = "sc2pool does not need it, other programs for learning do; in Docker: --shm-size=1g"
    return expect(free_bytes >= SHARED_MEMORY_BYTES, figure, advice)


def _limit(letter: str, wanted: int) -> Callable[[int | None, int | None], Judgement]:
    def judge(soft: int | None, hard: int | None) -> Judgement:
        shown = ["unlimited" if limit is None else f"{limit:,}" for limit in (soft, hard)]
        figure = f"{shown[0]} (hard limit {shown[1]})"
        enough = soft is None or soft >= wanted
        return expect(enough, figure, f"low for many games: ulimit -{letter} {wanted}")

    return judge


open_files = MACHINE.check("open files", "ulimit -n")(_limit("n", FILES_WANTED))
processes = MACHINE.check("processes", "ulimit -u")(_limit("u", THREADS_WANTED))


@MACHINE.check("ports", "each game needs one")
def ports(first: int, last: int, leased: int) -> Judgement:
    return ok(f"port {leased} of {first}–{last} leased and released")


listener = MACHINE.check("listener", "can it be proven that a port's listener is our game?")(
    yes_no(
        "the system reports which process listens on a port",
        "the system does not report which process listens on a port",
        "a port is proven free before the launch instead; stats() will say so",
    )
)
