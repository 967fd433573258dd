"""Decides if a dead instance is replaced, from the times of past recycles.

The *intensity* (a term of Erlang's supervisors) is how many recycles are accepted within a
window, for one env and for the whole pool. Beyond it something is wrong that a new instance cannot
repair, and the pool raises instead of launching games for ever.
"""

from __future__ import annotations

from collections.abc import Sequence

from sc2pool.config import RestartPolicy
from sc2pool.errors import Fault, FaultKind

_HOPELESS = {
    FaultKind.LAUNCH_FAILED: "the game does not start",
    FaultKind.SPAWN_FAILED: "the worker does not start",
}
"""Faults that a new instance repeats."""


def recent(times_s: Sequence[float], window_s: float, now_s: float) -> list[float]:
    """Those of the times that lie within the window."""
    return [at for at in times_s if now_s - at < window_s]


def exceeded(
    policy: RestartPolicy,
    n_envs: int,
    env_recycles_s: Sequence[float],
    pool_recycles_s: Sequence[float],
    now_s: float,
) -> str | None:
    """Why no further recycle is accepted; None if one more is.

    Args:
        policy: the limits.
        n_envs: number of envs in the pool.
        env_recycles_s: monotonic times of this env's recycles, the newest one included.
        pool_recycles_s: the same for all envs.
        now_s: the monotonic time now.
    """
    in_env = len(recent(env_recycles_s, policy.per_env_window_s, now_s))
    if in_env > policy.per_env:
        return f"{in_env} recycles of one env in {policy.per_env_window_s:g} s"
    allowed = policy.per_pool_per_env * n_envs
    in_pool = len(recent(pool_recycles_s, policy.per_pool_window_s, now_s))
    if in_pool > allowed:
        return f"{in_pool} recycles of the pool in {policy.per_pool_window_s:g} s"
    return None


def hopeless(causes: Sequence[Fault], *, any_was_ready: bool) -> str | None:
    """Why a new instance would fail like the last ones; None if it may succeed.

    Before the pool's first observation, two launches that fail in the same words are the fault of
    the installation or of the system, not chance. A game that was killed is another kind of fault:
    the cause is memory pressure, which passes.

    Args:
        causes: this env's faults, the newest last.
        any_was_ready: whether any instance of the pool ever reached a first observation.
    """
    if any_was_ready or len(causes) < 2 or causes[-1] != causes[-2]:
        return None
    return _HOPELESS.get(causes[-1].kind)


def backoff_s(policy: RestartPolicy, env_recycles_s: Sequence[float], now_s: float) -> float:
    """How long to wait before the next start: nothing for the first, then 0.5 s, 1 s, … 8 s."""
    recycles = len(recent(env_recycles_s, policy.per_env_window_s, now_s))
    return 0.0 if recycles <= 1 else min(8.0, 0.25 * 2.0 ** (recycles - 1))
