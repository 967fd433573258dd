"""`PauseGate` on a game with a pause key, and `PausableEnv`. Every pause must stop the game.

A `PauseGate` that stops processes is tested in `test_pause.py`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from gymnasium import spaces
from live_game import LiveEnv, LiveGame
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from sc2pool import AsyncPPO, PausableEnv, PauseCallback, PauseGate, RealTimeEnv
from sc2pool.errors import ClosedError, ConfigError, FaultKind, GameFault, PauseError
from sc2pool.pool.statistics import PauseStats
from sc2pool.realtime import gate as gate_module
from tests.support.programs import Trainer, has_ended

STILL_S = 0.5
"""A time of 50 ticks, so that a delay on a busy machine does not look like a pause."""


def nothing() -> None:
    """Stand in for a key without an effect."""


MakeGame = Callable[..., LiveGame]


@pytest.fixture
def start() -> Iterator[MakeGame]:
    """A fixture that starts games, and ends them after the test."""
    games = []

    def start_game(*options: str) -> LiveGame:
        games.append(LiveGame(*options))
        return games[-1]

    yield start_game
    for game in games:
        game.close()


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fixture that shortens the gate's wait, because the test's game never reacts."""
    monkeypatch.setattr(gate_module, "_REACTS_WITHIN_S", 1.0)


def by_ticks(game: LiveGame) -> PauseGate:
    key, ticks = game.press_p, game.read_tick
    return PauseGate(pause=key, resume=key, ticks=ticks, still_s=STILL_S)


def by_picture(game: LiveGame) -> PauseGate:
    key, picture = game.press_p, game.picture
    return PauseGate(pause=key, resume=key, picture=picture, still_s=STILL_S)


def by_still_picture(game: LiveGame) -> PauseGate:
    key, picture = game.press_p, game.still_picture
    return PauseGate(pause=key, resume=key, picture=picture, still_s=STILL_S)


BY_KEY = pytest.mark.parametrize("make_gate", [by_ticks, by_picture, by_still_picture])


@BY_KEY
def test_pauses_by_key_are_counted(start, make_gate, wait_for):
    game = start()
    with make_gate(game) as gate:
        gate.resume()
        gate.pause()
        gate.pause()
        tick = game.tick
        gate.resume()
        assert gate.paused
        assert game.presses == 1
        assert game.tick == tick
        gate.resume()
        assert not gate.paused
        assert game.presses == 2
        wait_for(lambda: game.tick > tick)
        stats = gate.stats()
        assert (stats.count, stats.loops) == (1, 0)
        assert stats.paused_s > 0
        with gate.pausing():
            assert game.paused
        assert gate.stats().count == 2
    with pytest.raises(ClosedError):
        gate.pause()


@BY_KEY
def test_close_resumes_a_game_that_is_paused_by_key(start, make_gate, wait_for):
    game = start()
    gate = make_gate(game)
    gate.pause()
    gate.pause()
    tick = game.tick
    gate.close()
    gate.close()
    assert game.presses == 2
    wait_for(lambda: game.tick > tick)


@pytest.mark.parametrize(
    ("make_gate", "message"),
    [
        (by_ticks, "was not paused: its tick still changes"),
        (by_picture, "was not paused: its picture still changes"),
        (by_still_picture, "its picture changed neither before nor after"),
    ],
)
def test_a_key_that_does_nothing_is_a_pause_error(start, soon, make_gate, message):
    game = start("no-key")
    with make_gate(game) as gate:
        with pytest.raises(PauseError, match=message):
            gate.pause()
        assert not gate.paused
        assert gate.stats() == PauseStats(0, 0.0, 0)
    assert game.presses == 1, "close does not press the key of a game that is not paused"


def test_a_game_that_is_already_paused_is_not_resumed_by_its_toggle(start, soon):
    game = start("paused")
    with by_ticks(game) as gate:
        with pytest.raises(
            PauseError, match=r"does not run: its ticks stood still at 0 for 1\.0 s"
        ):
            gate.pause()
        assert not gate.paused
    assert game.presses == 0
    assert game.paused


def test_a_toggle_that_resumes_instead_is_seen_in_the_picture(start, soon):
    game = start("paused")
    with (
        by_picture(game) as gate,
        pytest.raises(PauseError, match="was not paused: its picture still changes"),
    ):
        gate.pause()


def test_a_resume_that_does_nothing_is_a_pause_error_and_may_be_repeated(start, soon):
    game = start()
    keys = iter([nothing, nothing, game.press_p])

    def press_next() -> None:
        next(keys)()

    gate = PauseGate(pause=game.press_p, resume=press_next, ticks=game.read_tick)
    gate.pause()
    message = f"did not resume: its tick stood still at {game.tick} for 1.0 s"
    with pytest.raises(PauseError, match=message):
        gate.resume()
    assert gate.paused
    with pytest.raises(PauseError, match=message):
        gate.resume()
    gate.resume()
    assert not gate.paused
    gate.close()


