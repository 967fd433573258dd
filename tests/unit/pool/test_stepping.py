"""Tests a pool's steps on a simulated machine with scripted events, one property per test.

`tests/scripts/test_simulation.py` draws such events at random. The tests of this file choose the
events, and assert their consequences.
"""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError, ResetNeeded

from sc2pool.platform import LINUX

if not LINUX:
    pytest.skip("the simulated machine is a Linux", allow_module_level=True)

from sc2pool.config import PoolConfig
from sc2pool.errors import PauseError
from sc2pool.pool.instances.event_loop import _POLL_INTERVAL_S
from sc2pool.pool.instances.instance import ACTIONS_KEPT
from sc2pool.pool.instances.states import State
from sc2pool.pool.pool import Pool
from sc2pool.pool.stepping import Stage
from tests.support.simulation.play import NO_DISK, time_of
from tests.support.simulation.schedule import Event, Schedule
from tests.support.simulation.system import system
from tests.support.simulation.worker import FIELDS
from tests.support.simulation.world import World


def acts(rank: int, how: str = "plain") -> Event:
    """The event in which a worker acts; the rank chooses among the workers that have work to do."""
    return ("act", rank, how)


class Simulated:
    """A pool on a simulated machine; `happens` adds events for the trainer's next wait."""

    def __init__(self, n: int, *, one_book=True, realtime=False, **options) -> None:
        self.world = World(Schedule(n=n, one_book=one_book, realtime=realtime))
        self.pool = Pool(
            [None] * n,
            one_book=one_book,
            config=PoolConfig(fault_report_dir=NO_DISK),
            agree=lambda hellos: hellos[0],
            system=system(self.world),
            **options,
        )
        self.pool.seed(None)

    def happens(self, *events: Event) -> None:
        self.world.events.extend(events)

    def send(self, *actions: int) -> None:
        self.pool.send(np.array(actions)[:, None])

    @property
    def instances(self):
        return [seat.instance for seat in self.pool._supervisor.env_seats]

    @property
    def stages(self) -> list[Stage]:
        return [step.stage for step in self.pool._stepping._steps]


@pytest.fixture
def simulated():
    """The call `simulated(n, …)` makes a started pool of n envs, with the arguments of `Pool`."""
    with ExitStack() as stack:

        def make(n: int, *, begins: bool = True, **options) -> Simulated:
            made = Simulated(n, **options)
            stack.enter_context(time_of(made.world))
            stack.callback(made.pool.close)
            if begins:
                made.pool.reset()
            return made

        yield make


def of(batch, field: str) -> list[int]:
    """One field of the observations of a batch."""
    return batch.observations[:, FIELDS.index(field)].tolist()


def test_a_reset_is_begin_in_all_then_receive(simulated):
    one = simulated(3, begins=False)
    assert one.stages == [Stage.NEW] * 3
    with pytest.raises(ResetNeeded):
        one.send(1, 2, 3)
    batch = one.pool.reset()
    assert of(batch, "number") == [0, 1, 2]
    assert batch.rewards.tolist() == [0, 0, 0]
    assert batch.reset_infos == [{}, {}, {}]
    assert one.stages == [Stage.IDLE] * 3


def test_replies_in_any_order_are_one_batch_in_the_order_of_the_envs(simulated):
    one = simulated(3)
    one.send(10, 11, 12)
    one.happens(acts(2), acts(0), acts(0))
    batch = one.pool.recv()
    assert of(batch, "action") == [10, 11, 12]
    assert batch.rewards.tolist() == [10, 11, 12]
    with pytest.raises(NoAsyncCallError):
        one.pool.recv()


def test_episodes_are_dealt_in_the_order_of_the_envs(simulated):
    one = simulated(3)
    one.send(1, 2, 3)
    one.happens(acts(2, "over"), acts(1), acts(0, "over"))
    batch = one.pool.recv()
    assert of(batch, "number") == [3, 1, 4]
    assert batch.terminated.tolist() == [True, False, True]
    assert [final is not None for final in batch.final_observations] == [True, False, True]
    assert batch.final_observations[2][FIELDS.index("action")] == 3


def test_the_first_that_are_ready_come_back_and_go_on_alone(simulated):
    one = simulated(3)
    one.send(1, 2, 3)
    one.happens(acts(1))
    assert one.pool.recv(min_ready=1).envs.tolist() == [1]
    with pytest.raises(AlreadyPendingCallError, match=r"envs \[0, 2\]"):
        one.send(4, 5, 6)
    one.pool.send(np.array([[5]]), [1])
    assert of(one.pool.recv(), "action") == [1, 5, 3]


