"""Episodes and their seeds."""

from __future__ import annotations

import pytest

from sc2pool.pool.episode_book import EpisodeBook, episode_seed


def deal(book: EpisodeBook, number: int) -> list[int | None]:
    return [book.deal({}).seed for _ in range(number)]


def test_episodes_are_numbered_from_zero_and_carry_their_options():
    book = EpisodeBook()
    options = {"level": 1}
    episodes = [book.deal(options), book.deal({})]
    options["level"] = 2
    assert [episode.number for episode in episodes] == [0, 1]
    assert [dict(episode.options) for episode in episodes] == [{"level": 1}, {}]


def test_returned_episodes_are_dealt_first_and_once():
    book = EpisodeBook()
    deal(book, 5)
    book.take_back([3])
    book.take_back([1, 2])
    assert [book.deal({}).number for _ in range(5)] == [1, 2, 3, 5, 6]


def test_without_a_seed_episodes_carry_none():
    assert deal(EpisodeBook(), 3) == [None] * 3


def test_a_seeded_book_repeats_and_its_episodes_differ():
    seeds = deal(EpisodeBook(5), 200)
    assert seeds == deal(EpisodeBook(5), 200)
    assert len(set(seeds)) == 200
    assert not set(seeds) & set(deal(EpisodeBook(6), 200)), "neighbouring runs share no episode"


@pytest.mark.parametrize("seeded", [0, 2])
def test_only_the_first_may_be_seeded(seeded):
    seeds = deal(EpisodeBook(5, seeded), 4)
    assert seeds == deal(EpisodeBook(5), seeded) + [None] * (4 - seeded)


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**63])
def test_the_games_seed_fits_31_bits_and_stays_the_same(seed):
    assert all(0 <= episode_seed(seed, number) < 2**31 for number in range(100))
    assert episode_seed(0, 0) == 1878776328, "a changed rule would change every recorded run"
