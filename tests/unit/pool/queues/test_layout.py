"""Where the leaves of a space lie."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.errors import ConfigError
from sc2pool.pool.queues.layout import (
    ALIGNMENT_BYTES,
    HEADER_BYTES,
    align,
    mask_size,
    slot_layout,
    space_layout,
)

NESTED = spaces.Dict(
    [
        ("z", spaces.Box(0, 1, (3, 2), np.float32)),
        ("a", spaces.Tuple([spaces.Discrete(4), spaces.Dict(m=spaces.MultiBinary(5))])),
    ]
)
UNFIXED = [
    spaces.Text(3),
    spaces.Sequence(spaces.Discrete(2)),
    spaces.Dict(a=spaces.Discrete(2), b=spaces.Text(3)),
    spaces.Tuple([spaces.OneOf([spaces.Discrete(2), spaces.Discrete(3)])]),
]


def test_leaves_stand_in_the_spaces_own_order():
    leaves = space_layout(NESTED, 0).leaves
    assert [leaf.path for leaf in leaves] == [("z",), ("a", 0), ("a", 1, "m")]
    assert [leaf.shape for leaf in leaves] == [(3, 2), (), (5,)]
    assert [leaf.dtype for leaf in leaves] == [np.float32, np.int64, np.int8]


def test_parts_of_a_value_build_it_again():
    layout = space_layout(NESTED, 0)
    value = NESTED.sample()
    parts = [part for _, part in layout.parts(value)]
    np.testing.assert_equal(layout.build(parts.__getitem__), value)


@pytest.mark.parametrize("space", UNFIXED, ids=str)
def test_a_space_with_a_part_of_no_fixed_layout_has_no_leaves(space):
    layout = space_layout(space, 0)
    assert not layout.fixed
    assert list(layout.parts(space.sample())) == []


@pytest.mark.parametrize("wrong", [{"z": 1}, {"z": 1, "a": ()}, 3], ids=str)
def test_a_missing_part_is_a_lookup_or_type_error(wrong):
    with pytest.raises((KeyError, IndexError, TypeError)):
        list(space_layout(NESTED, 0).parts(wrong))


def test_only_a_plain_space_is_one_array():
    assert space_layout(spaces.Discrete(2), 0).is_array
    assert not space_layout(spaces.Dict(a=spaces.Discrete(2)), 0).is_array
    assert not space_layout(spaces.Text(2), 0).is_array


@pytest.mark.parametrize("action_space", [spaces.Discrete(7), spaces.Text(3)], ids=str)
@pytest.mark.parametrize("observation_space", [NESTED, spaces.Text(3), spaces.Discrete(2)], ids=str)
def test_no_two_leaves_share_a_cache_line(observation_space, action_space):
    layout = slot_layout(observation_space, action_space)
    leaves = [*(layout.action.leaves or ()), *(layout.observation.leaves or ()), layout.mask]
    assert leaves[0].offset_bytes == HEADER_BYTES
    assert all(leaf.offset_bytes % ALIGNMENT_BYTES == 0 for leaf in leaves)
    for one, next_one in pairwise(leaves):
        assert one.offset_bytes + one.size_bytes <= next_one.offset_bytes
    assert layout.size_bytes >= leaves[-1].offset_bytes + leaves[-1].size_bytes
    assert layout.size_bytes % ALIGNMENT_BYTES == 0


@pytest.mark.parametrize(("given", "aligned"), [(0, 0), (1, 64), (64, 64), (65, 128)])
def test_align(given, aligned):
    assert align(given) == aligned


@pytest.mark.parametrize(
    ("space", "size"),
    [
        (spaces.Discrete(8, start=3), 8),
        (spaces.MultiDiscrete([8, 3]), 11),
        (spaces.MultiBinary(4), 8),
        (spaces.MultiBinary([2, 3]), 12),
        (spaces.Box(0, 1, (2,)), 0),
        (spaces.Text(2), 0),
    ],
    ids=str,
)
def test_masks_have_the_shape_that_maskable_ppo_wants(space, size):
    assert mask_size(space) == size


def test_rows_lie_one_behind_the_other_in_each_leaf():
    one, two = (slot_layout(NESTED, spaces.Discrete(5), rows) for rows in (1, 2))
    assert one.rewards is None
    memory = memoryview(bytearray(two.size_bytes))
    views = [leaf.view(memory) for leaf in (*two.action.leaves, *two.observation.leaves, two.mask)]
    rewards = two.rewards.view(memory)
    assert (views[-1].shape, rewards.shape) == ((2, 5), (2,))
    alone = [*one.action.leaves, *one.observation.leaves, one.mask]
    for view, leaf in zip(views, alone, strict=True):
        assert (view.shape, view.dtype) == ((2, *leaf.shape), leaf.dtype)
    for number, view in enumerate([*views, rewards]):
        view[...] = number % 2
    for number, view in enumerate([*views, rewards]):
        assert (view == number % 2).all(), "no two of them overlap"


def test_several_rows_need_leaves():
    text = spaces.Text(3)
    for name, unfixed in (("observation_space", (text, NESTED)), ("action_space", (NESTED, text))):
        with pytest.raises(ConfigError, match=f"{name} of an env with 2 rows must be made of"):
            slot_layout(*unfixed, 2)
