"""Delta debugging finds the shortest part of a list that fails."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from chaos.shrink import shrink


@pytest.mark.parametrize("culprits", [{7}, {0, 31}, {3, 4, 5}, {1, 9, 17, 25}, set(range(32))])
def test_only_needed_attacks_are_kept(culprits: set[int]) -> None:
    tried: list[Sequence[int]] = []

    def fails(part: Sequence[int]) -> bool:
        tried.append(part)
        return culprits <= set(part)

    assert shrink(range(32), fails) == sorted(culprits)
    assert len(tried) < 32 * 32


def test_a_part_that_fails_seldom_is_tried_again() -> None:
    tries = 0

    def fails(part: Sequence[int]) -> bool:
        nonlocal tries
        tries += 1
        return 5 in part and tries % 3 == 0

    assert shrink(range(8), fails, repeat=3) == [5]


def test_any_of_two_is_enough() -> None:
    assert len(shrink(range(20), lambda part: 4 in part or 15 in part)) == 1
