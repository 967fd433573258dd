"""The slots of several queue pairs as one array each, on real memory."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.errors import ConfigError
from sc2pool.pool.queues.layout import slot_layout
from sc2pool.pool.queues.memory import map_memory
from sc2pool.pool.queues.slot import Slot, Word
from sc2pool.pool.queues.slots import Slots
from sc2pool.pool.queues.trainer_end import TrainerEnd
from sc2pool.protocol import compiled
from tests.support.audit.belongings import shared_mappings
from tests.unit.conftest import needs_compiled

pytestmark = pytest.mark.usefixtures("variant")
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
    """A slot for each row, as its worker has it."""
    made = [Slot(slots.clear(row, LAYOUT), LAYOUT) for row in range(ROWS)]
    yield made
    made.clear()  # the memory is unmapped with its last view


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
    before = 1 << 32  # not a number that the first one's worker waits for
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
