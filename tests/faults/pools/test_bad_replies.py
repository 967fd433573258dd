"""Tests a game that answers wrongly, late, or not at all, in each phase of a run.

One pool of two envs plays the same seeded run again and again, in episodes of five steps. In each
row of `ROWS` the game of env 0 does one kind of harm a single time. The run is compared with
a run without harm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psutil
import pytest
from fault_pools import (
    LENIENT,
    SEED,
    Recording,
    assert_fault,
    assert_same_bytes,
    assert_same_run,
    processes_of,
    record,
    step,
)
from fault_tasks import Short

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig
from sc2pool.pool.statistics import InstanceStats
from tests.support.audit.faulty import Faulty
from tests.support.systems import strike

CONFIG = PoolConfig(
    limits=Limits(launch_s=4.0, create_join_s=1.5, reset_s=1.5, step_s=1.0, worker_grace_s=0.5),
    restart=LENIENT,
)
HARM_STEP = 3
EPISODE = 5
STEPS = 8

# The fault's kind depends on what notices silence first: the worker's deadline or the watchdog.
SILENT = {"deadline", "hung"}
KINDS = {
    "close": {"connection-lost"},
    "disconnect": {"connection-lost"},
    "half a frame": SILENT,
    **{harm: {"bad-reply"} for harm in ("truncated", "garbage", "empty", "duplicate")},
    **{harm: {"bad-reply"} for harm in ("swapped", "error", "wrong id", "text")},
    "slow": SILENT,
    "not finite": {"bad-reply"},  # the game is at fault, not the task that uses the numbers
}
POINTS = {
    "launching": "ping",
    "joining": "join_game",
    "resetting": "first observation",
    "stepping": "step",
}
OF_EACH_PHASE = ("close", "garbage", "duplicate", "error", "slow")
"""These harms are a lost connection, a wrong reply, a surplus reply, a refusal, and silence."""
ROWS = [
    (phase, harm) for phase in POINTS for harm in (KINDS if phase == "stepping" else OF_EACH_PHASE)
] + [("resetting", "not finite")]
"""Not all harms are tried in all phases, because one function judges the replies of all phases."""
TOO_LONG_S = 30.0
A_MOMENT_S = 0.3


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Replaces the check for processes after each test, because the pool outlives the tests."""
    yield
    assert psutil.Process().children(recursive=True) == []


@pytest.fixture(scope="module")
def env(nothing_is_left: None, faulty_games: Faulty) -> Iterator[SubprocSC2VecEnv]:
    """A pool of two envs, which the tests of all rows share."""
    game = faulty_games.installation
    with closing(SubprocSC2VecEnv(n=2, task=Short, game=game, config=CONFIG)) as made:
        yield made


@pytest.fixture(scope="module")
def quiet_run(env: SubprocSC2VecEnv) -> Recording:
    env.seed(SEED)
    return record(env, STEPS + EPISODE - HARM_STEP)


class Run:
    """A run that is played in parts, so that a test can do something between two steps."""

    def __init__(self, env: SubprocSC2VecEnv) -> None:
        self.env = env
        self._replacements = Counter(env.stats().replacements)
        env.seed(SEED)
        self.observations = [env.reset()]
        self.rewards: list[Any] = []
        self.dones: list[Any] = []
        self.infos: list[Any] = []
        self.reset_infos: list[Any] = []

    def play(self, steps: int) -> None:
        for _ in range(steps):
            observations, rewards, dones, infos = step(self.env, 0, 0)
            self.observations.append(observations)
            self.rewards.append(rewards)
            self.dones.append(dones)
            self.infos.append(infos)
            self.reset_infos.append([dict(info) for info in self.env.reset_infos])

    def replacements(self) -> list[str]:
        """The kinds of replacements in this run."""
        return sorted((Counter(self.env.stats().replacements) - self._replacements).elements())


