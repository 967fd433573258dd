"""`RaySC2VecEnv` on two nodes: steps, errors, processes that die, and a network that is cut.

One program plays all cases on one cluster. The first test that needs the report starts the program.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import sc2pool
from tests.ray.conftest import only_long
from tests.support.on_ray import TIMEOUT_S, cases_of

PROGRAM = Path(__file__).with_name("vec_env_cases.py")
TRUNCATED = [True, 0.0, True, True, "node-lost"]
UNTOUCHED = [False, 0.0, False, None, None, None]

pytestmark = [
    pytest.mark.standin("its versions are made up"),
    pytest.mark.timeout(TIMEOUT_S + 30),
]


@pytest.fixture(scope="module")
def case(run_on_ray, standin_dir, other_version):
    """`case(name)`: the result of a case of the program."""
    return cases_of(run_on_ray(PROGRAM, standin_dir, other_version))


def test_its_pool_keeps_the_contract_of_every_pool(case):
    case("contract")


def test_every_env_has_its_episode_its_seat_and_its_game(case):
    found = case("steps_and_calls")
    assert found["firsts"] == 8, "a reset without a seed goes on with the run"
    assert found["steps"] == 4
    assert found["seats"] == ["env 0", "env 1", "env 2", "env 3"]
    assert sum(found["nodes"]) == 4
    assert found["free"] == 0, "two games are reserved on each of two nodes with two"
    assert found["version"] == "standin-3"


def test_calls_reach_the_env_that_is_meant(case):
    found = case("steps_and_calls")
    assert found["step_mul"] == [8, 4, 8, 4]
    assert found["picked"] == [4, 8, 4]


def test_envs_of_the_user_get_the_seeds_of_sb3(case):
    assert case("envs_of_the_user") == {"seeds": [5, 6, 7], "rewards": [1, 0, 1]}


def test_a_killed_actor_is_one_marked_truncation_in_each_of_its_rows(case):
    found = case("actor_killed")
    assert [row[:5] for row in found["rows"][:2]] == [TRUNCATED] * 2
    assert [row[5] for row in found["rows"][:2]] == found["last"][:2]
    assert found["rows"][2:] == [UNTOUCHED] * 2
    assert found["new"], "the observation is the first of another episode"
    assert found["next"] == [False] * 4
    assert found["others stay"]
    assert found["step_mul"] == [4] * 4, "attributes outlive the actor"
    assert (found["faults"], found["steps"], found["recovered"]) == (2, 8, True)


@pytest.mark.timing
def test_games_end_within_two_seconds_of_their_owner(case):
    assert 0 <= case("actor_killed")["gone_s"] < 30
    assert 0 <= case("driver_killed")["gone_s"] < 30
    assert 0 <= case("node_lost_for_good")["gone_s"] < 30


def test_an_actor_killed_at_rest_shows_at_the_next_step_or_reset(case):
    found = case("actor_killed_at_rest")
    assert found["answers"] == [8] * 4
    assert found["kinds"] == [None, None, "node-lost", "node-lost"]
    for told in found["told"]:
        assert ["sc2pool.fault" in keys for keys in told] == [False, False, True, True]


def test_an_actor_that_keeps_dying_is_a_crash_loop(case):
    for name in ("crash_loop", "crash_loop_of_the_only_actor"):
        found = case(name)
        assert found["error"]["type"] == "CrashLoopError"
        assert "1 failures of one env in 60 s" in found["error"]["text"]
        assert found["then"]["type"] == "ClosedError"
        assert found["left_s"] >= 0, "the games of the other node end, too"
    assert (found["faults"], found["launches"]) == (1, 1), "statistics outlive the only actor"


def test_after_ray_was_shut_down_the_env_is_closed_and_connects_to_nothing(case):
    found = case("ray_shut_down")
    assert (found["launches"], found["connected"]) == (1, False)
    for call in ("reset", "then"):
        assert found[call]["type"] == "ClosedError"
        assert found[call]["text"].startswith("Ray was shut down")
    assert found["closed"]["text"] == "no error"


def test_a_forked_child_is_refused_and_the_parent_plays_on(case):
    found = case("forked")
    assert [found[call]["type"] for call in ("step", "close")] == [
        "ForkedPoolError",
        "RuntimeWarning",
    ]
    assert found["parent"]["text"] == "no error"


def test_what_is_no_address_is_refused(case):
    assert [one["type"] for one in case("ray_shut_down")["addresses"]] == ["ConfigError"] * 3


def test_a_killed_driver_leaves_no_game_and_no_reservation(case):
    found = case("driver_killed")
    assert found["games"] == 4
    assert found["gone_s"] >= 0
    assert found["free_s"] >= 0


def test_nothing_in_the_drivers_working_directory_is_imported(case):
    assert case("driver_killed")["imported"] is False


def test_last_observations_survive_edits_of_the_batch(case):
    assert case("scribbled") == {"array": [True] * 2, "no layout": [True] * 2}


def test_a_stopped_actor_is_replaced(case):
    found = case("actor_stopped")
    assert found["kinds"] == [None, None, "node-lost", "node-lost"]
    assert found["answers"] == [8] * 4
    assert found["gone_s"] >= 0, "its games end with it"


@pytest.mark.timing
def test_a_stopped_actor_is_found_soon_after_a_steps_limit(case):
    found = case("actor_stopped")
    assert found["step_s"] < 120
    assert found["call_s"] < 120


def test_a_stopped_head_is_an_error_of_each_call_that_asks_it(case):
    found = case("head_stopped")
    assert found["made"]["type"] == "NodeLostError"
    assert "the head of the Ray cluster has not answered within 2 s" in found["made"]["text"]
    assert "ConfigError: no Ray cluster answers at" in found["connected"]


def test_close_returns_however_the_interpreter_is_left(case):
    found = case("interpreter_ends")
    assert found["status"] == 0
    said = dict(line.split(": ") for line in found["said"])
    said.pop("made")
    assert len(said) == 10
    assert max(map(float, said.values())) < 5.0


def test_a_node_that_does_not_come_back_is_an_error_that_says_so(case):
    found = case("node_lost_for_good")
    assert found["games"] == 4
    assert found["error"]["type"] == "NodeLostError"
    assert "no node had room for 2 games within 4 s (node_timeout_s)" in found["error"]["text"]
    assert found["left"] == 0


def test_a_step_waits_for_the_node_that_comes_back(case):
    found = case("node_returns")
    assert found["waits"]
    assert sorted(map(str, found["kinds"])) == ["None", "None", "node-lost", "node-lost"]
    assert found["then"] == [False] * 4
    assert found["after_return_s"] >= 0


def test_games_are_spread_in_proportion_to_the_room(case):
    found = case("spreads")
    assert found["even"] == {"node 0": 3, "node 1": 2}
    assert found["by CPUs"] == {"node 0": 2, "node 1": 4}
    assert found["declared"] == {"node 0": 2, "node 1": 4}
    assert found["free"] == {"node 1": 2}
    assert found["spares"] == {"node 0": 2, "node 1": 2}
    assert found["fewer than nodes"] == {"node 0": 1}
    assert "no room for 5 games with spares=1 on each node (node 0: 3 of 3" in found["too many"]
    assert "no node with a CPU for 1 games" in found["no CPU"]


def test_too_few_games_are_an_error_that_says_what_each_node_has(case):
    found = case("too_few_resources")
    assert found["type"] == "ConfigError"
    assert found["text"].startswith("the Ray cluster has no room for 5 games (")
    assert found["text"].count("2 of 2 sc2_game free") == 2


def test_a_node_without_the_game_is_an_error_that_names_it(case):
    found = case("a_node_without_the_game")
    assert found["type"] == "ConfigError"
    assert found["text"].startswith("node ")
    assert "/no/such/game does not exist" in found["text"]
    assert found["left"] == 0


def test_nodes_with_different_versions_of_the_game_do_not_play_together(case):
    found = case("another_version")
    assert found["type"] == "ConfigError"
    assert "the nodes play different versions of the game" in found["text"]
    assert found["text"].count("standin-3 (build") == 2
    assert found["text"].count("standin-other (build") == 1
    assert found["left"] >= 0


def test_nodes_with_another_version_of_the_package_do_not_play(case):
    found = case("another_package")
    assert found["type"] == "ConfigError"
    assert "different versions of sc2pool (this process: 99.0; node " in found["text"]
    assert f": {sc2pool.__version__}" in found["text"]


@pytest.mark.timing
@pytest.mark.parametrize(
    "name", ["too_few_resources", "a_node_without_the_game", "another_version"]
)
def test_bad_input_is_answered_within_seconds(case, name):
    assert case(name)["took_s"] < 60


def test_a_window_a_time_that_is_none_and_no_config_are_refused(case):
    found = case("wrong_keywords")
    assert [one["type"] for one in found.values()] == ["ConfigError"] * 3
    assert found["config"]["text"] == "config must be a PoolConfig, got 'fast'"
    assert found["node_timeout_s"]["text"] == "node_timeout_s must be a number above 0, got None"


def test_nothing_is_left(case):
    assert case("in_the_end") == {"games": 0}


NETWORK_PROGRAM = Path(__file__).with_name("network_cases.py")


@only_long
@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2"
)
@pytest.mark.standin("only its games are known by their folder")
@pytest.mark.timeout(TIMEOUT_S)
def test_a_cut_is_one_truncation_and_no_game_outlives_it(run_on_ray, standin_dir, monkeypatch):
    for name, value in {"timeout_ms": 3000, "period_ms": 1000, "failure_threshold": 3}.items():
        monkeypatch.setenv(f"RAY_health_check_{name}", str(value))
    found = run_on_ray(NETWORK_PROGRAM, standin_dir)()
    assert found["nodes"] == 2
    assert found["kinds"] == [None, "node-lost"]
    assert found["dones"] == [False, True]
    assert found["rewards"][1] == 0
    assert not any(map(any, found["then"]))
    assert found["gone_s"] >= 0, "the games of the node that was cut off end when it is back"
    assert found["left"] >= 0
