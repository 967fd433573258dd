"""`step_mul` and `max_loops` of a pool, in place of the task's own."""

from __future__ import annotations

import pytest

from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot


class TellingTask(MoveToBeacon):
    def on_start(self):
        super().on_start()
        self.at_start = (self.step_mul, self.max_loops)

    def info(self):
        loop = self.observation.game_loop
        return {"at_start": self.at_start, "step_mul": self.step_mul, "loop": loop}


class TellingBot(MoveToBeaconBot):
    async def on_start(self):
        await super().on_start()
        self.at_start = (self.step_mul, self.max_loops)

    def info(self):
        loop = self.state.game_loop
        return {"at_start": self.at_start, "step_mul": self.step_mul, "loop": loop}


@pytest.mark.parametrize("task", [TellingTask, TellingBot])
def test_they_hold_for_every_object(play, task):
    for episode in play(task, lambda _: 0, seeds=[1, 2], step_mul=4, max_loops=20):
        infos = [transition.info for transition in episode]
        assert [info["loop"] for info in infos] == [0, 4, 8, 12, 16, 20]
        assert {(info["at_start"], info["step_mul"]) for info in infos} == {((4, 20), 4)}
        assert [t.truncated for t in episode] == [False] * 5 + [True]
        assert not any(t.terminated for t in episode)
