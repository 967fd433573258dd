"""Tests settings that a config refuses when it is made, and the texts of errors."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from sc2pool import SC2VectorEnv
from sc2pool.config import Limits, PoolConfig, RecyclePolicy, ReplayPolicy, RestartPolicy
from sc2pool.errors import ConfigError, FaultKind, GameFault

# ---- settings ------------------------------------------------------------------------------------


ABOVE = "a number above 0"
WHOLE = "a whole number of at least 1"


@pytest.mark.parametrize(
    ("made_of", "name", "value", "expected"),
    [
        (Limits, "step_s", -1, ABOVE),
        (Limits, "step_s", nan, ABOVE),
        (Limits, "launch_s", "3", ABOVE),
        (Limits, "reset_s", True, ABOVE),
        (Limits, "worker_grace_s", -0.1, f"0 or {ABOVE}"),
        (Limits, "concurrent_launches", 0, WHOLE),
        (RestartPolicy, "per_env", -1, f"0 or {WHOLE}"),
        (RestartPolicy, "per_env", None, f"0 or {WHOLE}"),
        (RestartPolicy, "per_pool_window_s", 0, ABOVE),
        (RecyclePolicy, "episodes", 0, WHOLE),
        (RecyclePolicy, "soft_memory_bytes", 0.5, WHOLE),
        (PoolConfig, "limits", {}, "a Limits"),
        (PoolConfig, "restart", None, "a RestartPolicy"),
        (PoolConfig, "replays", "replays", "a ReplayPolicy"),
        (PoolConfig, "envs_per_worker", 1.5, WHOLE),
        (PoolConfig, "watchdog_interval_s", 0, ABOVE),
        (PoolConfig, "metrics_port", 65536, "at most 65535"),
        (PoolConfig, "metrics_host", None, "a text"),
        (PoolConfig, "fault_report_dir", 3, "a path"),
    ],
)
def test_a_wrong_value(made_of: Any, name: str, value: object, expected: str) -> None:
    said = f"{made_of.__name__}({name}=…) must be {expected}, got {value!r}"
    for make in (made_of, lambda **given: replace(made_of(), **given)):
        with pytest.raises(ConfigError, match=re.escape(said)):
            make(**{name: value})


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_that_is_too_large(digits: int) -> None:
    """The error does not show the number, because Python refuses the `repr` of so many digits."""
    with pytest.raises(ConfigError, match=r"Limits\(step_s=…\) must be at most 1.8e\+308"):
        Limits(step_s=10**digits)


@pytest.mark.parametrize(("name", "value"), [("dir", None), ("every", 0), ("best", 1), ("keep", 0)])
def test_a_wrong_value_of_replays(name: str, value: object) -> None:
    given: dict[str, Any] = {"dir": "replays", name: value}
    with pytest.raises(ConfigError, match=re.escape(f"ReplayPolicy({name}=…) must be ")):
        ReplayPolicy(**given)


def test_what_is_possible() -> None:
    Limits(step_s=inf, worker_grace_s=0)
    RestartPolicy(per_env=0, per_pool_per_env=0)
    RecyclePolicy(soft_memory_bytes=int(2e9), hard_memory_bytes=None, growth_bytes=0)
    PoolConfig(replays=ReplayPolicy(Path("replays"), every=5), fault_report_dir=Path("faults"))


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("long_s", [4e6, 1e300, inf])
def test_a_limit_may_be_longer_than_the_system_can_wait(standin_dir: Path, long_s: float) -> None:
    """Long limits must work, although `epoll` refuses 25 days, and timers refuse some centuries."""
    config = PoolConfig(
        limits=Limits(**{one.name: long_s for one in fields(Limits) if one.type == "float"}),
        watchdog_interval_s=long_s,
    )
    env = SC2VectorEnv(n=1, task="MoveToBeacon", game=standin_dir, config=config)
    try:
        env.reset(seed=1)
        for _ in range(3):
            env.step(env.action_space.sample())
        assert env.stats().faults == 0
    finally:
        env.close()


def test_a_fault_of_an_env_of_the_user_needs_no_kind() -> None:
    fault = GameFault("the window is gone")
    assert (fault.kind, fault.detail) == (FaultKind.GAME_EXITED, "the window is gone")
    assert str(fault) == "game-exited: the window is gone"


def test_a_kind_by_its_value() -> None:
    assert GameFault("hung", "no reply").kind is FaultKind.HUNG
    with pytest.raises(ValueError, match="'hangs' is not a valid FaultKind"):
        GameFault("hangs", "no reply")
