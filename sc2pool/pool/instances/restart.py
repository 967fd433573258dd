"""Decides whether a dead instance is replaced, from the times of past failures.

The *intensity* (a term from Erlang's supervisors) is the number of failures that are accepted
within a window of time. One intensity applies to each env, and another to the whole pool. More
failures show a problem that a new instance cannot repair, so the pool raises an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sc2pool.config import RestartPolicy
from sc2pool.errors import Fault, FaultKind

_HOPELESS = {
    FaultKind.LAUNCH_FAILED: "the game does not start",
    FaultKind.SPAWN_FAILED: "the worker does not start",
}
"""The kinds of fault that would occur again with a new instance."""


def recent(times_s: Sequence[float], window_s: float, now_s: float) -> list[float]:
    """The times that lie within the window before `now_s`."""
    return [at for at in times_s if now_s - at < window_s]


def restarts_exceeded(
    policy: RestartPolicy,
    n_envs: int,
    env_failures_s: Sequence[float],
    pool_failures_s: Sequence[float],
    now_s: float,
) -> str | None:
    """Why the newest failure exceeds the limits; None if it is accepted.

    Args:
        policy: the limits of the number of failures.
        n_envs: the number of envs in the pool.
        env_failures_s: the monotonic times of this env's failures, including the newest failure.
        pool_failures_s: the monotonic times of the failures of all envs.
        now_s: the monotonic time now.
    """
    in_env = len(recent(env_failures_s, policy.per_env_window_s, now_s))
    if in_env > policy.per_env:
        return f"{in_env} failures of one env in {policy.per_env_window_s:g} s"
    allowed = policy.per_pool_per_env * n_envs
    in_pool = len(recent(pool_failures_s, policy.per_pool_window_s, now_s))
    if in_pool > allowed:
        return f"{in_pool} failures of the pool in {policy.per_pool_window_s:g} s"
    return None


@dataclass(frozen=True)
class Housemate:
    """One of the instances of a worker that has died.

    The instance is `stuck` if one of its hooks does not return, and `awaited` if the trainer waits
    for its reply. `failures` is the number of its env's failures within the window.
    """

    number: int
    failures: int
    stuck: bool
    awaited: bool


def charged(housemates: Sequence[Housemate], *, killed: bool) -> int:
    """The number of the instance for which a worker's death counts as a failure.

    No instance causes a kill from outside (`killed`), so such a kill counts for the instance with
    the fewest failures. Any other death may happen again, so it counts for a stuck instance or, if
    none is stuck, for an awaited one. Of several stuck instances, or of several awaited instances,
    the one with the most failures is chosen, so that its env reaches the limit.
    """
    if killed:
        return min(housemates, key=lambda one: one.failures).number
    stuck = [one for one in housemates if one.stuck]
    awaited = [one for one in housemates if one.awaited]
    return max(stuck or awaited or housemates, key=lambda one: one.failures).number


def hopeless(causes: Sequence[Fault], *, any_was_ready: bool) -> str | None:
    """Why a new instance would fail as its predecessors did; None if it may succeed.

    If two launches fail with the same message before the pool's first observation, the cause is the
    installation or the system, not chance. Killed games and refused descriptors or threads do not
    count, because their cause, a shortage, is temporary. In `causes` the newest cause is the last.
    """
    if any_was_ready or len(causes) < 2 or causes[-1] != causes[-2] or causes[-1].refused:
        return None
    return _HOPELESS.get(causes[-1].kind)


def unplayable(setups_failed: int, fault: Fault, any_was_ready: bool) -> str | None:
    """Why the map or the players cannot be played; None if a fresh process may still play them.

    The first failure proves nothing: a process that has already played may have run out of a
    resource. If a new process reports the same failure, the map or the players are the cause. If a
    new process crashes or hangs instead, the map or the players are certainly the cause only if no
    game of the pool has begun an episode.
    """
    if setups_failed < 2 or not fault.map_note:
        return None
    if fault.kind is not FaultKind.SETUP_FAILED and any_was_ready:
        return None
    return f"{fault.detail}; two processes in a row failed; {fault.map_note}"


def backoff_s(
    policy: RestartPolicy, env_failures_s: Sequence[float], now_s: float, *, refused: bool = False
) -> float:
    """The wait before the next start: 0 s after the first failure, then 0.5 s, 1 s, … up to 8 s.

    If the system has refused a resource (`refused`), the first wait is 0.25 s. `env_failures_s`
    includes the newest failure.
    """
    failures = len(recent(env_failures_s, policy.per_env_window_s, now_s))
    at_once = failures <= 1 and not refused
    return 0.0 if at_once else min(8.0, 0.25 * 2.0 ** (failures - 1))
