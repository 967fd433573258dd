"""`SC2VectorEnv` in real time, in each of its autoreset modes."""

from __future__ import annotations

import multiprocessing
from contextlib import closing

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError
from gymnasium.vector import AutoresetMode
from realtime_pools import are_stopped, games
from realtime_tasks import OneIsSlow, Short

from sc2pool import SC2VectorEnv
from sc2pool.protocol.game_time import LOOPS_PER_S

ACTIONS = np.zeros(2, np.int64)


class InTurn(Short):
    """The first env's episodes have two steps, the second's four."""

    def on_start(self) -> None:
        super().on_start()
        self.max_loops = 8 * (1 + self.level)


def stopped(env: SC2VectorEnv) -> list[bool]:
    return are_stopped(games(env)[:2])


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_paused_and_played_on_in_every_mode(freezing, mode):
    with closing(
        SC2VectorEnv(n=2, task=InTurn, game=freezing, realtime=True, autoreset_mode=mode, spares=1)
    ) as env:
        assert (env.realtime, env.step_mul) == (True, InTurn.step_mul)
        env.set_attr("level", [0, 1])
        env.reset()
        env.pause()
        assert stopped(env) == [True, True]
        env.resume()
        assert stopped(env) == [False, False]
        over = np.zeros(2, np.bool_)
        episodes = 0
        for _ in range(12):
            if mode is AutoresetMode.DISABLED and over.any():
                env.pause()
                env.reset(options={"reset_mask": over})
                over = np.zeros(2, np.bool_)
            _, _, terminated, truncated, infos = env.step(ACTIONS)
            assert "sc2pool.fault" not in infos
            stepped = ~over if mode is AutoresetMode.NEXT_STEP else ~(terminated | truncated)
            if mode is not AutoresetMode.DISABLED and stepped.any():
                assert infos["_sc2pool.gap_s"].tolist() == stepped.tolist()
                assert (infos["sc2pool.gap_s"][stepped] > 0).all()
            over = terminated | truncated
            episodes += int(over.sum())
            if over.all():
                continue
            env.pause()
            playing = ~over if mode is not AutoresetMode.SAME_STEP else np.ones(2, np.bool_)
            assert stopped(env) == playing.tolist()
        assert episodes >= 4
        told = env.stats()
        assert told.recycles == {}
        assert told.realtime.steps >= 12
        env.reset_async()
        with pytest.raises(AlreadyPendingCallError, match="pause"):
            env.pause()
        env.reset_wait()
    with pytest.raises(ClosedEnvironmentError):
        env.pause()


@pytest.mark.timing
@pytest.mark.parametrize("spares", [0, 1])
def test_games_begin_together(freezing, spares):
    with closing(
        SC2VectorEnv(n=2, task=OneIsSlow, game=freezing, realtime=True, spares=spares)
    ) as env:
        for _ in range(2):
            _, began = env.reset()
            infos = env.step(ACTIONS)[4]
            assert infos["sc2pool.gap_s"][0] < 0.5, "it did not play while the other was reset"
            assert infos["loop"][0] - began["loop"][0] < LOOPS_PER_S / 2


@pytest.mark.timing
def test_a_reset_that_is_late_is_waited_for_again(freezing):
    with closing(SC2VectorEnv(n=2, task=OneIsSlow, game=freezing, realtime=True)) as env:
        env.reset()
        env.reset_async()
        with pytest.raises(multiprocessing.TimeoutError):
            env.reset_wait(timeout=0.2)
        env.reset_wait()
        assert env.step(ACTIONS)[4]["sc2pool.gap_s"][0] < 0.5
