"""The record of each env's step, driven by the real supervisor over instances without processes."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError

from sc2pool.config import PoolConfig
from sc2pool.deadline import NEVER
from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.pool.episodes import Episodes, Request
from sc2pool.pool.instances.bookkeeping import Bookkeeping
from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.states import Event, State
from sc2pool.pool.instances.supervisor import Supervisor
from sc2pool.pool.ipc import messages
from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.pool.queues.layout import slot_layout
from sc2pool.pool.queues.memory import map_memory
from sc2pool.pool.queues.slot import Slot
from sc2pool.pool.queues.slots import Slots
from sc2pool.pool.queues.trainer_end import TrainerEnd
from sc2pool.pool.stepping.env_step import Stage
from sc2pool.pool.stepping.stepping import Stepping
from sc2pool.pool.worker.doorbells import Doorbells
from sc2pool.pool.worker.worker_end import WorkerEnd
from sc2pool.tasks.queue_pair import Transition

SPACE = spaces.Box(-100, 100, (1,), np.float32)
ACTIONS = spaces.Discrete(5)
LAYOUT = slot_layout(SPACE, ACTIONS)
FAULT = Fault(FaultKind.GAME_EXITED, Phase.STEPPING, "killed")


class Simulated(Instance):
    """An instance whose worker is this test: a real state table, a real queue pair, no process."""

    def __init__(self, number: int, slots: Slots, slot: int, realtime: bool) -> None:
        self.number = number
        self.state = State.IDLE
        self.deadline = NEVER
        self.start_not_before_s = 0.0
        self.hello = SimpleNamespace(realtime=realtime, rows=1)
        self.games = ()
        self.episode = None
        self.reset_kind = self.memory_problem = self.pause_problem = ""
        self.holds = self.was_spare = False
        self.episodes = self.pauses = 0
        self.last_actions = deque(maxlen=3)
        self.sent = []
        self.queue = TrainerEnd(slots, slot)
        self._doorbells = request, reply = Doorbell.create(), Doorbell.create()
        self.queue.open(request)
        self.queue.attach(LAYOUT)
        player = SimpleNamespace(
            strict=True, realtime=False, reset_kind=lambda: "create", recycle_due=False
        )
        memory = map_memory(slots.descriptor, LAYOUT.size_bytes, self.queue.offset_bytes)
        self._worker = WorkerEnd(
            Slot(memoryview(memory), LAYOUT),
            Doorbells(Doorbell(listening=request.listening), Doorbell(ringing=reply.ringing)),
            player,
            send_out_of_band=lambda *sent: self.queue.deliver(messages.OutOfBand(*sent)),
            hold=lambda: True,
        )

    def _send(self, message) -> None:
        self.sent.append(message)

    def answer(self, value, *, over=False, info=None) -> None:
        """What the worker would put next, for a reset or a step."""
        self._worker.begin(self.queue.sequence, hold=self.holds and self.state is State.RESETTING)
        observation = np.full(1, value, np.float32)
        self._worker.put(Transition(observation, float(value), over, False, info or {}, None))

    def kill(self, *, with_worker: bool) -> None:
        pass

    def leave(self) -> None:
        self.queue.close()
        for doorbell in self._doorbells:
            doorbell.close()


class Simulation:
    """Stands in for the fleet and the event loop; `script` happens while the trainer waits."""

    closed = False

    def __init__(self, n: int, *, realtime=False, **options) -> None:
        self._realtime = realtime
        self._made = 0
        self.slots = Slots(n)
        self.slots.fit(LAYOUT)
        self.seats = [Seat(env, False, b"", self._make(env)) for env in range(n)]
        self.script = deque()
        self.bookkeeping = Bookkeeping()
        self.supervisor = Supervisor(PoolConfig(), self, n, None)
        self.episodes = Episodes(self.supervisor, one_book=options.pop("one_book", True))
        self.stepping = Stepping(
            self,
            self.episodes,
            LAYOUT,
            autoreset=options.pop("autoreset", True),
            realtime=realtime,
            max_concurrency=options.pop("max_concurrency", None),
        )

    @property
    def fleet(self):
        return self

    def doorbells_of(self, instances):
        return [instance.queue.request_doorbell for instance in instances]

    def _make(self, slot: int) -> Simulated:
        self._made += 1
        return Simulated(self._made - 1, self.slots, slot, self._realtime)

    def replace(self, seat) -> None:
        seat.instance.leave()
        seat.instance = self._make(seat.instance.queue.index)

    def wait_until(self, condition, deadline=NEVER) -> None:
        while not condition():
            assert self.script, "the trainer waits for ever"
            self.script.popleft()()

    def instance(self, env) -> Simulated:
        return self.seats[env].instance

    def answers(self, env, value, **how):
        """A step of the script: this env's worker answers."""

        def happen() -> None:
            self.instance(env).answer(value, **how)
            self.supervisor.check_replies(self.seats[env])

        return happen

    def dies(self, env):
        """A step of the script: this env's game dies, and the new one is launched at once."""

        def happen() -> None:
            seat = self.seats[env]
            self.supervisor.handle(seat, messages.Faulted(FAULT, messages.Evidence()))
            if seat.episode is not None:
                self.supervisor.play(seat, seat.episode)

        return happen

    def resumes(self, env):
        """A step of the script: this env's worker has let its game go on."""
        return lambda: self.supervisor.handle(self.seats[env], messages.Resumed(0))

    def reset(self, values):
        """Begin an episode in every env."""
        envs = range(len(self.seats))
        self.stepping.begin(envs, [Request()] * len(self.seats))
        self.script.extend(
            self.answers(env, value) for env, value in zip(envs, values, strict=True)
        )
        return self.stepping.recv(None, None)


