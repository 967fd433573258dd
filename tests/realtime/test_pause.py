"""Pools and `PauseCallback` pause games in real time, and `PauseGate` pauses programs.

Paused games are stopped and miss nothing, and faults of paused games are still found.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from async_callbacks import Recording
from gymnasium.error import AlreadyPendingCallError
from realtime_tasks import Short, TellsLoop, Unstoppable, WithGrandchildren, start_family
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CallbackList
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import VecMonitor

from sc2pool import PauseCallback, SC2GymEnv, SubprocSC2VecEnv
from sc2pool.config import PoolConfig
from sc2pool.errors import ClosedError, ConfigError, PauseError
from sc2pool.pool.machine import sweep
from sc2pool.protocol import LOOPS_PER_S
from sc2pool.realtime.gate import PauseGate
from tests.realtime.conftest import are_stopped, games, play_until_spares_are_held, states, step
from tests.support.programs import PER_GAME, Trainer, assert_gone, has_ended

PAUSE_S = 1.0
"""The length of a pause in seconds, in which a game in real time plays 22 loops."""
PERIOD_S = TellsLoop.step_mul / LOOPS_PER_S
VIGILANT = PoolConfig(watchdog_interval_s=0.1)
"""A pool config whose watchdog soon ends a stopped game that the pool has not paused."""


@pytest.fixture
def with_spare(begun):
    """A fixture that makes a pool whose spare is stopped at its first observation."""

    def make(**options):
        env = begun(spares=1, **options)
        play_until_spares_are_held(env)
        return env

    return make


def fall_in_step(env: SubprocSC2VecEnv) -> None:
    """Pause for the first time, and make the envs' periods begin within one loop of each other."""
    env.pause()
    env.resume()
    # All envs are now over a period late, so their next periods begin at the observed loops.
    time.sleep(2.5 * PERIOD_S)
    step(env)


@pytest.mark.timing
def test_no_loop_passes_and_nobody_takes_it_for_a_fault(with_spare):
    env = with_spare(config=VIGILANT)
    fall_in_step(env)
    before = [info["loop"] for info in step(env)[3]]
    earlier = env.stats().pauses
    env.pause()
    assert are_stopped(games(env)) == [True] * 3
    assert states(env) == ["paused", "paused", "held"]
    time.sleep(PAUSE_S)
    assert are_stopped(games(env)) == [True] * 3
    infos = step(env)[3]
    after = [info["loop"] for info in infos]
    for info in infos:
        assert info["sc2pool.gap_s"] < PAUSE_S / 2, "a pause is no delay"
        assert info["sc2pool.skipped_loops"] < LOOPS_PER_S / 2
    stats = env.stats()
    pauses = stats.pauses
    assert pauses.count - earlier.count == 2, "the spare is paused until it is needed"
    assert pauses.loops == 0
    assert pauses.paused_s - earlier.paused_s >= 2 * PAUSE_S
    assert all(late - early <= 4 + 4 for early, late in zip(before, after, strict=True))
    assert are_stopped(games(env)) == [False, False, True]
    assert stats.replacements == {}


def test_a_game_that_catches_up_is_told_of(begun, standin_dir):
    env = begun(game=standin_dir, n=1)
    (before,) = step(env)[3]
    began_s = time.monotonic()
    env.pause()
    time.sleep(PAUSE_S)
    (after,) = step(env)[3]
    took_s = time.monotonic() - began_s
    lost = env.stats().pauses.loops
    assert int(PAUSE_S * LOOPS_PER_S) <= lost <= 1 + took_s * LOOPS_PER_S
    assert after["loop"] - before["loop"] >= lost + 4
    assert after["sc2pool.skipped_loops"] >= 22
    assert after["sc2pool.lost_periods"] >= 22 // TellsLoop.step_mul
    assert after["sc2pool.gap_s"] < took_s - PAUSE_S / 2, "a pause is no delay of the learner's"