def test_pending_steps_are_dropped_at_a_reset(simulated):
    one = simulated(2)
    one.send(5, 6)
    one.happens(acts(0, "over"))
    batch = one.pool.reset()
    assert of(batch, "action") == [0, 0]
    assert of(batch, "number") == [2, 3]
    assert one.pool.pending == 0


def test_a_limited_pool_asks_the_next_env_once_one_has_settled(simulated):
    one = simulated(3, one_book=False, max_concurrency=1, begins=False)
    one.pool.begin()
    assert one.stages == [Stage.BEGINNING, Stage.QUEUED, Stage.QUEUED]
    assert of(one.pool.recv(), "step") == [0, 0, 0]
    one.send(1, 2, 3)
    assert one.stages == [Stage.SENT, Stage.QUEUED, Stage.QUEUED]
    one.happens(acts(0, "over"), acts(0))
    batch = one.pool.recv()
    assert batch.terminated.tolist() == [True, False, False]
    assert of(batch, "action") == [0, 2, 3], "the first one's next episode came before"


def test_games_in_real_time_are_held_until_the_last_one_has_begun(simulated):
    one = simulated(2, realtime=True, begins=False)
    one.pool.begin()
    slow = one.world.workers[1].process
    slow.hung = True
    assert not one.pool.wait(timeout_s=1.0)
    assert [instance.state for instance in one.instances] == [State.HELD, State.RESETTING]
    slow.hung = False
    assert of(one.pool.recv(), "step") == [0, 0]
    assert [instance.state for instance in one.instances] == [State.PLAYING] * 2


def test_a_step_of_all_envs_is_in_the_records_before_anything_uses_them(simulated):
    one = simulated(2)
    for number in range(20):
        one.send(number, number + 1)
        assert one.stages == [Stage.IDLE] * 2, "the fast path leaves the records alone"
        if number < 19:
            assert of(one.pool.recv(), "action") == [number, number + 1]
    with one.pool._bookkeeping:
        pass
    assert one.stages == [Stage.SENT] * 2
    assert [instance.state for instance in one.instances] == [State.STEPPING] * 2
    assert all(instance.deadline.remaining_s() > 0 for instance in one.instances)
    sent = [[int(action[0]) for action in instance.last_actions] for instance in one.instances]
    assert sent == [list(range(20 - ACTIONS_KEPT, 20)), list(range(21 - ACTIONS_KEPT, 21))]
    with pytest.raises(AlreadyPendingCallError):
        one.pool.pause([0])
    assert of(one.pool.recv(), "action") == [19, 20]
    assert one.pool.stats().env_steps == 40


def test_a_reply_that_is_not_plain_takes_the_general_path(simulated):
    one = simulated(2)
    one.send(1, 2)
    one.happens(acts(0), acts(0, "info"))
    infos = one.pool.recv().infos
    assert infos[0] == {}
    assert infos[1].keys() == {"told"}


def test_a_paused_game_leaves_the_fast_path(simulated):
    one = simulated(1)
    one.pool.pause()
    assert not one.pool._stepping.arrange_plain()
    one.send(4)
    assert of(one.pool.recv(), "action") == [4]
    assert one.pool._stepping.arrange_plain()


def test_a_pause_that_was_refused_may_be_tried_again(simulated):
    one = simulated(1)
    one.happens(acts(0, "refused"))
    with pytest.raises(PauseError, match="env 0: the game cannot be stopped"):
        one.pool.pause()
    assert one.pool._stepping.arrange_plain(), "its game continues"
    one.pool.pause()
    assert [instance.state for instance in one.instances] == [State.PAUSED]


def test_a_reset_ends_all_pauses_of_an_env(simulated):
    one = simulated(1)
    one.pool.pause()
    one.pool.pause()
    one.pool.reset()
    assert one.pool._stepping.arrange_plain(), "its game continues"
    one.pool.pause()
    one.pool.resume()
    assert one.pool._stepping.arrange_plain(), "one resume is enough"


def test_a_spare_that_is_held_stays_held_when_a_pause_ends(simulated):
    one = simulated(1, realtime=True, spares=1)
    one.pool.pause()  # waits until the spare's game is stopped
    one.pool.resume()
    (spare,) = one.pool._supervisor.spare_seats
    assert spare.instance.state is State.HELD


def test_what_does_not_ring_is_looked_for_once_in_an_interval(simulated):
    """Events without a doorbell are not checked in each step, because a check is a system call."""
    one = simulated(1)
    loop = one.pool._runtime.loop
    one.world.now_s += _POLL_INTERVAL_S
    assert not loop.look_for_more()
    one.world.apply(("verdict", 0, "soft"))
    assert not loop.look_for_more(), "not yet again"
    one.world.now_s += _POLL_INTERVAL_S
    assert loop.look_for_more()
