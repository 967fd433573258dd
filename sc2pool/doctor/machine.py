"""Measures the installation and the machine; no game is started."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Final

import psutil

from sc2pool.config import GameSetup
from sc2pool.doctor import checks
from sc2pool.doctor.findings import Findings, ProbeFailed
from sc2pool.doctor.worker_check import probe_worker
from sc2pool.errors import ConfigError
from sc2pool.game.program.installation import MAP_SUFFIX, Installation, find_installation, find_map
from sc2pool.game.program.launch import find_listener
from sc2pool.game.program.lease import HOST, PortLease, candidate_ports, ephemeral_range
from sc2pool.platform import SYSTEM, WINDOWS
from sc2pool.pool.machine import available_and_total_bytes
from sc2pool.processes.tree import usable_cores
from sc2pool.protocol.compiled import STEP_PATH
from sc2pool.tasks.minigames.scores import PUBLISHED
from sc2pool.tasks.registry import available_tasks, resolve_task

_SHARED_MEMORY: Final = Path("/dev/shm")

Playable = tuple[GameSetup, Path]
"""The setup of a game to play, and the file of its map."""


# ---- the installation ---------------------------------------------------------------------------


def tasks_by_map() -> dict[str, list[str]]:
    """Each map of the mini-games and of the built-in one-player tasks, with its tasks.

    Tasks of two players are left out, because StarCraft II does not have their maps.
    """
    tasks: dict[str, list[str]] = {name: [] for name in PUBLISHED}
    for name in available_tasks():
        task = resolve_task(name)
        if task.players == 1:
            tasks.setdefault(task.map_name, []).append(name)
    return tasks


def probe_installation(game: str, findings: Findings) -> Installation | None:
    """Find the installation; None if no installation was found."""
    with suppress(ProbeFailed), findings.trying(checks.game):
        found = find_installation(game)
        findings.note(checks.game, found.root, found.executable, found.base_build, found.found_by)
        return found
    return None


def probe_maps(
    installation: Installation, tasks: Mapping[str, Sequence[str]], findings: Findings
) -> Playable | None:
    """Look for each of the maps; returns a setup for the first map found and its file, or None."""
    playable = None
    maps = installation.maps or installation.root / "Maps"
    for name, players in tasks.items():
        path = locate(installation, name)
        belongs_to = maps / ("mini_games" if name in PUBLISHED else "Melee") / f"{name}{MAP_SUFFIX}"
        findings.note(checks.map_check(name), path, belongs_to, players)
        if path is not None and playable is None:
            setup = resolve_task(players[0]).game_setup() if players else GameSetup(name)
            playable = setup, path
    return playable


def locate(installation: Installation, map_name: str) -> Path | None:
    """The map's file, None if it is not installed."""
    with suppress(ConfigError):
        return find_map(installation, map_name)
    return None


# ---- the machine --------------------------------------------------------------------------------


def probe_machine(findings: Findings) -> None:
    """Measure Python, memory, disk, limits and ports."""
    findings.note(checks.python, sys.version_info[:3], required_packages())
    findings.note(checks.step_path, STEP_PATH)
    findings.note(checks.cores, usable_cores(), os.cpu_count() or 1)
    probe_worker(findings)
    findings.note(checks.memory, *available_and_total_bytes())
    with suppress(ProbeFailed), findings.trying(checks.disk):
        folder = Path(tempfile.gettempdir())
        space = shutil.disk_usage(folder)
        findings.note(checks.disk, folder, space.free, space.total)
    if _SHARED_MEMORY.is_dir():
        space = shutil.disk_usage(_SHARED_MEMORY)
        findings.note(checks.shared_memory, _SHARED_MEMORY, space.free, space.total)
    else:
        findings.note_unknown(checks.shared_memory, "this system has no /dev/shm")
    probe_limits(findings)
    with suppress(ProbeFailed), findings.trying(checks.ports):
        candidates = candidate_ports(ephemeral_range())
        lease = PortLease.acquire()
        lease.release()
        findings.note(checks.ports, candidates.start, candidates.stop - 1, lease.port)
    with suppress(ProbeFailed), findings.trying(checks.listener):
        findings.note(checks.listener, listener_is_known())


def required_packages() -> list[checks.Package]:
    """The packages that sc2pool requires."""
    packages = []
    for requirement in metadata.requires("sc2pool") or []:
        package, _, condition = requirement.partition(";")
        elsewhere = "sys_platform" in condition and SYSTEM not in condition
        if "extra" not in condition and not elsewhere:
            name, _, least = package.strip().partition(">=")
            version = next((one.version for one in metadata.distributions(name=name)), None)
            packages.append(checks.Package(name=name, version=version, least=least))
    return packages


def probe_limits(findings: Findings) -> None:
    """Record the resource limits of this process, which games inherit."""
    if WINDOWS:
        for check in (checks.open_files, checks.processes):
            findings.note_unknown(check, "Windows has no such limit")
        return
    import resource  # noqa: PLC0415

    for check, number in (
        (checks.open_files, resource.RLIMIT_NOFILE),
        (checks.processes, resource.RLIMIT_NPROC),
    ):
        soft, hard = (
            None if limit == resource.RLIM_INFINITY else limit
            for limit in resource.getrlimit(number)
        )
        findings.note(check, soft, hard)


def listener_is_known() -> bool:
    """Listen on a port; true if the system then reports that this process listens on it."""
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        with suppress(psutil.Error, OSError):
            return find_listener([psutil.Process()], port) is not None
    return False
