"""Tests that batches continue when games and workers are killed or stopped in any phase.

If a phase is too short to hit from outside, the harm is done by the task's own code, by the game's
start script, or by a request of the API.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import pytest
from fault_pools import (
    IMPATIENT,
    Recording,
    assert_fault,
    assert_same_bytes,
    processes_of,
    step,
)
from fault_tasks import ShortSaboteur, harm_action

from sc2pool import SC2GymEnv, SubprocSC2VecEnv
from sc2pool.platform import LINUX, WINDOWS
from tests.support.programs import has_ended
from tests.support.systems import strike

QUIET_STEPS = 3
"""The number of steps before the harm, which is done to env 0 of two envs."""

# The fault's kind depends on what notices the harm first: the worker's deadline or the watchdog.
EXPECTED_KINDS = {
    "game KILL": {"game-exited"},
    "game STOP": {"deadline", "stopped"},
    "game hang": {"deadline", "hung"},
    "game crash": {"game-exited"},
    "game exit": {"game-exited"},
    "worker KILL": {"worker-exited"},
    "worker STOP": {"deadline", "stopped"},
}
SIGNALS = ("game KILL", "game STOP", "worker KILL", "worker STOP")


def play_on_after(
    env: SubprocSC2VecEnv,
    undisturbed: Recording,
    harm_step: Callable[[], Any],
    kinds: set[str],
    phase: str,
) -> None:
    """Play steps before, during and after a harm; compare all of them with an undisturbed run.

    Env 1 is not affected. The episode of env 0 is cut short. Env 0 then plays episode 2, which is
    the first episode of env 2 in the undisturbed run.
    """
    expected = undisturbed.observations
    assert_same_bytes(env.reset(), expected[0][:2])
    for number in range(1, QUIET_STEPS + 1):
        assert_same_bytes(step(env, 0, 0)[0], expected[number][:2])

    observations, rewards, dones, infos = harm_step()

    assert_same_bytes(observations[0], expected[0][2])
    assert_same_bytes(infos[0]["terminal_observation"], expected[QUIET_STEPS][0])
    assert infos[0]["TimeLimit.truncated"] is True
    assert infos[0]["sc2pool.synthetic"] is True
    assert_fault(infos[0], kinds, phase, instance=0)
    assert rewards[0] == 0.0
    assert dones.tolist() == [True, False]
    assert_same_bytes(observations[1], expected[QUIET_STEPS + 1][1])
    assert infos[1] == {"TimeLimit.truncated": False}
    for number in range(1, 4):
        observations, _, dones, infos = step(env, 0, 0)
        assert_same_bytes(observations[0], expected[number][2])
        assert_same_bytes(observations[1], expected[QUIET_STEPS + 1 + number][1])
        assert not dones.any()
        assert infos == [{"TimeLimit.truncated": False}] * 2
    assert sum(env.stats().replacements.values()) == 1


@pytest.mark.parametrize(
    ("harm", "temper", "kinds"),
    [
        *((harm, "default", kinds) for harm, kinds in EXPECTED_KINDS.items()),
        # The process of the crashed game stays alive, as if an error reporter showed a dialog.
        ("game crash", "error-box", EXPECTED_KINDS["game hang"]),
    ],
)
def test_in_a_step(make_env, undisturbed, tempered, harm, temper, kinds):  # noqa: PLR0917
    env = make_env(config=IMPATIENT, game=tempered(temper))
    play_on_after(env, undisturbed, lambda: step(env, harm_action(harm), 0), kinds, "stepping")


@pytest.mark.parametrize("harm", SIGNALS)
def test_between_steps(make_env, undisturbed, wait_for, harm):
    """A killed process is noticed before the next step, and a stopped process during the step."""
    env = make_env(config=IMPATIENT)

    def harm_step() -> Any:
        processes = processes_of(env, 0)
        target, name = harm.split()
        strike(processes[target].pid, name)
        if harm == "game KILL":
            wait_for(lambda: not processes["game"].is_running())  # the game's end is reported
        elif name == "KILL" and LINUX:  # on other systems the game lives until the step
            for process in processes.values():
                wait_for(lambda p=process: has_ended(p))
        return step(env, 0, 0)

    # The worker reports the end of its game, but its own end is noticed only in the step.
    phase = "idle" if harm == "game KILL" else "stepping"
    play_on_after(env, undisturbed, harm_step, EXPECTED_KINDS[harm], phase)


@pytest.mark.parametrize("phase", ["launching", "resetting"])
@pytest.mark.parametrize("harm", SIGNALS)
def test_before_the_first_observation(  # noqa: PLR0917
    make_env, undisturbed, arm, request, harm, phase
):
    """The fault is shown only in `reset_infos`, in the entry of the env that was harmed."""
    game = "striking_installation" if phase == "launching" else "standin_dir"
    arm(harm)
    env = make_env(game=request.getfixturevalue(game), config=IMPATIENT)
    assert_same_bytes(env.reset(), undisturbed.observations[0][:2])
    (struck,) = (i for i, info in enumerate(env.reset_infos) if "sc2pool.fault" in info)
    assert_fault(env.reset_infos[struck], EXPECTED_KINDS[harm], phase, instance=struck)
    observations, _, dones, infos = step(env, 0, 0)
    assert_same_bytes(observations, undisturbed.observations[1][:2])
    assert not dones.any()
    assert infos == [{"TimeLimit.truncated": False}] * 2
    assert sum(env.stats().replacements.values()) == 1


@pytest.mark.parametrize("harm", ["game KILL", "worker KILL"])
def test_while_the_next_episode_begins(begun, arm, harm):
    """The end of the episode is reported unchanged; only `reset_infos` shows the fault."""
    env = begun(n=1, task=ShortSaboteur)
    for _ in range(4):
        assert not step(env, 0)[2].any()
    arm(harm)
    _, _, dones, (info,) = step(env, 0)
    assert dones.all()
    assert set(info) == {"TimeLimit.truncated", "terminal_observation"}
    assert_fault(env.reset_infos[0], EXPECTED_KINDS[harm], "resetting", instance=0)
    assert not step(env, 0)[2].any()


def test_a_gym_env_is_truncated_and_goes_on_after_reset(standin_dir):
    with closing(SC2GymEnv(task=ShortSaboteur, game=standin_dir)) as env:
        first, _ = env.reset(seed=1)
        last, reward, terminated, truncated, info = env.step(harm_action("game KILL"))
        assert_same_bytes(last, first)
        assert (reward, terminated, truncated) == (0.0, False, True)
        assert_fault(info, {"game-exited"}, "stepping", instance=0)
        env.reset()
        assert env.step(0)[2:4] == (False, False)


def take_all_exit_statuses(*_: object) -> None:
    """A handler of SIGCHLD that takes all exit statuses, as some programs have."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


@pytest.mark.skipif(WINDOWS, reason="it has no SIGCHLD")
@pytest.mark.parametrize(
    ("handler", "victim", "words"),
    [
        (signal.SIG_IGN, "game", "signal SIGKILL"),
        (signal.SIG_IGN, "worker", "because this process ignores or handles SIGCHLD"),
        # The handler and the pool both try to take the exit status.
        (take_all_exit_statuses, "worker", "ignores or handles SIGCHLD|was killed by SIGKILL"),
    ],
)
def test_a_trainer_that_ignores_the_end_of_its_children(begun, handler, victim, words):
    before = signal.signal(signal.SIGCHLD, handler)
    try:
        env = begun()
        processes_of(env, 0)[victim].kill()
        _, _, dones, infos = step(env, 0, 0)
        assert dones.tolist() == [True, False]
        assert re.search(words, infos[0]["sc2pool.fault"]["detail"])
        env.close()
    finally:
        signal.signal(signal.SIGCHLD, before)
