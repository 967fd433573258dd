"""Tests both ends of a queue pair, and arrays over the slots of several pairs, in real memory."""

from __future__ import annotations

import asyncio
import errno
import os
import select
import threading

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.errors import ConfigError, ObservationError, Phase, UserCodeError
from sc2pool.game.clock import Tick
from sc2pool.pool.queues.layout import slot_layout
from sc2pool.pool.queues.memory import map_memory
from sc2pool.pool.queues.slots import Flag, Slot, Slots, Word
from sc2pool.pool.queues.trainer_end import TrainerEnd
from sc2pool.protocol import compiled
from sc2pool.tasks.player import RECYCLE_CAUSES
from tests.support.audit.belongings import shared_mappings
from tests.unit.conftest import needs_compiled
from tests.unit.pool.conftest import VECTOR

pytestmark = pytest.mark.usefixtures("variant")


def test_an_episode_there_and_back(pair):
    both = pair()
    assert both.worker.phase is Phase.IDLE
    both.begin()
    assert both.worker.phase is Phase.RESETTING
    assert both.trainer.reply() is None
    both.put(np.array([1, 2], np.float32))
    assert both.trainer.reply() is not None
    assert both.trainer.reset_kind() == "restart"
    for number in range(3):
        assert both.trainer.try_send(number)
        assert both.trainer.reply() is None
        assert both.action() == number
        assert both.worker.phase is Phase.STEPPING
        both.put(np.array([number, 7], np.float32), reward=number / 2)
        assert both.trainer.reply() is not None
        assert both.trainer.rewards()[0] == number / 2
        assert both.trainer.observations()[0].tolist() == [number, 7]
    assert both.trainer.reset_kind() == "restart", "only a reset's answer is an episode's first"
    assert both.sent == []


def test_each_request_and_each_reply_rings(pair):
    both = pair().begun(np.zeros(2, np.float32))
    both.trainer.try_send(1)
    for doorbell in both.doorbells:
        assert select.select([doorbell.listening], [], [], 0)[0]


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize("recycle_due", RECYCLE_CAUSES)
def test_a_recycle_is_due_at_the_end_of_an_episode_only(pair, over, recycle_due):
    both = pair().begun()
    both.player.recycle_due = recycle_due
    both.put(np.zeros(2, np.float32), ended=(over, False))
    assert both.trainer.recycle_due() == (recycle_due if over else "")
    assert both.trainer.loop_cost_growth() == (1.5 if over else 0.0)


def test_copies_do_not_change_with_the_slot(pair):
    both = pair().begun(np.array([1, 2], np.float32), mask=np.array([True, False, False]))
    batch = [np.zeros((3, 2), np.float32)]
    both.trainer.copy_rows(batch, 1)
    observation, mask = both.trainer.observations()[0], both.trainer.mask(0)
    both.step(np.array([8, 9], np.float32), mask=np.array([False, True, True]))
    assert batch[0].tolist() == [[0, 0], [1, 2], [0, 0]]
    assert (observation.tolist(), mask.tolist()) == ([1, 2], [True, False, False])


@pytest.mark.parametrize(
    ("observation", "told"),
    [
        ({"a": np.zeros(3, np.float32), "b": "x"}, r"observation\['a'\] has shape \(3,\)"),
        ({"a": np.zeros(2), "b": "x"}, r"observation\['a'\] has .* dtype float64"),
        ({"a": np.full(2, np.nan, np.float32), "b": "x"}, r"observation\['a'\] is not finite"),
        ({"a": np.zeros(2, np.float32), "b": 5}, r"observation\['b'\] is 5 of type int, expected"),
        ({"a": np.zeros(2, np.float32)}, "does not have the parts.*KeyError"),
        (None, "of type NoneType does not have the parts"),
    ],
)
def test_a_strict_player_must_give_what_a_space_without_layout_says(pair, observation, told):
    both = pair(observation_space=spaces.Dict(a=VECTOR, b=spaces.Text(9))).begun()
    with pytest.raises(ObservationError, match=told):
        both.put(observation)
    assert both.sent == []
    both.put({"a": np.zeros(2, np.float32), "b": "x"})
    assert both.trainer.flags() & Flag.OUT_OF_BAND