def test_counted_and_without_effect_where_there_is_nothing_to_do(make_env):
    env = make_env()
    env.resume()
    env.pause()
    assert are_stopped(games(env)) == [False, False], "no episode has begun"
    env.resume()
    env.reset()
    env.pause()
    env.pause([-1])
    env.resume()
    assert are_stopped(games(env)) == [False, True]
    env.resume(1)
    env.resume()
    assert are_stopped(games(env)) == [False, False]
    env.pause()
    env.pause()
    step(env)  # a step resumes the games
    assert are_stopped(games(env)) == [False, False]
    env.pause(0)
    env.resume(0)
    assert are_stopped(games(env)) == [False, False]
    env.pause()
    assert step(env)[2].tolist() == env.reset().shape[0] * [False]


def test_not_with_a_step_pending(begun):
    env = begun()
    env.step_async(np.zeros(2, np.int64))
    with pytest.raises(AlreadyPendingCallError, match=r"pending step of envs \[0, 1\]"):
        env.pause()
    assert env.step_wait()[3][0]["loop"]
    assert are_stopped(games(env)) == [False, False]


def test_a_reset_goes_on_too(with_spare):
    env = with_spare()
    held = env.stats().instances[-1].episode
    env.pause()
    env.reset()
    assert are_stopped(games(env))[:2] == [False, False]
    while states(env)[-1] != "held" or env.stats().instances[-1].episode == held:
        assert not step(env)[2].any()
    assert are_stopped(games(env)) == [False, False, True]


def test_attributes_and_methods_while_paused(with_spare):
    env = with_spare(n=1)
    env.pause()
    assert env.get_attr("level") == [0]
    assert env.env_method("answer") == [42]
    assert are_stopped(games(env)) == [True, True]
    env.set_attr("level", 3)
    assert are_stopped(games(env))[0]
    assert step(env)[3][0]["level"] == 3


def test_an_env_that_is_over_takes_a_paused_spare(with_spare):
    env = with_spare(n=1, task=Short)
    env.reset()
    while states(env) != ["playing", "held"] or env.stats().instances[0].episode_steps != 1:
        step(env)
    held = games(env)[1].pid
    env.pause()
    _, _, dones, infos = step(env)
    assert dones.all()
    assert "sc2pool.fault" not in infos[0]
    assert games(env)[0].pid == held
    assert not are_stopped(games(env))[0]
    for _ in range(5):
        step(env)
    assert env.stats().replacements == {}
    assert env.stats().pauses.count == 1
    assert env.stats().realtime.spares.held >= 1


def test_a_spare_that_is_launched_meanwhile_begins_no_episode(with_spare):
    env = with_spare(n=1)
    env.pause()
    games(env)[1].kill()
    while states(env)[1] != "idle":
        assert env.get_attr("level") == [0]  # the pool lets games run during a call
    assert states(env)[0] == "paused"
    play_until_spares_are_held(env)
    env.pause()
    assert are_stopped(games(env)) == [True, True]
    env.resume()
    assert states(env) == ["playing", "held"]
    assert env.stats().replacements == {"game-exited": 1}


def test_killed_while_paused(begun):
    env = begun(config=VIGILANT)
    step(env)
    env.pause()
    victim = games(env)[0]
    victim.kill()
    _, _, dones, infos = step(env)
    assert dones.tolist() == [True, False]
    assert infos[0]["sc2pool.fault"]["kind"] == "game-exited"
    assert "sc2pool.fault" not in infos[1]
    assert not step(env)[2].any()


def test_stopped_by_someone_else_is_a_fault_still(begun):
    env = begun(config=VIGILANT)
    env.pause()
    env.resume()
    games(env)[1].suspend()
    dones, infos = np.zeros(2), []
    while not dones.any():
        _, _, dones, infos = step(env)
    assert dones.tolist() == [False, True]
    assert infos[1]["sc2pool.fault"]["kind"] == "stopped"


def test_a_game_that_cannot_be_paused_is_an_error_and_goes_on(begun):
    env = begun(task=Unstoppable)
    with pytest.raises(PauseError, match=r"env 0: .*may not be stopped"):
        env.pause()
    assert are_stopped(games(env)) == [False, False]
    assert not step(env)[2].any()


