"""Tests the objects that may be given as opponents: bots of python-sc2, policies, functions."""

from __future__ import annotations

import asyncio
import functools

import cloudpickle
import numpy as np
import pytest
from gymnasium import spaces
from s2clientprotocol import common_pb2
from sc2.bot_ai import BotAI
from sc2.data import Race
from sc2.player import Bot

from sc2pool.config import Computer
from sc2pool.errors import ActionError, ConfigError
from sc2pool.tasks.bot import RLBotAI
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.opponents.policies import (
    FunctionPair,
    PlainBot,
    PredictPair,
    SharedPair,
    action_of,
)
from sc2pool.tasks.opponents.resolve import InTurn, resolve
from sc2pool.tasks.opponents.snapshots import SnapshotStore
from sc2pool.tasks.player import Episode
from sc2pool.tasks.queue_pair import Transition
from sc2pool.tasks.task import TeamTask
from sc2pool.tasks.teams.battle_task import smac_duel
from tests.unit.conftest import printed_by
from tests.unit.tasks.opponents.conftest import FOUR, SEEN, SHOWN, answer

# ---- accepted and refused objects ----------------------------------------------------------------


def left(observation):
    return 2


class Walker:
    action_space = spaces.Discrete(4)

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        assert not deterministic
        return np.array(3), None


def played(opponent) -> tuple[str, int]:
    """The name and the first action of an opponent that was pickled for a worker."""
    name, pair = cloudpickle.loads(cloudpickle.dumps(opponent)).begin(Episode(0))
    return name, int(answer(pair))


def test_functions_and_objects(duel):
    assert played(resolve(left, duel)) == ("left", 2)
    assert played(resolve(lambda _: 1, duel)) == ("<lambda>", 1)
    assert played(resolve(functools.partial(lambda a, _: a, 3), duel)) == ("partial", 3)
    assert played(resolve(Walker(), duel)) == ("Walker", 3)
    assert resolve(np.zeros, duel).name == "zeros"


def test_models_and_files(duel, make_model, saved):
    assert played(resolve(make_model(), duel))[0] == "PPO"
    path = saved("marines")
    assert played(resolve(path, duel))[0] == "marines"
    assert played(resolve(str(path), duel))[0] == "marines"


def test_store_computer_and_none(duel, make_model, tmp_path):
    store = SnapshotStore(tmp_path)
    opponent = resolve(store, duel)  # the store may still be empty
    store.add(make_model(), 0)
    assert played(opponent)[0] == "step-0"
    computer = Computer()
    assert resolve(computer, duel) is computer
    assert resolve(None, duel) is None
    assert resolve(None, MoveToBeacon) is None


def test_opponents_take_turns(duel):
    both = resolve(InTurn((resolve(left, duel), resolve(Walker(), duel))), duel)
    names = [both.begin(Episode(number))[0] for number in range(6)]
    assert names == ["left", "left", "Walker", "Walker", "left", "left"]


@pytest.mark.parametrize(("opponent", "told"), [(left, "<function"), (Computer(), "Computer")])
def test_a_task_of_one_player_has_no_opponent(opponent, told):
    with pytest.raises(ConfigError, match=f"two players, and MoveToBeacon has 1; got .*{told}"):
        resolve(opponent, MoveToBeacon)


def test_a_computer_plays_no_team():
    with pytest.raises(ConfigError, match=r"3m_duel has a team on .* cannot be a Computer"):
        resolve(Computer(), smac_duel("3m"))


@pytest.mark.parametrize("given", [3, 2.5, {}, Walker, object()])
def test_other_objects_are_refused(given, duel):
    with pytest.raises(ConfigError, match=r"opponent must be an? "):
        resolve(given, duel)


def test_no_such_file(duel, tmp_path):
    with pytest.raises(ConfigError, match=r"none\.zip: no such file"):
        resolve(tmp_path / "none.zip", duel)
    with pytest.raises(ConfigError, match=r"be read: (Is a directory|Permission denied)"):
        resolve(tmp_path, duel)


def test_other_spaces_are_both_named(duel, make_model, saved, tmp_path):
    other = make_model(acts=spaces.Discrete(9))
    store = SnapshotStore(tmp_path / "store")
    store.add(other, 0)
    walker = Walker()
    walker.action_space = spaces.Discrete(9)
    for given in (other, saved(acts=spaces.Discrete(9)), store, walker):
        with pytest.raises(ConfigError, match=r"Discrete\(9\), expected the task's Discrete\(4\)"):
            resolve(given, duel)


class Teams(TeamTask):
    map_name = "3m_duel"
    players = 2
    agents = ("a", "b", "c")
    observation_space = state_space = SEEN
    action_space = FOUR
    shares_state = True


def test_they_play_every_agent_of_a_team(make_model, saved, tmp_path):
    store = SnapshotStore(tmp_path / "store")
    store.add(make_model(), 0)
    for given in (left, Walker(), make_model(), saved(), store):
        _, pair = resolve(given, Teams).begin(Episode(0, seed=3))
        firsts = []
        for _ in range(20):
            pair.put_rows([SHOWN] * 3)
            firsts.append([int(action) for action in asyncio.run(pair.get_actions())])
        assert np.shape(firsts) == (20, 3)
        if given not in (left,) and not isinstance(given, Walker):
            draws = np.transpose(firsts).tolist()
            assert draws[0] != draws[1] != draws[2], "each agent draws for itself"