@pytest.mark.parametrize(
    ("action_space", "action"),
    [
        (spaces.Discrete(3), "text"),
        (spaces.Discrete(3), 0.5),
        (spaces.Discrete(3), [1]),
        (spaces.Discrete(3), None),
        (spaces.Box(0, 1, (2,), np.float32), np.zeros(2)),
        (spaces.Dict(a=spaces.Discrete(2)), {}),
        (spaces.Text(3), "abc"),
    ],
    ids=str,
)
def test_an_action_that_has_no_place_in_the_slot_is_not_sent_there(pair, action_space, action):
    both = pair(action_space=action_space).begun(np.zeros(2, np.float32))
    assert both.trainer.try_send(action) is False
    assert both.trainer.reply() is not None, "nothing was asked"
    both.worker.deliver(both.trainer.next_sequence(), action)
    assert both.action() is action
    both.put(np.ones(2, np.float32))
    assert both.trainer.reply() is not None


async def test_an_action_wakes_the_one_who_waits(pair):
    both = pair().begun(np.zeros(2, np.float32))
    waiting = asyncio.ensure_future(both.worker.get_action())
    await asyncio.sleep(0)
    both.worker_doorbells.wake(both.worker)  # a ring may come early
    await asyncio.sleep(0)
    assert not waiting.done()
    assert both.trainer.try_send(np.int64(2))
    both.worker_doorbells.wake(both.worker)
    assert await waiting == 2


async def test_an_abandoned_episode_ends_where_it_waits_for_an_action(pair):
    both = pair().begun(np.zeros(2, np.float32))
    waiting = asyncio.ensure_future(both.worker.get_action())
    await asyncio.sleep(0)
    both.worker.abandon()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    both.begin()
    both.put(np.ones(2, np.float32))
    assert both.trainer.reply() is not None
    assert both.trainer.reset_kind() == "create"


def test_unrequested_transition_is_an_error_of_the_user(pair):
    both = pair()
    with pytest.raises(UserCodeError, match="without a pending request"):
        both.put(np.zeros(2, np.float32))


WRONG = [
    (np.zeros(3, np.float32), r"shape \(3,\).*expected shape \(2,\)"),
    (np.zeros((1, 2), np.float32), r"shape \(1, 2\)"),
    (np.zeros(2), "dtype float64.*dtype float32"),
    (np.array([0, np.nan], np.float32), r"not finite at index \[1\]: nan"),
    (np.array([-np.inf, 0], np.float32), r"not finite at index \[0\]: -inf"),
    (None, "is None of type NoneType, expected shape"),
    ([[1], [2, 3]], r"observation does not form an array of shape \(2,\)"),
]


@pytest.mark.parametrize(("observation", "told"), WRONG, ids=lambda value: str(value)[:20])
def test_a_strict_player_must_give_what_its_space_says(pair, observation, told):
    both = pair().begun()
    with pytest.raises(ObservationError, match=told):
        both.put(observation)
    assert both.trainer.reply() is None
    assert both.worker.phase is Phase.RESETTING


def test_the_part_that_is_wrong_is_named(pair):
    space = spaces.Dict(a=spaces.Tuple([spaces.Discrete(2), VECTOR]))
    both = pair(observation_space=space).begun()
    with pytest.raises(ObservationError, match=r"observation\['a'\]\[1\] has shape \(3,\)"):
        both.put({"a": (np.int64(1), np.zeros(3, np.float32))})
    with pytest.raises(ObservationError, match=r"does not have the parts.*IndexError"):
        both.put({"a": (np.int64(1),)})


@pytest.mark.parametrize(
    ("mask", "told"),
    [
        (np.ones(2, bool), r"has shape \(2,\).*expected shape \(3,\) and dtype bool"),
        (np.ones(3, np.int8), r"has shape \(3,\) and dtype int8, expected .* dtype bool"),
        ([[True], [True, False]], r"does not form an array of shape \(3,\)"),
    ],
    ids=["shape", "dtype", "ragged"],
)
def test_a_wrong_mask_is_an_observation_error(pair, mask, told):
    both = pair().begun()
    with pytest.raises(ObservationError, match=f"^action mask {told}"):
        both.put(np.zeros(2, np.float32), mask=mask)


@pytest.mark.parametrize(
    "actions", [VECTOR, spaces.Dict(a=spaces.Discrete(3))], ids=["Box", "Dict"]
)
def test_a_mask_of_actions_that_have_none_is_an_observation_error(pair, actions):
    both = pair(action_space=actions).begun()
    with pytest.raises(ObservationError, match=r"action mask is .*, expected none: only Discrete"):
        both.put(np.zeros(2, np.float32), mask=np.ones(3, bool))


