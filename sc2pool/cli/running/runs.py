"""Finds running pools of other processes, and reads their live files.

`Run` is a pool on this machine. Rules: the only file that this module writes into a run directory
is the request for fresh files. Pools of other users are ignored. If one process has several pools,
the first pool is chosen: it is for training, and the others are for evaluations. If several
processes have pools, the user must choose.

`ClusterRun` has the same interface, and reads all pools of a Ray cluster as one pool.
"""

from __future__ import annotations

import shlex
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from sc2pool.cli.running.top_table import is_spare
from sc2pool.cli.table import duration
from sc2pool.errors import ConfigError, SC2PoolError
from sc2pool.integration import live_files, living_runs, trainer_of
from sc2pool.utilities import printable, quoted, require

if TYPE_CHECKING:
    from sc2pool.ray import Seen

POLL_S = 0.05
_DESCRIBED_S = 2.0
"""How long to wait until all pools can be described; a pool writes its files once a second."""
ANSWER_S = 10.0
"""Time limit of a pool's answer; it usually takes a second, unless the pool is stopped or busy."""


class NoAnswerError(SC2PoolError):
    """A pool is running, but does not write its live files."""


class Run:
    """A running pool of another process: its run directory, and its trainer's pid."""

    def __init__(self, path: Path, pid: int) -> None:
        self.path = path
        self.pid = pid

    def ended(self) -> bool:
        """True if the pool is closed or its trainer has ended."""
        return trainer_of(self.path) is None

    def poll(self) -> tuple[dict[str, Any], float] | None:
        """The pool's statistics and their age in seconds; None before the pool has written them.

        Each call asks the pool to keep its files up to date for another `live_files.FRESH_FOR_S`.
        """
        with suppress(OSError):
            live_files.request(self.path)
        return self.read(live_files.POOL_FILE)

    def first_poll(self, timeout_s: float = ANSWER_S) -> dict[str, Any] | None:
        """Await new statistics; None if the pool ends; raises `NoAnswerError` if they are late."""
        asked_at_s = time.monotonic()
        while not self.ended():
            seen = self.poll()
            waited_s = time.monotonic() - asked_at_s
            # Ignore files that are older than this call: an earlier reader requested them.
            if seen is not None and seen[1] < waited_s:
                return seen[0]
            if waited_s > timeout_s:
                raise NoAnswerError(
                    f"the pool of process {self.pid} ({self.path}) has not answered for "
                    f"{timeout_s:.0f} s; it is {state_of(self.pid)}"
                )
            time.sleep(POLL_S)
        return None

    def read(self, name: str, instance: int | None = None) -> tuple[dict[str, Any], float] | None:
        """The data of a live file, and the file's age in seconds; None if the file does not exist.

        If `instance` is None, the file is about the whole pool.
        """
        folder = self.path if instance is None else self.path / str(instance)
        return live_files.read(folder / name)

    @property
    def name(self) -> str:
        return f"the pool of process {self.pid}"

    def describe(self) -> str:
        """One line that identifies the pool: its process, task, games and age."""
        return f"{self.name}: {described([self])[self.path]}"


def choose(path: Path | None, pid: int | None) -> Run:
    """The pool that the arguments name; without arguments, the first pool of the only process.

    Raises `ConfigError` if no such pool is running, or if pools of several processes match.
    """
    if path is not None:
        trainer = trainer_of(path)
        if trainer is None:
            raise ConfigError(f"--run {path}: no pool of yours is running there")
        return Run(path, trainer)
    running = [Run(run, trainer) for run, trainer in found(pid).items()]
    meant = [run for run in running if pid in (None, run.pid)]
    if len({run.pid for run in meant}) == 1:
        return meant[0]
    lines = "".join(f"\n  {line}" for line in choices(running))
    if meant:
        raise ConfigError(f"{len(meant)} pools are running: choose one with --pid or --run{lines}")
    looked = f"looked in {tempfile.gettempdir()}; for one with another TMPDIR give --run"
    if pid is None:
        raise ConfigError(f"no pool of yours is running ({looked} or --pid)")
    others = f"; others are:{lines}" if running else f", nor another of yours ({looked})"
    raise ConfigError(f"no pool of process {pid} is running{others}")


def choices(runs: Sequence[Run]) -> list[str]:
    """A line for each pool: the option that chooses it, and its description."""
    plays = described(runs)
    lines, first_of = [], set()
    for run in runs:
        option = f"--run {quoted(run.path)}" if run.pid in first_of else f"--pid {run.pid}"
        first_of.add(run.pid)
        lines.append(f"{option}  {plays[run.path]}")
    return lines


def described(runs: Sequence[Run]) -> dict[Path, str]:
    """Each pool's task, games and uptime; the process's command if the pool does not answer."""
    lines: dict[Path, str] = {}
    asked_at_s = time.monotonic()
    while (waited_s := time.monotonic() - asked_at_s) < _DESCRIBED_S and len(lines) < len(runs):
        for run in runs:
            seen = run.poll() if run.path not in lines else None
            if seen is not None and seen[1] < waited_s:  # the file is newer than this call
                lines[run.path] = printable(_in_short(seen[0]))
        time.sleep(POLL_S)
    for run in runs:
        silent = f"does not answer ({state_of(run.pid)}): {command_of(run.pid)}"
        lines.setdefault(run.path, silent)
    return lines


