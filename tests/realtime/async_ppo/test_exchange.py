"""The learner gets whole rollouts, in order, and the store counts the dropped steps."""

from __future__ import annotations

import threading

import pytest

from sc2pool.realtime.async_ppo.exchange import RolloutStore, Step

N_STEPS = 3


def step(number: int, version: int = 0) -> Step:
    return Step(version, number, *[None] * 9)  # type: ignore[arg-type] - the others are not read


def add(store: RolloutStore, numbers: range, version: int = 0) -> list[bool]:
    return [store.add(step(number, version)) for number in numbers]


def taken(store: RolloutStore, oldest_version: int = 0) -> list[int]:
    return [step.observations for step in store.follow(store.take(oldest_version))]


def test_rollouts_are_taken_whole_and_in_order():
    store = RolloutStore(N_STEPS)
    assert add(store, range(3)) == [False, False, True]
    assert taken(store) == [0, 1, 2]
    add(store, range(3, 6))
    assert taken(store) == [3, 4, 5]
    assert (store.dropped_steps, store.stale_steps) == (0, 0)


def test_a_slow_learner_gets_the_newest_rollout_and_dropped_steps_are_counted():
    store = RolloutStore(N_STEPS)
    add(store, range(10))
    assert store.dropped_steps == 6
    assert taken(store) == [6, 7, 8]
    add(store, range(10, 12))
    assert taken(store) == [9, 10, 11], "the rollout in progress is kept"
    assert store.dropped_steps == 6


def test_the_rollout_in_progress_is_followed_and_not_dropped():
    store = RolloutStore(N_STEPS)
    add(store, range(1))
    steps = store.follow(store.take(0))
    assert next(steps).observations == 0
    add(store, range(1, 9))
    assert [step.observations for step in steps] == [1, 2]
    assert store.dropped_steps == 3
    assert taken(store) == [6, 7, 8]


def test_the_learner_waits_for_steps():
    store = RolloutStore(N_STEPS)
    feeding = threading.Thread(target=add, args=(store, range(4)))
    feeding.start()
    assert taken(store) == [0, 1, 2]
    feeding.join()


def test_rollouts_that_are_too_old_are_discarded_and_counted():
    store = RolloutStore(N_STEPS)
    add(store, range(3), version=0)
    add(store, range(3, 5), version=1)
    followed = store.follow(store.take(oldest_version=1))
    assert [next(followed).observations, next(followed).observations] == [3, 4]
    assert (store.stale_steps, store.dropped_steps) == (3, 0)


def test_fresh_steps_after_stale_ones_are_kept(wait_for):
    store = RolloutStore(N_STEPS)
    add(store, range(5), version=0)
    seen: list[int] = []
    learner = threading.Thread(target=lambda: seen.extend(taken(store, oldest_version=1)))
    learner.start()
    wait_for(lambda: store.stale_steps == 5)
    add(store, range(5, 8), version=1)
    learner.join()
    assert seen == [5, 6, 7]
    assert store.dropped_steps == 0


def test_with_game_waits_nothing_is_dropped(wait_for):
    store = RolloutStore(N_STEPS, game_waits=True)
    added: list[int] = []

    def act() -> None:
        for number in range(9):
            store.add(step(number))
            added.append(number)

    acting = threading.Thread(target=act)
    with store.learning:
        acting.start()
        assert taken(store) == [0, 1, 2]
        assert taken(store) == [3, 4, 5]
        wait_for(lambda: len(added) == 8)
        assert acting.is_alive(), "the third rollout has not been taken"
        assert taken(store) == [6, 7, 8]
        acting.join()
    assert store.dropped_steps == 0


@pytest.mark.parametrize("woken", [True, False])
def test_an_actor_does_not_wait_for_a_learner_that_has_ended(woken):
    store = RolloutStore(N_STEPS, game_waits=True)
    acting = threading.Thread(target=add, args=(store, range(3)))
    with store.learning:
        acting.start()
    if woken:
        store.wake_actor()
    acting.join()
    assert taken(store) == [0, 1, 2]


def test_an_error_is_raised_after_the_steps_before_it():
    store = RolloutStore(N_STEPS)
    add(store, range(4))
    store.fail(ZeroDivisionError("in the env"))
    assert taken(store) == [0, 1, 2]
    steps = store.follow(store.take(0))
    assert next(steps).observations == 3
    with pytest.raises(ZeroDivisionError, match="in the env"):
        next(steps)
    with pytest.raises(ZeroDivisionError, match="in the env"):
        RolloutStore.take(store, 1)
