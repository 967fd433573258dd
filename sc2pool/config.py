"""What is played and how long each part of it may take.

Plain frozen dataclasses: they travel to the workers as they are, and every default stands here
once. Rule: a limit is a duration in seconds (`_s`) or a size in bytes (`_bytes`); it becomes a
`Deadline` only where the wait begins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from s2clientprotocol import common_pb2, sc2api_pb2


@dataclass(frozen=True)
class Limits:
    """How long a part of an instance's life may take before it counts as a fault."""

    worker_start_s: float = 90.0
    """From spawn to a worker that has imported what it needs and made its player."""
    launch_s: float = 90.0
    """From spawn to a game that answers; the very first launch of a pool may take twice this."""
    create_join_s: float = 60.0
    """create_game and join_game together."""
    reset_s: float = 60.0
    """restart_game, or the first observation after a join."""
    step_s: float = 10.0
    """One env step. A slow game (its CPU time advances) gets three times this, once."""
    worker_grace_s: float = 5.0
    """The worker keeps these limits on its game; so much later the trainer gives up on it."""
    concurrent_launches: int = 2
    """Games that may be launching at one time."""


@dataclass(frozen=True)
class Computer:
    """A built-in opponent.

    Args:
        race: a `common_pb2.Race` value.
        difficulty: a `sc2api_pb2.Difficulty` value.
    """

    race: int = common_pb2.Random
    difficulty: int = sc2api_pb2.Easy


@dataclass(frozen=True)
class GameSetup:
    """All that `create_game` and `join_game` need, but for the seed."""

    map_name: str
    """A map's file name without suffix (`"MoveToBeacon"`), or a path to a `.SC2Map` file."""
    race: int = common_pb2.Terran
    """The learner's race, a `common_pb2.Race` value."""
    opponents: tuple[Computer, ...] = ()
    disable_fog: bool = False
    realtime: bool = False
    raw_affects_selection: bool = False
    raw_crop_to_playable_area: bool = False


@dataclass(frozen=True)
class RestartPolicy:
    """How many recycles are accepted before the pool gives up (its *intensity*)."""

    per_env: int = 5
    per_env_window_s: float = 60.0
    per_pool_per_env: int = 4
    """The whole pool may recycle this many times its number of envs …"""
    per_pool_window_s: float = 600.0
    """… within this window."""


@dataclass(frozen=True)
class RecyclePolicy:
    """When an instance is replaced although it works; None for never.

    Soft limits wait for the episode's end and show in no transition; the hard one is a fault.
    """

    soft_memory_bytes: int | None = 2_000_000_000
    hard_memory_bytes: int | None = 4_000_000_000
    growth_bytes: int | None = 1_000_000_000
    """Soft: more than this above what the game took when first looked at."""
    age_s: float | None = None
    episodes: int | None = None


@dataclass(frozen=True)
class ReplayPolicy:
    """Of which episodes a replay is kept. A file's path is in the last info of its episode."""

    dir: Path
    """The folder; it is made. A pool deletes there nothing but what it has written itself."""
    every: int | None = None
    """The episodes whose number is a multiple of this (0 is the first); None for none."""
    best: bool = True
    """Each episode with a higher return than all before it."""
    faulty: bool = True
    """Those in which the user's code failed while the game still answered."""
    keep: int = 20
    """So many files are kept for each of the three reasons, the newest. An episode that its number
    and its return choose is kept for its return."""


@dataclass(frozen=True)
class PoolConfig:
    """How the pool treats its instances."""

    limits: Limits = field(default_factory=Limits)
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    recycle: RecyclePolicy = field(default_factory=RecyclePolicy)
    watchdog_interval_s: float = 1.0
    """How often every process is looked at."""
    bundle_dir: Path | None = None
    """Where fault bundles are kept; None for the user's cache."""
    metrics_port: int | None = None
    """Tell Prometheus the pool's counters at http://HOST:PORT/metrics; None for not at all."""
    metrics_host: str = "127.0.0.1"
    """The address to tell them on; "" for all of the machine's."""
    replays: ReplayPolicy | None = None
    """Replays of chosen episodes; None for none. Tasks only."""