def test_an_info_that_cannot_be_pickled_publishes_nothing(pair):
    both = pair().begun()
    with pytest.raises(TypeError, match="pickle"):
        both.put(np.zeros(2, np.float32), info={"lock": threading.Lock()})
    assert both.trainer.reply() is None


def test_the_return_is_the_sum_of_an_episodes_rewards(pair):
    both = pair()
    nothing = np.zeros(2, np.float32)
    for rewards in ([0.0, 1.5, -0.25], [0.0, 10.0]):
        both.begin()
        both.put(nothing)
        for reward in rewards[1:]:
            both.step(nothing, reward)
        assert both.trainer.progress().episode_return == sum(rewards)
    both.begin()
    assert both.trainer.progress().episode_return == 10.0, "the next episode has not begun yet"
    both.put(nothing)
    assert both.trainer.progress().episode_return == 0.0


def test_how_late_a_step_was(pair):
    ours = pair().begun(np.zeros(2, np.float32))
    assert ours.trainer.flags() == 0, "a reset is no step"
    ours.player.tick = lambda: Tick(0.25, 1, 12)
    ours.step(np.ones(2, np.float32), reward=2.0)
    assert ours.trainer.flags() == Flag.TICK
    assert ours.trainer.tick() == Tick(0.25, 1, 12)
    assert (ours.trainer.rewards()[0], ours.trainer.reset_kind()) == (2.0, "restart")


@pytest.mark.parametrize(("can", "flag"), [(True, Flag.HELD), (False, Flag.NOT_HELD)])
def test_a_game_is_held_before_anyone_is_told_of_its_first_observation(pair, can, flag):
    ours = pair()
    ours.can_be_held = can
    ours.begin(hold=True)
    ours.put(np.zeros(2, np.float32))
    assert ours.replies_when_held == [None]
    assert ours.trainer.reply() == flag
    ours.step(np.zeros(2, np.float32))
    assert ours.trainer.reply() == 0
    ours.begin()
    ours.put(np.zeros(2, np.float32))
    assert ours.trainer.reply() == 0
    assert len(ours.replies_when_held) == 1


SPACE = spaces.Dict(a=spaces.Box(-10, 10, (2, 3), np.float32), b=spaces.Discrete(9))
LAYOUT = slot_layout(SPACE, spaces.Box(-1, 1, (2,), np.float32))
ROWS = 4
ORDERS = [[0, 1, 2, 3], [0, 1], [3, 0, 2], [2]]


@pytest.fixture
def slots():
    made = Slots(ROWS)
    made.fit(LAYOUT)
    yield made
    made.close()


@pytest.fixture
def ends(slots):
    """The workers' ends of the slots, one for each row."""
    made = [Slot(slots.clear(row, LAYOUT), LAYOUT) for row in range(ROWS)]
    yield made
    made.clear()  # memory is unmapped when its last view is deleted


@pytest.mark.usefixtures("step_path")
@pytest.mark.parametrize("rows", ORDERS, ids=str)
def test_actions_reach_their_rows_and_only_these(slots, ends, rows):
    slots.arrange(rows)
    for turn in range(1, 3):
        actions = np.arange(2 * len(rows), dtype=np.float32).reshape(-1, 2) / turn
        slots.batch.send(actions)
        for row, slot in enumerate(ends):
            was_sent = row in rows
            expected = actions[rows.index(row)] if was_sent else np.zeros(2)
            assert slot.actions[0].tolist() == expected.tolist()
            assert slot.words[Word.REQUEST] == turn * was_sent
            assert slots.sequences[row] == turn * was_sent


@pytest.mark.usefixtures("step_path")
@pytest.mark.parametrize("rows", ORDERS, ids=str)
def test_replies_are_gathered_in_the_order_that_is_asked_for(slots, ends, rows):
    slots.arrange(rows)
    batch = slots.batch
    batch.send(np.zeros((len(rows), 2), np.float32))
    assert batch.unanswered() == list(range(len(rows)))
    for place, row in enumerate(rows):
        slot = ends[row]
        a, b = slot.place(slot.words[Word.REQUEST]).observation
        a[...] = row
        b[...] = row + 1
        slot.reals[Word.REWARD] = row / 2
        slot.words[Word.FLAGS] = 1 << place
        slot.words[Word.REPLY] = slot.words[Word.REQUEST]
        assert batch.unanswered() == list(range(place + 1, len(rows)))
    assert batch.flags() == 2 ** len(rows) - 1
    rewards, (a, b) = batch.rewards(), batch.observations()
    assert rewards.tolist() == [row / 2 for row in rows]
    assert (a[:, 0, 0].tolist(), b.tolist()) == (rows, [row + 1 for row in rows])
    for gathered, dtype in ((rewards, np.float64), (a, np.float32), (b, np.int64)):
        assert (gathered.dtype, len(gathered)) == (dtype, len(rows))
    ends[rows[0]].place(1).observation[0][...] = 9
    ends[rows[0]].reals[Word.REWARD] = 9
    assert (rewards[0], a[0, 0, 0]) == (rows[0] / 2, rows[0]), "they are copies"


