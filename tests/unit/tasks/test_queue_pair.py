"""Queue pairs within one process: between two threads, and with a function as the learner."""

from __future__ import annotations

import asyncio
import threading

import pytest

from sc2pool import QueuePair
from sc2pool.tasks.queue_pair import PolicyPair, Transition


def transition(observation: object, *, terminated: bool = False) -> Transition:
    return Transition(observation, 1.0, terminated, False, {})


async def test_transitions_come_in_order_and_actions_go_in_order():
    pair = QueuePair.local()
    for number in range(3):
        pair.put(transition(number))
        pair.send(number * 10)
    assert [pair.receive(1).observation for _ in range(3)] == [0, 1, 2]
    assert [await pair.get_action() for _ in range(3)] == [0, 10, 20]


def test_a_learner_and_a_bot_in_two_threads():
    pair = QueuePair.local()

    async def bot() -> None:
        total = 0
        for _ in range(500):
            pair.put(transition(total))
            total += await pair.get_action()
        pair.put(transition(total, terminated=True))

    thread = threading.Thread(target=asyncio.run, args=[bot()])
    thread.start()
    seen = [pair.receive(5)]
    while not seen[-1].terminated:
        pair.send(2)
        seen.append(pair.receive(5))
    thread.join(5)
    assert [one.observation for one in seen] == list(range(0, 1002, 2))


def test_waiting_for_a_transition_is_bounded():
    with pytest.raises(TimeoutError, match=r"no transition within 0\.01 s"):
        QueuePair.local().receive(0.01)


async def test_a_bot_that_waits_lets_its_loop_go_on_and_can_be_cancelled():
    pair = QueuePair.local()
    waiting = asyncio.ensure_future(pair.get_action())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    pair.send("late")
    assert await pair.get_action() == "late"


async def slowly(observation: int) -> int:
    await asyncio.sleep(0)
    return observation + 1


@pytest.mark.parametrize("policy", [lambda observation: observation + 1, slowly])
async def test_a_policy_sees_the_newest_observation(policy):
    pair = PolicyPair(policy)
    for observation in (4, 8):
        pair.put(transition(observation))
        assert await pair.get_action() == observation + 1


def test_the_pair_itself_is_only_a_shape():
    with pytest.raises(TypeError, match="abstract"):
        QueuePair()
