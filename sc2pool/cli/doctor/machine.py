"""Probes of the machine: Python, memory, disk, limits, ports. Nothing is started."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Final

import psutil

from sc2pool.cli.doctor.measurements import (
    Cores,
    Limit,
    Memory,
    Package,
    Ports,
    PythonSetup,
    Space,
    YesNo,
)
from sc2pool.cli.doctor.notes import Notes, ProbeFailed
from sc2pool.cli.doctor.verdict import Unknown
from sc2pool.game.launch import owns_port
from sc2pool.game.lease import HOST, PortLease, candidate_ports, ephemeral_range

_SHARED_MEMORY: Final = Path("/dev/shm")
_CGROUP: Final = Path("/sys/fs/cgroup")
_WIRE: Final = ("protobuf", "pys2clientprotocol")
"""What the game is spoken to with; they come with burnysc2."""


def probe_machine(notes: Notes) -> None:
    """Looks at all that can be looked at without a game."""
    notes.put("python", python_setup())
    notes.put("cores", Cores(usable_cores(), os.cpu_count() or 1))
    notes.put("memory", memory())
    with suppress(ProbeFailed), notes.trying("disk"):
        notes.put("disk", space(Path(tempfile.gettempdir())))
    if _SHARED_MEMORY.is_dir():
        notes.put("shared memory", space(_SHARED_MEMORY))
    else:
        notes.put("shared memory", Unknown("this system has no /dev/shm"))
    probe_limits(notes)
    with suppress(ProbeFailed), notes.trying("ports"):
        candidates = candidate_ports(ephemeral_range())
        lease = PortLease.acquire()
        lease.release()
        notes.put("ports", Ports(candidates.start, candidates.stop - 1, lease.port))
    with suppress(ProbeFailed), notes.trying("listener"):
        notes.put("listener", YesNo(listener_is_told()))


def python_setup() -> PythonSetup:
    """The interpreter, and the packages sc2pool requires of it."""
    packages = []
    for requirement in metadata.requires("sc2pool") or []:
        wanted, _, condition = requirement.partition(";")
        name, _, least = wanted.strip().partition(">=")
        if "extra" not in condition:
            packages.append(Package(name, version_of(name), least))
    packages += [Package(name, version_of(name), "") for name in _WIRE]
    return PythonSetup(sys.version_info[:3], tuple(packages))


def version_of(package: str) -> str | None:
    """The version of an installed package, None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def usable_cores() -> int:
    """The cores this process may run on."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> Memory:
    """Main memory; in a container with a limit of its own, what is left of that."""
    system = psutil.virtual_memory()
    available, total = system.available, system.total
    with suppress(OSError, ValueError):  # "max", or no such container
        limit = int((_CGROUP / "memory.max").read_text())
        used = int((_CGROUP / "memory.current").read_text())
        available, total = min(available, limit - used), min(total, limit)
    return Memory(available, total)


def space(place: Path) -> Space:
    """The file system that `place` is on."""
    usage = shutil.disk_usage(place)
    return Space(place, usage.free, usage.total)


def probe_limits(notes: Notes) -> None:
    """This process's limits, which games inherit."""
    if sys.platform == "win32":
        for name in ("open files", "processes"):
            notes.put(name, Unknown("Windows has no such limit"))
        return
    import resource  # noqa: PLC0415

    for name, number in (
        ("open files", resource.RLIMIT_NOFILE),
        ("processes", resource.RLIMIT_NPROC),
    ):
        soft, hard = (
            None if value == resource.RLIM_INFINITY else value
            for value in resource.getrlimit(number)
        )
        notes.put(name, Limit(soft, hard))


def listener_is_told() -> bool:
    """Whether the system tells that a port which this process listens on is its own."""
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        return owns_port([psutil.Process()], port) is True