def test_step_by_step_a_pause_is_nothing_special(begun):
    env = begun(realtime=False, config=VIGILANT)
    before = [info["loop"] for info in step(env)[3]]
    env.pause()
    assert are_stopped(games(env)) == [True, True]
    time.sleep(0.5)
    infos = step(env)[3]
    assert [info["loop"] for info in infos] == [loop + 4 for loop in before]
    for info in infos:
        assert not [key for key in info if key.startswith("sc2pool.")], "and nothing is late"
    assert env.stats().realtime.steps == 0
    assert env.stats().realtime.gap_s is None
    assert env.stats().pauses.loops == 0
    assert env.stats().replacements == {}


def test_a_single_env(freezing):
    with closing(SC2GymEnv(TellsLoop, game=freezing, realtime=True)) as env:
        assert (env.realtime, env.step_mul) == (True, TellsLoop.step_mul)
        env.reset()
        env.pause()
        env.pause()
        assert are_stopped(games(env)) == [True]
        assert not env.step(0)[3]
        assert are_stopped(games(env)) == [False]


def test_an_env_of_the_users_with_grandchildren():
    with closing(SubprocSC2VecEnv([WithGrandchildren])) as env:
        env.reset()
        (instance,) = env.stats().instances
        worker = psutil.Process(instance.worker_pid)
        family = worker.children(recursive=True)
        assert len(family) == 2
        env.pause()
        assert are_stopped([*family, worker]) == [True, True, False]
        step(env)
        assert are_stopped(family) == [False, False]
        env.pause()
    assert psutil.wait_procs(family, timeout=2.0)[1] == []


def test_a_trainer_killed_in_a_pause_leaves_nothing(freezing, run_temp):
    program = Path(__file__).parent / "programs" / "paused_trainer.py"
    with Trainer(program, freezing) as trainer:
        stopped = trainer.wait_for_stage("paused")["stopped"]
        assert stopped == 2 + 2, "two games; a game and its child"
        assert len(trainer.children) == 3 + 2 * PER_GAME + 2, "three workers, and what they have"
    assert_gone(trainer.children)
    sweep(run_temp)


N_STEPS = 4
UPDATE_S = 0.5
"""The sleep before an update in seconds, in which a game in real time plays 11 loops."""


def stopped(env: SubprocSC2VecEnv) -> list[bool]:
    return are_stopped(games(env))


class SlowLearner(PPO):
    """PPO with slow updates; it records before and after each update whether games are stopped."""

    seen: list[list[bool]]
    fails = False

    def train(self) -> None:
        games = self.env.unwrapped
        self.seen.append(stopped(games))
        time.sleep(UPDATE_S)
        super().train()
        self.seen.append(stopped(games))
        if self.fails:
            raise RuntimeError("out of memory")


def learner(env: Any) -> SlowLearner:
    model = SlowLearner(
        "MlpPolicy", VecMonitor(env), n_steps=N_STEPS, batch_size=8, n_epochs=1, device="cpu"
    )
    model.seen = []
    return model


def test_no_loop_passes_in_two_updates(make_env, tmp_path):
    env = make_env()
    model = learner(env)
    model.set_logger(configure(str(tmp_path), ["json"]))
    model.learn(2 * N_STEPS * 2, callback=PauseCallback())
    assert model.seen == [[True, True]] * 4
    assert stopped(env) == [True, True]
    env.resume()
    assert stopped(env) == [False, False]
    pauses = env.stats().pauses
    assert pauses.count == 4
    assert pauses.paused_s >= 4 * UPDATE_S
    assert pauses.loops == 0
    log = [json.loads(line) for line in (tmp_path / "progress.json").read_text().splitlines()]
    assert [line["pause/loops_passed"] for line in log] == [0, 0]
    assert log[1]["pause/paused_s"] >= 2 * UPDATE_S
    assert env.stats().replacements == {}