@pytest.fixture
def simulation(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = []

    def make(n=3, **options) -> Simulation:
        made.append(Simulation(n, **options))
        return made[-1]

    yield make
    for one in made:
        for seat in one.seats:
            seat.instance.leave()
        one.slots.close()
    made.clear()


def stages(one) -> list[Stage]:
    return [step.stage for step in one.stepping._steps]


def numbers(one) -> list[int]:
    return [seat.instance.episode.number for seat in one.seats]


def test_a_reset_is_begin_in_all_then_receive(simulation):
    one = simulation()
    assert stages(one) == [Stage.NEW] * 3
    batch = one.reset([7, 8, 9])
    assert batch.observations.ravel().tolist() == [7, 8, 9]
    assert batch.rewards.tolist() == [0, 0, 0]
    assert batch.reset_infos == [{}, {}, {}]
    assert stages(one) == [Stage.IDLE] * 3
    assert numbers(one) == [0, 1, 2]


def test_replies_in_any_order_are_one_batch_in_the_order_of_the_envs(simulation):
    one = simulation()
    one.reset([0, 0, 0])
    one.stepping.send(range(3), [1, 2, 3])
    assert stages(one) == [Stage.SENT] * 3
    one.script.extend([one.answers(2, 12), one.answers(0, 10), one.answers(1, 11)])
    batch = one.stepping.recv(None, None)
    assert batch.observations.ravel().tolist() == [10, 11, 12]
    assert batch.rewards.tolist() == [10, 11, 12]
    with pytest.raises(NoAsyncCallError):
        one.stepping.recv(None, None)


def test_episodes_are_dealt_in_the_order_of_the_envs_whoever_ends_first(simulation):
    one = simulation()
    one.reset([0, 0, 0])
    one.stepping.send(range(3), [0, 0, 0])
    one.script.extend(
        [one.answers(2, 1, over=True), one.answers(1, 1), one.answers(0, 1, over=True)]
    )
    one.script.extend([one.answers(2, 5), one.answers(0, 6)])
    batch = one.stepping.recv(None, None)
    assert numbers(one) == [3, 1, 4]
    assert batch.terminated.tolist() == [True, False, True]
    assert batch.observations.ravel().tolist() == [6, 1, 5]
    assert [final if final is None else final.tolist() for final in batch.final_observations] == [
        [1],
        None,
        [1],
    ]


def test_the_first_that_are_ready_come_back_and_go_on_alone(simulation):
    one = simulation()
    one.reset([0, 0, 0])
    one.stepping.send(range(3), [0, 0, 0])
    one.script.append(one.answers(1, 4))
    assert one.stepping.recv(1, None).envs.tolist() == [1]
    one.stepping.require_at_rest([1], "step", "the next one")
    with pytest.raises(AlreadyPendingCallError, match=r"envs \[0, 2\]"):
        one.stepping.require_at_rest(range(3), "step", "the next one")
    one.script.extend([one.answers(0, 2), one.answers(2, 3)])
    assert one.stepping.recv(None, None).envs.tolist() == [0, 2]


def test_a_death_in_a_step_is_one_synthetic_transition(simulation):
    one = simulation(2)
    one.reset([3, 4])
    one.stepping.send(range(2), [0, 0])
    one.script.extend([one.dies(0), one.answers(1, 9), one.answers(0, 5)])
    batch = one.stepping.recv(None, None)
    assert batch.truncated.tolist() == [True, False]
    assert batch.infos[0]["sc2pool.synthetic"] is True
    assert batch.final_observations[0].tolist() == [3], "the last good one"
    assert batch.observations.ravel().tolist() == [5, 9]
    assert one.supervisor.stats.env_steps == 2


def test_a_death_between_steps_is_shown_by_the_next_one(simulation):
    one = simulation(2)
    one.reset([3, 4])
    one.dies(1)()
    assert not one.stepping.lockstep.arrange()
    one.stepping.send(range(2), [0, 0])
    one.script.extend([one.answers(0, 8), one.answers(1, 5)])
    assert one.stepping.recv(None, None).truncated.tolist() == [False, True]


def test_a_death_while_an_episode_begins_is_in_its_reset_info(simulation):
    one = simulation(2)
    one.stepping.begin(range(2), [Request()] * 2)
    one.script.extend([one.answers(0, 1), one.dies(1), one.answers(1, 2)])
    batch = one.stepping.recv(None, None)
    assert batch.reset_infos[1]["sc2pool.fault"]["kind"] == "game-exited"
    assert numbers(one) == [0, 1], "the new game plays the same episode"


def test_without_autoreset_an_env_stays_over_until_its_episode_is_asked_for(simulation):
    one = simulation(2, autoreset=False)
    one.reset([0, 0])
    one.stepping.send(range(2), [0, 0])
    one.script.extend([one.answers(0, 1, over=True), one.answers(1, 1)])
    one.stepping.recv(None, None)
    assert one.stepping.over == [0]
    one.stepping.begin([0], None)
    one.stepping.send([1], [0])
    one.script.extend([one.answers(1, 2), one.answers(0, 3)])
    batch = one.stepping.recv(None, None)
    assert batch.reset_infos == [{}, None]
    assert batch.rewards.tolist() == [0, 2]


def test_what_is_pending_at_a_reset_is_dropped(simulation):
    one = simulation(2)
    one.reset([0, 0])
    one.stepping.send(range(2), [0, 0])
    one.answers(0, 50, over=True)()
    one.script.append(one.answers(1, 51))
    one.stepping.drop()
    assert one.reset([1, 2]).observations.ravel().tolist() == [1, 2]
    assert numbers(one) == [2, 3]


def test_a_limited_pool_asks_the_next_env_once_one_has_settled(simulation):
    one = simulation(3, one_book=False, max_concurrency=1)
    one.stepping.begin(range(3), [Request()] * 3)
    assert stages(one) == [Stage.BEGINNING, Stage.QUEUED, Stage.QUEUED]
    one.script.extend([one.answers(0, 1), one.answers(1, 2), one.answers(2, 3)])
    assert one.stepping.recv(None, None).observations.ravel().tolist() == [1, 2, 3]
    assert not one.stepping.lockstep.arrange()
    one.stepping.send(range(3), [0, 0, 0])
    one.script.extend([one.answers(0, 1, over=True), one.answers(0, 4)])
    one.script.extend([one.answers(1, 5), one.answers(2, 6)])
    assert one.stepping.recv(None, None).observations.ravel().tolist() == [4, 5, 6]


def test_games_in_real_time_are_held_until_the_last_one_has_begun(simulation):
    one = simulation(2, realtime=True)
    one.stepping.begin(range(2), [Request()] * 2)
    one.answers(0, 1)()
    assert one.instance(0).state is State.HELD
    one.answers(1, 2)()
    assert [seat.instance.state for seat in one.seats] == [State.RELEASING] * 2
    one.script.extend([one.resumes(1), one.resumes(0)])
    assert one.stepping.recv(None, None).observations.ravel().tolist() == [1, 2]


def undisturbed(simulation):
    """Two envs whose episodes have begun; only the fast path itself finds their replies."""
    one = simulation(2)
    one.has_more_than_replies = lambda: False
    one.wait_for_ring = lambda _: False
    one.reset([0, 0])
    return one


def test_the_fast_path_leaves_the_records_as_the_general_one_does(simulation):
    one = undisturbed(simulation)
    lockstep = one.stepping.lockstep
    assert lockstep.arrange()
    lockstep.send(np.array([1, 2]))
    for env in range(2):
        one.instance(env).answer(env + 5)
    batch = lockstep.recv()
    assert batch.observations.ravel().tolist() == [5, 6]
    assert stages(one) == [Stage.IDLE] * 2
    assert one.supervisor.stats.env_steps == 2
    assert lockstep.recv() is None, "nothing was sent"


def test_what_the_fast_path_has_sent_is_in_the_records_before_they_are_used(simulation):
    one = undisturbed(simulation)
    lockstep = one.stepping.lockstep
    actions = np.zeros(2, np.int64)
    for number in range(20):
        assert lockstep.arrange()
        actions[:] = number, number + 1
        lockstep.send(actions)
        assert not lockstep.arrange(), "it is under way"
        if number == 19:
            break
        for env in range(2):
            one.instance(env).answer(number)
        assert lockstep.recv() is not None
    actions[:] = 0
    lockstep.sync()
    instances = [one.instance(env) for env in range(2)]
    assert [instance.state for instance in instances] == [State.STEPPING] * 2
    assert stages(one) == [Stage.SENT] * 2
    assert all(instance.deadline.remaining_s() > 0 for instance in instances)
    assert [list(one.last_actions) for one in instances] == [[17, 18, 19], [18, 19, 20]]
    with pytest.raises(AlreadyPendingCallError):
        one.stepping.require_at_rest([0], "step", "the next one")


def test_the_fast_path_takes_nothing_if_one_reply_is_not_plain(simulation):
    one = undisturbed(simulation)
    lockstep = one.stepping.lockstep
    assert lockstep.arrange()
    lockstep.send(np.array([1, 2]))
    one.instance(0).answer(5)
    one.instance(1).answer(6, info={"told": True})
    assert lockstep.recv() is None
    assert one.stepping.pending == 2
    lockstep.sync()
    assert stages(one) == [Stage.SENT] * 2
    one.script.extend(
        [lambda env=env: one.supervisor.check_replies(one.seats[env]) for env in range(2)]
    )
    assert one.stepping.recv(None, None).infos == [{}, {"told": True}]


def test_a_paused_game_leaves_the_fast_path(simulation):
    one = simulation(1)
    one.reset([0])
    one.instance(0).on(Event.PAUSE)
    assert not one.stepping.lockstep.arrange()
