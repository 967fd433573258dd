"""Tests which env plays which episode and seed: numbers, spares, and exchanges with spares."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from sc2pool.pool.episodes import EpisodeBook, Spares, episode_seed
from sc2pool.pool.instances.seats import Seat, exchange
from sc2pool.pool.instances.states import State


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


@dataclass
class Plays:
    """A stub that records the requested episodes as (seat, number), and the seats to resume."""

    spare_seats: list[Seat]
    asked: list[tuple[int, int]] = field(default_factory=list)
    resumed: list[int] = field(default_factory=list)
    cannot_hold: bool = False
    dismissed: list[int] = field(default_factory=list)

    @property
    def fleet(self) -> Plays:
        return self

    def dismiss(self, seat) -> None:
        self.dismissed.append(seat.index)

    def resume(self, seat) -> None:
        self.resumed.append(seat.index)

    def play(self, seat, episode) -> None:
        seat.episode = episode
        self.asked.append((seat.index, episode.number))


def make_seat(index: int, *, is_spare: bool = False) -> Seat:
    return Seat(index, is_spare, b"", SimpleNamespace(number=index, state=State.PLAYING))


@pytest.fixture
def envs():
    return [make_seat(index) for index in range(3)]


@pytest.fixture
def spare_seats():
    return [make_seat(index, is_spare=True) for index in (3, 4)]


@pytest.fixture
def plays(spare_seats):
    return Plays(spare_seats)


@pytest.fixture
def book():
    return EpisodeBook(5)


@pytest.fixture
def spares(plays, book):
    return Spares(plays, book)


def test_spares_hold_the_next_episodes_and_envs_take_them(spares, envs, plays):
    spares.prepare()
    spares.prepare()
    assert plays.asked == [(3, 0), (4, 1)], "one each, however often"
    for seat, episode, instance in [(envs[2], 0, 3), (envs[0], 1, 4)]:
        spares.play_next(seat)
        assert seat.episode.number == episode
        assert seat.instance.number == instance
    assert len(plays.asked) == 2, "nothing had to be reset for it"
    assert plays.resumed == [2, 0], "they may have been paused as spares"
    spares.play_next(envs[1])
    assert plays.asked[2:] == [(1, 2)], "no spare left: it plays the next episode itself"
    spares.prepare()
    assert plays.asked[3:] == [(3, 3), (4, 4)]


def test_a_held_spare_waits_with_the_env_that_takes_it(spares, envs, plays, book):
    book.begin(None)
    spares.prepare()
    envs[0].hold = True
    spares.play_next(envs[0])
    assert plays.resumed == []


def test_a_seeded_run_takes_the_first_episode_although_another_is_ready(spares, envs, spare_seats):
    spares.prepare()
    spare_seats[1].instance.state = State.READY
    spares.play_next(envs[0])
    assert envs[0].episode.number == 0


@pytest.mark.parametrize("state", [State.READY, State.HELD])
def test_without_seeds_one_that_is_ready_is_taken(spares, envs, spare_seats, book, state):
    book.begin(None)
    spares.prepare()
    spare_seats[1].instance.state = state
    spares.play_next(envs[0])
    assert envs[0].episode.number == 1
    spares.play_next(envs[1])
    assert envs[1].episode.number == 0, "if none is, the first"


def test_spares_that_cannot_be_held_serve_nobody(spares, envs, spare_seats, plays):
    spares.prepare()
    for seat in spare_seats:
        seat.instance.state = State.READY
    plays.cannot_hold = True
    spares.play_next(envs[0])
    assert plays.asked[2:] == [(0, 0)], "the env plays the episode itself"
    assert envs[0].instance.number == 0
    spares.prepare()
    assert plays.dismissed == [3, 4]
    spares.play_next(envs[1])
    assert plays.asked[3:] == [(1, 1)], "no episode was lost with them"


def test_an_env_with_attributes_plays_its_episode_itself(spares, envs, plays):
    spares.prepare()
    envs[0].attributes["level"] = 2
    spares.play_next(envs[0])
    assert plays.asked[2:] == [(0, 0)]
    assert envs[0].instance.number == 0
    spares.prepare()
    assert plays.asked[3:] == [(3, 2)], "the spare that held it gets another"
    spares.play_next(envs[1])
    assert envs[1].episode.number == 1


NEARLY_THERE = [State.RESETTING, State.READY, State.HELD]


@pytest.mark.parametrize("state", [State.NEW, State.LAUNCHING, State.DEAD, *NEARLY_THERE])
def test_an_env_that_lives_takes_only_a_spare_that_is_nearly_there(
    spares, envs, spare_seats, plays, state
):
    spares.prepare()
    spare_seats[0].instance.state = state
    envs[0].instance.state = State.OVER
    spares.play_next(envs[0])
    assert envs[0].instance.number == (3 if state in NEARLY_THERE else 0)
    own = [] if state in NEARLY_THERE else [(0, 0)]
    assert plays.asked[2:] == own, "the spare's episode, on its own instance"
    envs[1].instance.state = State.NEW  # a new instance replaces a dead one
    spares.play_next(envs[1])
    assert envs[1].instance.number == 4


def test_a_spare_that_has_put_its_episode_off_begins_it_when_it_is_taken(
    spares, envs, spare_seats, plays
):
    spares.prepare()
    spare_seats[0].instance.state = State.IDLE  # the spare's game died after a pause
    envs[0].instance.state = State.NEW
    spares.play_next(envs[0])
    assert envs[0].instance.number == 3
    assert plays.asked[2:] == [(0, 0)]


def test_void_episodes_are_dealt_again(spares, envs, spare_seats, book):
    spares.prepare()
    spares.play_next(envs[0])
    spares.prepare()
    spares.take_back()
    assert [seat.episode for seat in spare_seats] == [None, None]
    assert envs[0].episode.number == 0, "what is played stays"
    assert book.deal({}).number == 1
    spares.take_back()
    assert book.deal({}).number == 2, "nothing was held"


def test_an_episode_that_was_taken_out_of_order_is_not_dealt_again(spares, envs, spare_seats, book):
    book.begin(None)
    spares.prepare()
    spare_seats[1].instance.state = State.READY
    spares.play_next(envs[0])
    assert envs[0].episode.number == 1
    spares.take_back()
    assert [book.deal({}).number for _ in range(2)] == [0, 2]


def test_exchange(envs, spare_seats):
    env, spare = envs[0], spare_seats[0]
    env.attributes, env.failures_s, env.down_since_s = {"a": 1}, [1.0], 5.0
    spare.episode = episode = EpisodeBook(1).deal({})
    ours, theirs = env.instance, spare.instance
    exchange(env, spare)
    assert (env.instance, spare.instance) == (theirs, ours)
    assert (env.episode, spare.episode) == (episode, None)
    assert (env.down_since_s, spare.down_since_s) == (None, 5.0), "it moves with the instance"
    assert env.attributes == {"a": 1}
    assert env.failures_s == [1.0], "an env's history is its own"