@pytest.mark.parametrize("first", ["the pause", "the other"])
def test_a_rollout_that_ends_early(make_env, first):
    env = make_env()
    model = learner(env)
    callbacks = [PauseCallback(), Recording(N_STEPS + 2)]
    if first == "the other":
        callbacks.reverse()
    model.learn(10 * N_STEPS * 2, callback=CallbackList(callbacks))
    assert model.num_timesteps == (N_STEPS + 2) * 2
    assert model.seen == [[True, True]] * 2
    assert stopped(env) == [True, True]
    # The same callback works in a second training, which resumes the paused games.
    model.learn(N_STEPS * 2, callback=callbacks[0 if first == "the pause" else 1])
    assert model.seen == [[True, True]] * 4
    env.resume()
    assert stopped(env) == [False, False]


def test_an_update_that_raises(make_env):
    env = make_env()
    model = learner(env)
    model.fails = True
    callback = PauseCallback()
    with pytest.raises(RuntimeError, match="out of memory"):
        model.learn(N_STEPS * 2, callback=callback)
    assert stopped(env) == [True, True]
    model.fails = False
    model.learn(N_STEPS * 2, callback=callback)
    assert model.seen == [[True, True]] * 4
    assert env.stats().pauses.loops == 0


def test_another_kind_of_env_is_a_config_error_before_the_first_step():
    model = PPO("MlpPolicy", make_vec_env("CartPole-v1"), n_steps=8, batch_size=8, device="cpu")
    with pytest.raises(
        ConfigError, match=r"needs a SubprocSC2VecEnv or envs with a pause method, .* DummyVecEnv"
    ):
        model.learn(8, callback=PauseCallback())


@pytest.fixture
def family() -> Iterator[list[psutil.Process]]:
    """A fixture: a program, its child and its grandchild."""
    root = start_family(2, start_new_session=True)
    process = psutil.Process(root.pid)
    yield [process, *process.children(recursive=True)]
    os.killpg(root.pid, signal.SIGKILL)
    root.communicate()


def stop_states(family: list[psutil.Process]) -> set[bool]:
    return {process.status() == psutil.STATUS_STOPPED for process in family}


def test_pauses_are_counted(family):
    assert len(family) == 3
    with PauseGate(family[0].pid) as gate:
        gate.resume()
        assert not gate.paused
        gate.pause()
        gate.pause()
        assert stop_states(family) == {True}
        gate.resume()
        assert gate.paused
        assert stop_states(family) == {True}
        gate.resume()
        assert not gate.paused
        assert stop_states(family) == {False}
        with gate.pausing():
            assert stop_states(family) == {True}
        assert stop_states(family) == {False}


def test_close_resumes_the_tree(family):
    gate = PauseGate(family[0].pid)
    gate.pause()
    gate.pause()
    gate.close()
    assert stop_states(family) == {False}
    gate.close()
    with pytest.raises(ClosedError):
        gate.pause()
    assert stop_states(family) == {False}


def test_a_gate_may_be_closed_in_a_pause(family):
    gate = PauseGate(family[0].pid)
    with gate.pausing():
        gate.close()
        assert stop_states(family) == {False}
    gate.resume()
    assert not gate.paused


def test_a_process_that_has_ended_is_a_pause_error():
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises(PauseError, match=str(ended.pid)):
        PauseGate(ended.pid)


@pytest.mark.parametrize("how", ["paused", "resumed", "never paused"])
def test_a_paused_tree_ends_with_the_program_that_paused_it(how):
    program = Path(__file__).parent / "programs" / "gate_trainer.py"
    with Trainer(program, how) as trainer:
        trainer.wait_for_stage("waiting")
        family, all_ = trainer.children, psutil.Process(trainer.process.pid).children()
        assert stop_states(family) == {how == "paused"}
        (guard,) = (child for child in all_ if child not in family)
    assert_gone([guard], within_s=300.0)
    alive = [process for process in family if not has_ended(process)]
    assert alive == ([] if how == "paused" else family)
    for process in reversed(alive):
        process.kill()