def assert_env_0_cut_short(run: Run, quiet: Recording, kinds: set[str]) -> None:
    """Env 0's episode ends at the harm; its next episodes begin earlier than in the quiet run."""
    earlier = EPISODE - HARM_STEP
    for number in range(STEPS + 1):
        shift = earlier if number >= HARM_STEP else 0
        assert_same_bytes(run.observations[number][0], quiet.observations[number + shift][0])
        assert_same_bytes(run.observations[number][1], quiet.observations[number][1])
    assert [bool(dones[0]) for dones in run.dones] == [
        number in (HARM_STEP, HARM_STEP + EPISODE) for number in range(1, STEPS + 1)
    ]
    info = run.infos[HARM_STEP - 1][0]
    assert_same_bytes(info["terminal_observation"], quiet.observations[HARM_STEP - 1][0])
    assert info["TimeLimit.truncated"] and info["sc2pool.synthetic"]
    assert info["sc2pool.fault"]["kind"] in kinds
    assert run.rewards[HARM_STEP - 1][0] == 0.0
    marked = [info for infos in run.infos for info in infos if "sc2pool.fault" in info]
    assert marked == [info]


def play_harmed(
    env: SubprocSC2VecEnv, faulty: Faulty, phase: str, harm: str, seconds: float
) -> tuple[Run, InstanceStats]:
    """Returns a run in which env 0's game does this harm, and env 0's instance before the harm."""
    run = Run(env)
    run.play(HARM_STEP - 1)
    instance = env.stats().instances[0]
    order: dict[str, Any] = {"seconds": seconds}
    if phase == "launching":
        strike(processes_of(env, 0)["game"].pid, "KILL")  # the pool replaces the killed game
    else:
        order["pid"] = instance.pid
    faulty.order(harm, POINTS[phase], **order)
    run.play(STEPS - HARM_STEP + 1)
    assert faulty.done
    return run, instance


@pytest.mark.parametrize(("phase", "harm"), ROWS)
def test_harm(env, faulty, quiet_run, phase, harm):
    run, instance = play_harmed(env, faulty, phase, harm, TOO_LONG_S)
    kinds = KINDS[harm]
    if phase == "stepping":
        assert_env_0_cut_short(run, quiet_run, kinds)
        assert_fault(run.infos[HARM_STEP - 1][0], kinds, "stepping", instance.instance)
    elif phase == "launching":
        # Even if the replacement game does not start, only the first fault is reported.
        assert_env_0_cut_short(run, quiet_run, {"game-exited"})
        kinds = kinds | {"game-exited"}
        fault = next(e for e in reversed(env.stats().events) if e.event == "fault")
        # A surplus reply after the last reply of a launch is noticed when the next reply comes.
        assert fault.phase == ("resetting" if harm == "duplicate" else "launching")
    else:
        assert_same_run(run, quiet_run)
        assert not any("sc2pool.fault" in info for infos in run.infos for info in infos)
        told = run.reset_infos[EPISODE - 1]
        assert_fault(told[0], kinds, "resetting", instance.instance)
        assert "sc2pool.fault" not in told[1]
    replacements = run.replacements()
    assert set(replacements) <= kinds
    assert len(replacements) == (2 if phase == "launching" else 1)


@pytest.mark.parametrize("phase", POINTS)
def test_slow_but_in_time_is_no_fault(env, faulty, quiet_run, phase):
    run, _ = play_harmed(env, faulty, phase, "slow", A_MOMENT_S)
    if phase == "launching":
        assert_env_0_cut_short(run, quiet_run, {"game-exited"})
        assert run.replacements() == ["game-exited"]
    else:
        assert_same_run(run, quiet_run)
        assert run.replacements() == []


def test_a_handshake_refused_is_tried_again(env, faulty):
    """A refused handshake must be tried again: the real game refuses while it is loading."""
    run = Run(env)
    strike(processes_of(env, 0)["game"].pid, "KILL")
    faulty.order("refuse", "handshake")
    run.play(1)
    assert faulty.done
    assert run.replacements() == ["game-exited"]


@pytest.mark.parametrize("harm", ["error", "slow"])
def test_in_a_restart(env, faulty, harm):
    """The run has no seed, because a restart of the game begins only episodes without a seed."""
    run = Run(env)
    env.seed(None)
    env.reset()
    run.play(2 * EPISODE - 1)
    instance = env.stats().instances[0]
    faulty.order(harm, "restart_game", pid=instance.pid, seconds=TOO_LONG_S)
    run.play(2)
    assert faulty.done
    assert [dones.tolist() for dones in run.dones[-2:]] == [[True, True], [False, False]]
    told = run.reset_infos[-2]
    assert_fault(told[0], KINDS[harm], "resetting", instance.instance)
    assert told[1] == {}
    assert set(run.infos[-2][0]) == {"TimeLimit.truncated", "terminal_observation"}
    assert len(run.replacements()) == 1
