"""Verdicts on the installation and the machine. Pure: a measurement in, a verdict out."""

from __future__ import annotations

from typing import Final

from sc2pool.cli.doctor.measurements import (
    Cores,
    Found,
    Limit,
    MapPlace,
    Memory,
    Ports,
    PythonSetup,
    Space,
    YesNo,
)
from sc2pool.cli.doctor.verdict import Outcome, Verdict
from sc2pool.tasks.minigames.scores import PUBLISHED

MINI_GAMES: Final = "mini_games.zip of github.com/google-deepmind/pysc2, Releases"
OLDEST_PYTHON: Final = (3, 11)
TOO_NEW_PYTHON: Final = (3, 15)
GB: Final = 1_000_000_000
GAME_BYTES: Final = GB
"""What a game may well take, for want of a measurement."""
FILES_WANTED: Final = 1024
"""A pool of dozens of games opens some hundreds."""
THREADS_WANTED: Final = 2048
"""A game has dozens of threads, and each counts as a process."""


def judge_installation(found: Found) -> Verdict:
    """Which game is played."""
    figure = f"Base{found.base_build} at {found.root}: {found.found_by}"
    return Verdict(Outcome.OK, figure)


def judge_map(place: MapPlace) -> Verdict:
    """Whether a map is where it is looked for."""
    if place.path is not None:
        return Verdict(Outcome.OK, str(place.path))
    if not place.tasks:
        figure = f"not in {place.belongs_to.parent}; no built-in task needs it"
        return Verdict(Outcome.NOT_POSSIBLE, figure)
    source = f", from {MINI_GAMES}" if place.belongs_to.stem in PUBLISHED else ""
    return Verdict(
        Outcome.FAILED,
        f"not there; needed by {', '.join(place.tasks)}",
        f"put it at {place.belongs_to}{source}",
    )


def judge_python(setup: PythonSetup) -> Verdict:
    """Whether interpreter and packages are those that sc2pool was made for."""
    version = ".".join(map(str, setup.version))
    packages = ", ".join(f"{p.name} {p.version or 'missing'}" for p in setup.packages)
    figure = f"Python {version}; {packages}"
    unfit = [
        f"{p.name}>={p.least}" if p.least else p.name
        for p in setup.packages
        if p.version is None or numbers(p.version) < numbers(p.least)
    ]
    if unfit:
        wanted = " ".join(f"'{name}'" for name in unfit)
        return Verdict(Outcome.FAILED, figure, f"pip install {wanted}")
    if not OLDEST_PYTHON <= setup.version[:2] < TOO_NEW_PYTHON:
        return Verdict(Outcome.DIFFERS, figure, "sc2pool is tested with Python 3.11 to 3.14")
    return Verdict(Outcome.OK, figure)


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: (2, 9) of "2.9.0a1" and of "2.9"."""
    parts = []
    for part in version.split("."):
        if not part.isdigit():
            break
        parts.append(int(part))
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def judge_ports(ports: Ports) -> Verdict:
    """A port could be leased."""
    figure = f"port {ports.leased} of {ports.first}–{ports.last} leased and given back"
    return Verdict(Outcome.OK, figure)


def judge_listener(told: YesNo) -> Verdict:
    """Whether the system tells whose a listening port is."""
    if told.yes:
        return Verdict(Outcome.OK, "the system tells which process listens on a port")
    return Verdict(
        Outcome.DIFFERS,
        "the system does not tell which process listens on a port",
        "a port is proven free before the launch instead; stats() will say so",
    )


def judge_memory(memory: Memory) -> Verdict:
    """Whether there is memory for games, and for how many."""
    free = f"{memory.available_bytes / GB:.1f} of {memory.total_bytes / GB:.1f} GB free"
    wanted = GAME_BYTES if memory.game_bytes is None else memory.game_bytes
    room = memory.available_bytes // wanted
    if memory.game_bytes is not None:
        free += f", room for {room:,} games like the one measured ({megabytes(wanted)})"
    if room < 1:
        return Verdict(
            Outcome.FAILED if memory.game_bytes is not None else Outcome.DIFFERS,
            free,
            "end other programs, or raise the container's memory limit",
        )
    return Verdict(Outcome.OK, free)


def judge_disk(space: Space) -> Verdict:
    """Whether games can write their temporary files."""
    figure = f"{space.free_bytes / GB:.1f} GB free in {space.place}"
    if space.free_bytes >= GB:
        return Verdict(Outcome.OK, figure)
    outcome = Outcome.FAILED if space.free_bytes < GB // 10 else Outcome.DIFFERS
    advice = "games keep their logs and temporary files there: make room, or set TMPDIR"
    return Verdict(outcome, figure, advice)


def judge_shared_memory(space: Space) -> Verdict:
    """/dev/shm: not needed by sc2pool itself, but by much that learners use."""
    figure = f"{megabytes(space.free_bytes)} of {megabytes(space.total_bytes)} free"
    if space.free_bytes >= 32_000_000:
        return Verdict(Outcome.OK, figure)
    advice = "sc2pool does not need it, other programs for learning do; in Docker: --shm-size=1g"
    return Verdict(Outcome.DIFFERS, figure, advice)


def judge_files(limit: Limit) -> Verdict:
    """`ulimit -n`."""
    return _judge_limit(limit, FILES_WANTED, "n")


def judge_processes(limit: Limit) -> Verdict:
    """`ulimit -u`."""
    return _judge_limit(limit, THREADS_WANTED, "u")


def _judge_limit(limit: Limit, wanted: int, letter: str) -> Verdict:
    figure = f"{_number(limit.soft)} (hard limit {_number(limit.hard)})"
    if limit.soft is None or limit.soft >= wanted:
        return Verdict(Outcome.OK, figure)
    return Verdict(Outcome.DIFFERS, figure, f"low for many games: ulimit -{letter} {wanted}")


def judge_cores(cores: Cores) -> Verdict:
    """How many games can compute at a time."""
    figure = f"{cores.usable} of {cores.there} cores may be used"
    return Verdict(Outcome.OK, figure)


def megabytes(size_bytes: float) -> str:
    """A size as people write it."""
    return f"{size_bytes / 1_000_000:,.0f} MB"


def _number(limit: int | None) -> str:
    return "unlimited" if limit is None else f"{limit:,}"