def test_close_adds_its_error_to_the_one_in_the_block(start, soon):
    game = start()
    gate = PauseGate(pause=game.press_p, resume=nothing, ticks=game.read_tick)
    with pytest.raises(ZeroDivisionError) as raised, gate:
        gate.pause()
        raise ZeroDivisionError
    assert raised.value.__notes__[0].startswith("PauseGate: the game did not resume")


def test_a_game_that_its_user_resumes_is_not_paused_by_the_toggle(start, wait_for, caplog):
    game = start()
    with by_ticks(game) as gate:
        gate.pause()
        tick = game.tick
        game.press_p()
        wait_for(lambda: game.tick > tick + 10)
        gate.resume()
        assert not gate.paused
        assert gate.stats().loops > 10
    assert game.presses == 2
    assert not game.paused
    assert "the game ran before resume(): its tick changed in the pause" in caplog.text


def test_an_interrupt_in_the_check_leaves_a_game_that_close_resumes(start, wait_for):
    game = start()
    interrupts = [KeyboardInterrupt]

    def read_tick() -> int:
        if game.paused and interrupts:
            raise interrupts[0]
        return game.tick

    interrupted = PauseGate(pause=game.press_p, resume=game.press_p, ticks=read_tick)
    with pytest.raises(KeyboardInterrupt):
        interrupted.pause()
    assert interrupted.paused
    interrupts.clear()
    tick = game.tick
    interrupted.close()
    wait_for(lambda: game.tick > tick)


@pytest.mark.parametrize("how", ["stopped", "by key"])
@pytest.mark.parametrize("when", ["before a pause", "in a pause"])
def test_a_game_that_dies_is_a_fault(start, soon, how, when):
    game = start()
    keys = {"pause": game.press_p, "resume": game.press_p, "ticks": game.read_tick}
    with PauseGate(game.pid, **(keys if how == "by key" else {})) as gate:
        if when == "in a pause":
            gate.pause()
        game.kill()
        message = f"the game, process {game.pid}, has ended {when}"
        with pytest.raises(GameFault, match=message) as raised:
            (gate.resume if when == "in a pause" else gate.pause)()
        assert raised.value.kind == FaultKind.GAME_EXITED


def test_the_end_of_a_game_without_pid_is_a_pause_error(start, soon):
    game = start()
    gate = PauseGate(pause=game.press_p, resume=nothing, ticks=game.read_tick)
    gate.pause()
    game.kill()
    with pytest.raises(PauseError, match="did not resume"):
        gate.close()


def test_a_game_that_is_paused_by_key_outlives_its_trainer():
    program = Path(__file__).parent / "programs" / "gate_trainer.py"
    with Trainer(program, "by key") as trainer:
        trainer.wait_for_stage("waiting")
        trainer.process.kill()
        trainer.process.wait()
        (game,) = trainer.children
        try:
            assert not has_ended(game)
            assert game.status() != psutil.STATUS_STOPPED, "its user can close its pause menu"
        finally:
            game.kill()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"needs the pid of a game, or pause=, resume= and ticks= or picture="),
        ({"pause": nothing}, r"needs pause=, .* got pause="),
        ({"pause": nothing, "resume": nothing}, r"one of ticks= and picture=, got pause=, resume="),
        (
            {"pause": nothing, "resume": nothing, "ticks": nothing, "picture": nothing},
            r"one of ticks= and picture=, got pause=, resume=, ticks=, picture=",
        ),
        ({"ticks": nothing}, r"got ticks="),
        ({"pause": "p", "resume": nothing, "ticks": nothing}, r"pause='p' cannot be called"),
        (
            {"pause": nothing, "resume": nothing, "ticks": nothing, "still_s": 0},
            r"still_s=0, expected a positive number",
        ),
        ({"pid": "supertux2"}, r"pid='supertux2', expected the pid of a process"),
        ({"pid": -1}, r"pid=-1, expected the pid of a process"),
        ({"pid": os.getpid()}, r"is this program or a parent of it"),
        # The first process under Wine has no parent.
        ({"pid": os.getppid() or os.getpid()}, r"is this program or a parent of it"),
    ],
)
def test_wrong_arguments_are_a_config_error(options, message):
    threads = threading.active_count()
    with pytest.raises(ConfigError, match=message):
        PauseGate(**options)
    assert threading.active_count() == threads
    assert not psutil.Process().children()


UPDATE_S = 0.5
"""50 ticks."""
N_STEPS = 8


class SlowLearner(PPO):
    """PPO with slow updates. It records each update's ticks, and whether the game was paused."""

    game: LiveGame | None = None

    def train(self) -> None:
        before = self.game.tick if self.game else 0
        time.sleep(UPDATE_S)
        super().train()
        if self.game:
            self.passed.append((self.game.tick - before, self.game.paused))


