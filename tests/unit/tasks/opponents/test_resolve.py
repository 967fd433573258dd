"""What a user may give as an opponent, and what is refused."""

from __future__ import annotations

import asyncio
import functools

import cloudpickle
import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.config import Computer
from sc2pool.errors import ConfigError
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.opponents.resolve import InTurn, resolve
from sc2pool.tasks.opponents.snapshots import SnapshotStore
from sc2pool.tasks.player import Episode
from sc2pool.tasks.teams.smac.duel import smac_duel
from sc2pool.tasks.teams.team_task import TeamTask
from tests.unit.tasks.opponents.conftest import FOUR, SEEN, SHOWN, answer


def left(observation):
    return 2


class Walker:
    action_space = spaces.Discrete(4)

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        assert not deterministic
        return np.array(3), None


def played(opponent) -> tuple[str, int]:
    """The name and the first action, after the way to a worker."""
    name, pair = cloudpickle.loads(cloudpickle.dumps(opponent)).begin(Episode(0))
    return name, int(answer(pair))


def test_functions_and_objects(duel):
    assert played(resolve(left, duel)) == ("left", 2)
    assert played(resolve(lambda _: 1, duel)) == ("<lambda>", 1)
    assert played(resolve(functools.partial(lambda a, _: a, 3), duel)) == ("partial", 3)
    assert played(resolve(Walker(), duel)) == ("Walker", 3)


def test_models_and_files(duel, make_model, saved):
    assert played(resolve(make_model(), duel))[0] == "PPO"
    path = saved("marines")
    assert played(resolve(path, duel))[0] == "marines"
    assert played(resolve(str(path), duel))[0] == "marines"


def test_store_computer_and_none(duel, make_model, tmp_path):
    store = SnapshotStore(tmp_path)
    opponent = resolve(store, duel)  # which may still be empty
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
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
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
