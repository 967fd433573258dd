"""gymnasium's vector face in real time, in each of its autoreset modes."""

from __future__ import annotations

import numpy as np
import psutil
import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError
from gymnasium.vector import AutoresetMode
from realtime_tasks import Short

from sc2pool import SC2VectorEnv

ACTIONS = np.zeros(2, np.int64)


class InTurn(Short):
    """The first env's episodes have two steps, the second's four."""

    def on_start(self) -> None:
        super().on_start()
        self.max_loops = 8 * (1 + self.level)


def stopped(env: SC2VectorEnv) -> list[bool]:
    games = [psutil.Process(instance["pid"]) for instance in env.stats()["instances"]]
    return [game.status() == psutil.STATUS_STOPPED for game in games[:2]]


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_paused_and_played_on_in_every_mode(freezing, mode):
    env = SC2VectorEnv(
        n=2, task=InTurn, game=freezing, realtime=True, autoreset_mode=mode, spares=1
    )
    try:
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
        assert told["recycles"] == {}
        assert told["realtime"]["steps"] >= 12
        env.reset_async()
        with pytest.raises(AlreadyPendingCallError, match="pause"):
            env.pause()
        env.reset_wait()
    finally:
        env.close()
    with pytest.raises(ClosedEnvironmentError):
        env.pause()