def pausable(make_gate: Callable[[LiveGame], PauseGate]) -> PausableEnv[Any, Any]:
    env = LiveEnv()
    return PausableEnv(env, make_gate(env.game))


def stopped(game: LiveGame) -> PauseGate:
    return PauseGate(game.pid)


def learner(env: Any) -> SlowLearner:
    model = SlowLearner("MlpPolicy", env, n_steps=N_STEPS, batch_size=8, n_epochs=1, device="cpu")
    model.passed = []
    return model


@pytest.mark.parametrize("make_gate", [stopped, by_ticks])
def test_no_tick_passes_in_the_updates_of_a_single_game(make_gate):
    with closing(pausable(make_gate)) as env:
        model = learner(env)
        model.game = env.unwrapped.game
        model.learn(3 * N_STEPS, callback=PauseCallback())
        by_key = make_gate is by_ticks
        assert model.passed == [(0, by_key)] * 3
        stats = env.stats()
        assert (stats.count, stats.loops) == (2, 0), "the last pause has not ended"
        assert stats.paused_s >= 2 * UPDATE_S
        tick = model.game.tick
        env.pause()
        *_, info = env.step(0)  # a step resumes the game
        assert info["tick"] > tick
        env.pause()
        env.reset()  # a reset resumes the game
        env.step(0)
        env.pause()
    assert not psutil.Process().children()


def make_pausable() -> PausableEnv[Any, Any]:
    return pausable(stopped)


class LiveRealTimeEnv(RealTimeEnv[Any, Any]):
    """The live game as a `RealTimeEnv`, whose clock counts ticks or seconds."""

    observation_space = spaces.Box(0.0, np.inf, (1,), np.float32)
    action_space = spaces.Discrete(2)
    period_s = 0.2

    def __init__(self) -> None:
        self.game = LiveGame()
        self.game_pid = self.game.pid

    def begin(self, options: dict[str, Any]) -> None:
        """Do nothing, because the game has no episodes."""

    def act(self, action: int) -> None:
        """Do nothing, because the game has no actions."""

    def observe(self) -> Any:
        return np.array([self.game.tick], np.float32)

    def close(self) -> None:
        super().close()
        self.game.close()


class HasNoPid(LiveRealTimeEnv):
    def __init__(self) -> None:
        super().__init__()
        self.game_pid = None


class CountsTicks(LiveRealTimeEnv):
    period_ticks = 20

    def ticks(self) -> int:
        return self.game.tick


@pytest.mark.timing
@pytest.mark.parametrize(
    ("make_env", "make_gate"),
    [
        (LiveRealTimeEnv, stopped),
        (LiveRealTimeEnv, by_picture),
        (HasNoPid, stopped),
        (CountsTicks, stopped),
        (CountsTicks, by_ticks),
    ],
)
def test_a_pause_is_no_late_action_of_a_real_time_env(make_env, make_gate):
    game_env = make_env()
    with closing(PausableEnv(game_env, make_gate(game_env.game))) as env:
        env.reset()
        env.step(0)
        env.pause()
        time.sleep(5 * LiveRealTimeEnv.period_s)
        *_, info = env.step(0)
        assert info["sc2pool.lost_periods"] == 0
        assert info["sc2pool.gap_s"] < LiveRealTimeEnv.period_s
        assert env.stats().count == 1


def test_several_games_are_paused_together():
    with closing(DummyVecEnv([make_pausable] * 2)) as env:
        model = learner(env)
        model.learn(2 * N_STEPS * 2, callback=PauseCallback())
        assert [stats.count for stats in env.env_method("stats")] == [1, 1]
        assert all(stats.paused_s >= UPDATE_S for stats in env.env_method("stats"))


def test_an_env_that_cannot_be_paused_is_a_config_error():
    with closing(DummyVecEnv([LiveEnv])) as env:
        with pytest.raises(
            ConfigError, match=r"PausableEnv\(env, PauseGate\(pid\)\), got DummyVec"
        ):
            learner(env).learn(8, callback=PauseCallback())
        actor = AsyncPPO("MlpPolicy", env, n_steps=8, batch_size=8, device="cpu")
        with pytest.raises(ConfigError, match="AsyncPPO plays while it learns"):
            actor.learn(8, callback=PauseCallback())


def test_close_closes_the_env_of_a_game_that_does_not_resume(start, soon):
    env = LiveEnv()
    game = env.game
    gate = PauseGate(pause=game.press_p, resume=nothing, ticks=game.read_tick)
    pausing = PausableEnv(env, gate)
    pausing.pause()
    with pytest.raises(PauseError, match="did not resume"):
        pausing.step(0)
    with pytest.raises(PauseError, match="did not resume"):
        pausing.close()
    assert not psutil.Process().children()
