"""Facts about the machine and its software, kept beside every figure measured on it."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from sc2pool.processes.table import usable_cores

PACKAGES = ("sc2pool", "numpy", "gymnasium", "stable-baselines3", "torch", "burnysc2", "picows")
"""Those that are measured or used to measure."""


def machine_facts() -> dict[str, Any]:
    """Processor, cores, memory, load and versions, as plain data."""
    return {
        "cpu": cpu_model(),
        "cores": usable_cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "load_1min": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := version_of(name))},
    }


def cpu_model() -> str:
    """The processor's name, as far as the system knows it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def version_of(package: str) -> str | None:
    """The version of an installed package, None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@dataclass(frozen=True)
class CpuUse:
    """CPU seconds of all cores since boot.

    Attributes:
        busy_s: used by the programs of this machine.
        stolen_s: a virtual machine's, which its host gave to others.
    """

    busy_s: float
    stolen_s: float

    @classmethod
    def now(cls) -> CpuUse:
        times = psutil.cpu_times()
        stolen_s = float(getattr(times, "steal", 0.0))
        idle_s = times.idle + getattr(times, "iowait", 0.0)
        # The user time includes the guests' time.
        guests_s = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        return cls(float(sum(times) - idle_s - stolen_s - guests_s), stolen_s)
