"""Tests the rules of an episode's transitions without a game, and queue pairs in one process."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.errors import ObservationError, UserCodeError
from sc2pool.tasks.episode_rules import EpisodeRules, how_it_ends
from sc2pool.tasks.queue_pair import PolicyPair, QueuePair, Transition
from sc2pool.tasks.task import TaskDefinition

# ---- rules of episodes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game_loop", "max_loops", "game_ended", "task_ends", "expected"),
    [
        (8, None, False, False, (False, False)),
        (8, 16, False, False, (False, False)),
        (16, 16, False, False, (False, True)),
        (20, 16, False, False, (False, True)),  # in real time a step may end late
        (8, 16, True, False, (True, False)),
        (8, None, True, False, (True, False)),
        (8, 16, False, True, (True, False)),
        (16, 16, True, False, (False, True)),  # the game ended at the time limit
        (16, 16, False, True, (True, True)),
        (16, 16, True, True, (True, True)),
    ],
)
def test_how_it_ends(game_loop, max_loops, game_ended, task_ends, expected):
    ends = how_it_ends(game_loop, max_loops, game_ended=game_ended, task_ends=task_ends)
    assert ends == expected


class Plain(TaskDefinition):
    map_name = "x"
    observation_space = action_space = spaces.Discrete(100)
    max_loops = 24

    def observe(self) -> int:
        return 1


async def test_a_game_that_has_ended_at_the_first_observation():
    only = await EpisodeRules(Plain()).transition(30, 7, game_ended=True)
    assert (only.reward, only.terminated, only.truncated) == (0.0, True, False)


async def test_a_late_first_observation_is_no_end():
    rules = EpisodeRules(Plain())
    first = await rules.transition(30, 7)
    assert not first.truncated
    assert not rules.over


async def second_transition(hook: str, value: Any) -> Transition:
    """The transition of a step in which this hook returns this value."""

    class Mistaken(Plain):
        pass

    rules = EpisodeRules(Mistaken())
    await rules.transition(0, 0)
    setattr(Mistaken, hook, lambda self: value)
    return await rules.transition(8, 0)


@pytest.mark.parametrize(
    ("hook", "value", "complaint"),
    [
        ("reward", float("nan"), "nan of type float, expected a finite number"),
        ("reward", -float("inf"), "-inf of type float, expected a finite number"),
        ("reward", None, "nothing, expected a finite number"),
        ("reward", "1.0", "'1.0' of type str, expected a finite number"),
        ("reward", np.zeros(1), "array([0.]) of type ndarray, expected a finite number"),
        (
            "reward",
            np.array("5"),
            "array('5', dtype='<U1') of type ndarray, expected a finite number",
        ),
        ("reward", np.array(1j), "array(0.+1.j) of type ndarray, expected a finite number"),
        ("reward", 10**309, f"{10**309!r:.80} of type int, expected a finite number"),
        ("terminated", np.zeros(2), "array([0., 0.]) of type ndarray, expected true or false"),
        ("info", [1], "[1] of type list, expected a dict"),
        ("info", [], "[] of type list, expected a dict"),
        ("info", np.zeros(2), "array([0., 0.]) of type ndarray, expected a dict"),
    ],
)
async def test_an_error_names_the_hook_and_its_place(hook, value, complaint):
    with pytest.raises(ObservationError) as caught:
        await second_transition(hook, value)
    said = re.fullmatch(r"Mistaken\.(\w+)\(\) \((.+), line \d+\) returned (.+)", str(caught.value))
    assert said is not None
    assert said.groups() == (hook, __file__, complaint)


@pytest.mark.parametrize(
    ("hook", "value", "known"),
    [
        ("reward", np.float32(2), 2.0),
        ("reward", np.array(2), 2.0),
        ("reward", True, 1.0),
        ("reward", np.bool_(True), 1.0),
        ("terminated", None, False),
        ("terminated", np.bool_(True), True),
        ("info", None, {}),
    ],
)
async def test_what_means_the_same_is_taken(hook, value, known):
    found = getattr(await second_transition(hook, value), hook)
    assert found == known
    assert type(found) is type(known)


class Forging(Plain):
    def info(self) -> dict[str, Any]:
        return {"sc2pool.synthetic": True}


async def test_an_info_has_no_key_of_the_pools():
    with pytest.raises(UserCodeError, match=r"the key 'sc2pool\.synthetic'"):
        await EpisodeRules(Forging()).transition(8, 0)


# ---- queue pairs ---------------------------------------------------------------------------------


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