def _in_short(stats: dict[str, Any]) -> str:
    games = sum(not is_spare(row) for row in stats["instances"])
    number = f"{games} game{'s' * (games != 1)}" if stats["task"] else f"{games} of them"
    return f"{stats['task'] or 'envs of your own'}, {number}, up {duration(stats['uptime_s'])}"


def found(pid: int | None) -> dict[Path, int]:
    """The runs in this process's temporary folder, and the runs of process `pid` if it is given."""
    runs = living_runs(Path(tempfile.gettempdir()))
    if pid is None:
        return runs
    children = []
    with suppress(psutil.Error):
        children = psutil.Process(pid).children()
    for worker in children:
        with suppress(psutil.Error):  # a child that has just ended has no environment
            folder = Path(worker.environ().get("TMPDIR", "")).parent
            if trainer_of(folder) == pid:
                runs[folder] = pid
    return runs


def command_of(pid: int) -> str:
    with suppress(psutil.Error):
        return printable(shlex.join(psutil.Process(pid).cmdline()), 80)
    return ""


def state_of(pid: int) -> str:
    """The process's status as the system reports it: running, sleeping, stopped …"""
    with suppress(psutil.Error):
        return str(psutil.Process(pid).status())
    return "gone"


_AGAIN_S = 0.3
"""The files are read at most once within this time; requests in between share the result."""
_ALL_ANSWER_S = 1.5
"""Usually all pools answer within this time, because a pool checks for requests once a second."""
_ENDED_AFTER_S = 10.0
"""If no pool has been seen for this time, the training counts as ended."""


class ClusterRun:
    """The running pools of a Ray cluster; with `closely`, the files for `read` are fetched as well.

    The address is explained at `sc2pool.ray.connect`. Raises `MissingPackageError` if Ray is not
    installed, and `ConfigError` if no cluster answers.
    """

    def __init__(self, address: str, *, closely: bool = False) -> None:
        require("--ray", "ray")
        from sc2pool.ray import Viewers, connect  # noqa: PLC0415

        connect(address)
        self._viewers = Viewers()
        self._address = address
        self._closely = closely
        self._pools: list[Seen] = []
        self._read_at_s = 0.0
        self._seen_s = time.monotonic()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return f"every pool of the Ray cluster at {self._address}"

    def describe(self) -> str:
        """One line that identifies the pools."""
        nodes = dict.fromkeys(pool.node for pool in self._read_pools())
        return f"the Ray cluster at {self._address}, pools on {', '.join(nodes) or 'no node yet'}"

    def ended(self) -> bool:
        """True if no pool was seen for `_ENDED_AFTER_S`."""
        return not self._read_pools() and time.monotonic() - self._seen_s > _ENDED_AFTER_S

    def poll(self) -> tuple[dict[str, Any], float] | None:
        """The merged statistics of all pools, and their age in seconds; None without pools."""
        from sc2pool.integration import merge_stats, stats_from_dict  # noqa: PLC0415

        pools = self._read_pools()
        if not pools:
            return None
        merged = merge_stats([(pool.node, stats_from_dict(pool.stats[0])) for pool in pools])
        return merged.as_dict(), max(pool.stats[1] for pool in pools)

    def first_poll(self) -> dict[str, Any] | None:
        """Await merged statistics; raises `NoAnswerError` if late, `ConfigError` without pools."""
        self._read_pools()  # viewers may start slowly, so the time limit begins after this call
        began_s = time.monotonic()
        while time.monotonic() - began_s < ANSWER_S:
            seen = self.poll()
            # Ignore files that are older than this call: an earlier reader requested them.
            waited_s = time.monotonic() - began_s
            if seen is not None and seen[1] < waited_s and waited_s > _ALL_ANSWER_S:
                return seen[0]
            time.sleep(POLL_S)
        if self._pools:
            raise NoAnswerError(f"{self.name} has not answered for {ANSWER_S:.0f} s")
        raise ConfigError(
            f"no pool is running on the nodes of the Ray cluster at {self._address} (a training's "
            "own process is seen without --ray)"
        )

    def read(self, name: str, instance: int | None = None) -> tuple[dict[str, Any], float] | None:
        """A file of an instance (numbered as in `poll`), or all pools' curves; see `Run.read`."""
        from sc2pool.integration import merge_curves  # noqa: PLC0415

        pools = self._read_pools()
        if instance is not None:
            own, index = divmod(instance, max(1, len(pools)))
            return pools[index].files.get(f"{own}/{name}") if pools else None
        read = [(pool.stats[0]["uptime_s"], pool.files.get(name)) for pool in pools]
        parts = [(uptime_s, seen[0]) for uptime_s, seen in read if seen and seen[0]["at_s"]]
        return (merge_curves(parts), 0.0) if parts else None

    def _read_pools(self) -> list[Seen]:
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._read_at_s > _AGAIN_S:
                self._pools = self._viewers.read(closely=self._closely)
                self._read_at_s = time.monotonic()
            if self._pools:
                self._seen_s = now_s
            return self._pools