@needs_compiled
def test_the_compiled_batch_reads_no_word_that_is_not_there(slots):
    columns = slots._columns
    words = (columns.sequences, columns.requests, columns.replies, columns.flags)
    for row in (-1, ROWS):
        with pytest.raises(IndexError):
            compiled.fast.Headers(*words, [row])
    with pytest.raises(TypeError, match="memoryview"):
        compiled.fast.Headers(*words[:3], memoryview(bytes(8 * ROWS)), [0])
    for wrong in (words[3][1:], np.zeros(ROWS, np.uint32), np.zeros((ROWS, 2), np.uint64)):
        with pytest.raises(ValueError, match="words of 8 bytes"):
            compiled.fast.Headers(*words[:3], wrong, [0])


def test_a_row_is_clear_when_it_changes_hands_and_its_last_content_is_kept(slots):
    first = TrainerEnd(slots, 1)
    first.attach(LAYOUT)
    worker = Slot(slots._slots[1], LAYOUT)
    first.begin_episode()
    worker.place(1).observation[0][...] = 5
    worker.words[Word.REPLY] = 1
    first.close()
    second = TrainerEnd(slots, 1)
    second.attach(LAYOUT)
    before = 1 << 32  # the worker of the slot's first owner does not wait for this number
    numbers = {worker.words[word] for word in (Word.REQUEST, Word.REPLY)}
    assert (second.sequence, numbers) == (before, {before})
    worker.words[Word.REQUEST] = worker.words[Word.REPLY] = 0
    assert bytes(slots._slots[1]) == bytes(LAYOUT.size_bytes)
    second.begin_episode()
    assert second.begin_episode() == before + 2
    worker.place(2).observation[0][...] = 6
    worker.words[Word.REPLY] = before + 2
    assert (first.sequence, first.reply()) == (1, 0)
    assert first.observations()[0]["a"].tolist() == [[5] * 3] * 2
    assert second.observations()[0]["a"].tolist() == [[6] * 3] * 2
    second.close()


def test_other_spaces_have_no_place_on_it(slots):
    same_layout = slot_layout(
        spaces.Dict(a=spaces.Box(0, 1, (2, 3), np.float32), b=spaces.Discrete(4)),
        spaces.Box(0, 1, (2,), np.float32),
    )
    slots.clear(0, same_layout)
    other = slot_layout(SPACE, spaces.Discrete(2))
    with pytest.raises(ConfigError, match=r"spaces have changed.*Discrete\(2\).*Box"):
        slots.clear(0, other)


@pytest.mark.parametrize("space", [spaces.Text(3), spaces.Box(0, 1, (0,)), spaces.Discrete(3)])
def test_spaces_of_every_size_lie_on_it(space):
    layout = slot_layout(space, space)
    slots = Slots(2)
    slots.fit(layout)
    slots.arrange([0, 1])
    assert [leaf.shape for leaf in slots.batch.observations()] == [
        (2, *leaf.shape) for leaf in layout.observation.leaves or ()
    ]
    slots.close()


def test_a_worker_maps_its_own_row_alone(slots):
    queue = TrainerEnd(slots, 2)
    with map_memory(slots.descriptor, 8, queue.offset_bytes) as row:
        row[:8] = b"abcdefgh"
    assert [bytes(row[:8]) for row in slots._slots] == [bytes(8)] * 2 + [b"abcdefgh", bytes(8)]


def test_closed_it_leaves_nothing():
    before = shared_mappings()
    slots = Slots(ROWS)
    slots.fit(LAYOUT)
    slots.arrange([0])
    descriptor = slots.descriptor
    assert (shared_mappings() - before).total() == 1
    slots.close()
    slots.close()
    with pytest.raises(OSError) as raised:
        os.fstat(descriptor)
    assert raised.value.errno == errno.EBADF
    assert shared_mappings() == before