def test_a_model_that_needs_the_state_is_no_opponent(saved):
    both = spaces.Dict({"observation": SEEN, "state": SEEN})
    path = saved(observed=both, policy="MultiInputPolicy")
    with pytest.raises(ConfigError, match=r"observes Dict\(.*, expected the task's Box"):
        resolve(path, Teams)


# ---- bots of python-sc2 --------------------------------------------------------------------------


class Waiting(BotAI):
    plan = "wait"

    async def on_step(self, iteration: int) -> None:
        """Do nothing."""


class Bare(Waiting):
    def __init__(self) -> None:
        """Like many bots, this constructor does not call that of the base class."""


class Learning(RLBotAI):
    map_name = "MarineDuel"
    players = 2
    observation_space = action_space = spaces.Discrete(2)

    def observe(self):
        raise NotImplementedError

    def act(self, action):
        raise NotImplementedError


def begun(given, duel) -> list[tuple[str, PlainBot]]:
    """The players that an opponent, pickled for a worker, makes for two episodes."""
    opponent = cloudpickle.loads(cloudpickle.dumps(resolve(given, duel)))
    return [opponent.begin(Episode(number)) for number in range(2)]


@pytest.mark.parametrize("given", [Waiting, Waiting(), Bare, Bare(), Bot(Race.Zerg, Waiting())])
def test_each_episode_has_a_bot_of_its_own(given, duel):
    (name, first), (_, second) = begun(given, duel)
    assert name == type(first.bot).__name__
    assert type(first.bot).__name__ in ("Waiting", "Bare")
    assert first.bot is not second.bot
    assert first.race == (common_pb2.Zerg if isinstance(given, Bot) else None)
    first.bot.plan = "attack"
    assert second.bot.plan == "wait"


def test_bot_object_keeps_its_attributes(duel):
    given = Waiting()
    given.plan = "expand"
    for _, playing in begun(Bot(Race.Random, given, name="planner"), duel):
        assert (playing.bot.plan, playing.race) == ("expand", common_pb2.Random)
    assert begun(Bot(Race.Random, given, name="planner"), duel)[0][0] == "planner"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (Learning, "Learning is an RLBotAI: give the policy"),
        (Learning(policy=lambda _: 0), "Learning is an RLBotAI: give the policy"),
        (Bot(Race.Terran, Learning(policy=lambda _: 0)), "Learning is an RLBotAI"),
        (Bot(Race.Terran, None), "has no bot: its ai is None"),
    ],
)
def test_other_bots_are_refused(given, told, duel):
    with pytest.raises(ConfigError, match=told):
        resolve(given, duel)


def test_a_program_without_bots_does_not_load_python_sc2():
    printed_by(
        "import sys\n"
        "from sc2pool.tasks.marine_duel import MarineDuel\n"
        "from sc2pool.tasks.opponents.resolve import resolve\n"
        "resolve(MarineDuel.scripted, MarineDuel)\n"
        "assert 'sc2' not in sys.modules"
    )


# ---- policies and functions behind a queue pair --------------------------------------------------


def shown(value: float, masks=None) -> Transition:
    return Transition(np.array([value]), 0.5, False, False, {}, masks)


class Masked:
    """Takes the first possible action, and counts its calls in its state."""

    def predict(
        self, observation, state=None, episode_start=None, deterministic=False, action_masks=None
    ):
        assert episode_start.tolist() == [state is None]
        return np.array(np.argmax(action_masks)), (state or 0) + 1


def test_a_policy_gets_masks_and_its_own_state():
    pair = PredictPair(Masked(), FOUR, deterministic=True)
    for wanted in (2, 0, 3):
        assert answer(pair, shown(0.0, np.arange(4) == wanted)) == wanted
    assert (pair.steps, pair.episode_return) == (3, 1.5)


async def later(observation):
    await asyncio.sleep(0)
    return int(observation[0])


@pytest.mark.parametrize("function", [lambda observation: int(observation[0]), later])
def test_a_function_may_be_async(function):
    assert answer(FunctionPair(function, FOUR), shown(3.0)) == 3


@pytest.mark.parametrize("action", [4, -1, None, "left", [1, 2]])
def test_a_function_must_act_in_the_space(action):
    with pytest.raises(ActionError, match=r"is not in Discrete\(4\)"):
        answer(FunctionPair(lambda _: action, FOUR))


def test_an_action_has_the_spaces_dtype_and_that_of_a_box_is_clipped():
    assert type(action_of(FOUR, np.array(3))) is np.int64
    box = spaces.Box(-1.0, 1.0, (2,), np.float32)
    clipped = action_of(box, np.array([2.0, -0.5]))
    assert (clipped.tolist(), clipped.dtype) == ([1.0, -0.5], np.float32)


def test_one_policy_plays_all_agents_of_a_team():
    """Each agent has a state of its own, which the policy checks."""
    policy = Masked()
    pair = SharedPair([PredictPair(policy, FOUR, deterministic=True) for _ in range(3)])
    for _ in range(2):
        pair.put_rows([shown(0.0, np.arange(4) == wanted) for wanted in (3, 1, 2)])
        assert asyncio.run(pair.get_actions()) == [3, 1, 2]
    with pytest.raises(ValueError, match="zip"):
        pair.put_rows([shown(0.0)])


def test_a_shared_pair_of_one():
    pair = SharedPair([FunctionPair(lambda observation: int(observation[0]), FOUR)])
    assert answer(pair, shown(2.0)) == 2
