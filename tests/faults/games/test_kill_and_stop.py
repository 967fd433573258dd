"""Games and workers are killed and stopped in every phase, and the batch continues.

In phases that are too short to hit from outside, the task's own code does the harm, or the game's
start script, or a request of the API.
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
"""Steps before the harm, which is done to env 0 of two."""

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
    """Play quiet steps, the step of the harm, and some more; compare all with an undisturbed run.

    Env 1 is not affected. Env 0's episode is cut short; then env 0 plays episode 2, which is env
    2's first one in the undisturbed run.
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
        # The crashed game's process stays, as if an error reporter showed a box.
        ("game crash", "error-box", EXPECTED_KINDS["game hang"]),
    ],
)
def test_in_a_step(make_env, undisturbed, tempered, harm, temper, kinds):  # noqa: PLR0917
    env = make_env(config=IMPATIENT, game=tempered(temper))
    play_on_after(env, undisturbed, lambda: step(env, harm_action(harm), 0), kinds, "stepping")


@pytest.mark.parametrize("harm", SIGNALS)
def test_between_steps(make_env, undisturbed, wait_for, harm):
    """A killed process is noticed before the next step, a stopped one during that step."""
    env = make_env(config=IMPATIENT)

    def harm_step() -> Any:
        processes = processes_of(env, 0)
        target, name = harm.split()
        strike(processes[target].pid, name)
        if harm == "game KILL":
            wait_for(lambda: not processes["game"].is_running())  # its worker has reported it
        elif name == "KILL" and LINUX:  # elsewhere the next step ends the game
            for process in processes.values():
                wait_for(lambda p=process: has_ended(p))
        return step(env, 0, 0)

    # The worker reports its game's end; the worker's own end is noticed in the step.
    phase = "idle" if harm == "game KILL" else "stepping"
    play_on_after(env, undisturbed, harm_step, EXPECTED_KINDS[harm], phase)


@pytest.mark.parametrize("phase", ["launching", "resetting"])
@pytest.mark.parametrize("harm", SIGNALS)
def test_before_the_first_observation(  # noqa: PLR0917
    make_env, undisturbed, arm, request, harm, phase
):
    """The fault shows only in `reset_infos`, in the entry of the env that was harmed."""
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
    """The episode's end is reported unchanged; the fault shows in `reset_infos` only."""
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
    """A handler of SIGCHLD, like that of programs that never wait for the processes they start."""
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
