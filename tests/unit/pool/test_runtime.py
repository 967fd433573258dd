"""The instances of a pool, read by one thread while another exchanges them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from sc2pool.pool.instances.seats import Seat, exchange
from sc2pool.pool.runtime import finite, seated


@pytest.fixture
def seats() -> list[Seat]:
    made = []
    for index in range(4):
        instance = SimpleNamespace(number=index)
        made.append(Seat(index, index == 3, b"", instance))
    return made


def test_no_instance_is_seen_on_two_seats(seats, meanwhile):
    def play(turn: int) -> None:
        sum(range(50))  # an episode, brief as it is
        exchange(seats[turn % 3], seats[3])

    with meanwhile(play):
        for _ in range(20_000):
            numbers = [instance.number for _, instance in seated(seats)]
            assert sorted(numbers) == [0, 1, 2, 3]


def test_an_exchange_left_half_done_does_not_hang_the_reader(seats):
    seats[0].instance = seats[3].instance  # and here Ctrl-C struck
    assert [instance.number for _, instance in seated(seats)] == [3, 1, 2, 3]


def test_json_has_no_nan():
    assert [finite(value) for value in (1.5, float("nan"), float("inf"))] == [1.5, None, None]
