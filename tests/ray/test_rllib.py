"""RLlib's algorithms on two nodes: counts, seeds, faults, and the limits of a cluster.

One program runs all cases. The first test that needs the program's report starts the program.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ray.conftest import only_long
from tests.support.on_ray import TIMEOUT_S, cases_of
from tests.tiers import is_long

pytestmark = pytest.mark.timeout(TIMEOUT_S + 30)

CASES = Path(__file__).with_name("rllib_cases.py")
SHORT = "one_config_twice,errors"
"""The cases of a short test run. Tests in tests/realtime and tests/libraries use RLlib too."""
GONE_S = 30.0
FULL_AGAIN_S = 120.0
"""Time limit until all env runners play again, which takes 14 s on a calm machine."""


@pytest.fixture(scope="module")
def case(run_on_ray, standin_dir, other_version):
    """`case(name)`: the result of a case of the program."""
    chosen = "" if is_long() else SHORT
    return cases_of(run_on_ray(CASES, standin_dir, other_version, cases=chosen))


@only_long
@pytest.mark.parametrize(
    ("name", "games"),
    [
        ("ppo_and_faults", 4),
        ("ppo_in_one_process", 2),
        ("impala_with_one_runner", 2),
        ("appo_in_real_time", 4),
        ("dreamerv3", 4),
    ],
)
def test_steps_of_five_updates_are_the_pools(case, name, games):
    found = case(name)
    counts = found.get("counts", found)
    assert counts["sampled"] == counts["of the pools"] > 0
    assert (counts["launches"], counts["faults"]) == (games, 0)


@only_long
def test_gaps_without_an_action_are_reported_in_real_time(case):
    p50, p99, longest = case("appo_in_real_time")["gaps"]
    assert 0 < p50 <= p99 <= longest


@only_long
def test_no_two_envs_have_an_episode_in_common_and_equal_seeds_give_equal_runs(case):
    found = case("ppo_by_seed")
    assert found["once"] == found["again"]
    firsts = [tuple(first) for seen, _ in found["once"]["seen"] for first in seen]
    assert len(firsts) == len(set(firsts)) == 4


@only_long
@pytest.mark.parametrize(
    ("name", "fault"), [("ppo_and_faults", "game"), ("appo_in_real_time", "killed")]
)
def test_a_killed_game_is_one_truncation_and_no_restart(case, name, fault):
    found = case(name)[fault]
    assert found["faults"] == 1
    assert found["marked"] == [[True, False]], "truncated, not terminated"
    assert found["restarts"] == 0
    assert found["sampled"] == found["of the pools"]


@only_long
@pytest.mark.parametrize("name", ["ppo_and_many_faults", "appo_and_many_faults"])
def test_every_killed_game_is_one_truncation_and_no_restart(case, name):
    found = case(name)
    assert found["faults"] == found["kills"] > 10
    assert len(found["marked"]) + found["at resets"] == found["kills"]
    assert all(marked == [True, False] for marked in found["marked"])
    assert found["restarts"] == 0
    assert found["sampled"] == found["of the pools"]


@only_long
def test_a_killed_runner_takes_its_games_along_and_its_successor_plays_other_episodes(case):
    found = case("ppo_and_faults")["runner"]
    assert 0 <= found["games gone after s"] <= GONE_S
    assert found["full after s"] >= 0
    before, after = ([first for seen in runners for first in seen] for runners in found["firsts"])
    assert sum(first in before for first in after) == 2, "those of the runner that lives on"


@only_long
def test_a_killed_node_takes_its_games_along_and_the_training_goes_on(case):
    found = case("ppo_and_faults")["node"]
    assert 0 <= found["games gone after s"] <= GONE_S
    assert found["healthy without it"] == 1
    assert sorted(set(found["steps without it"])) == found["steps without it"]
    assert 0 <= found["full again after s"] <= FULL_AGAIN_S
    assert found["after"]["sampled"] == found["after"]["of the pools"]


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("no room", "ConfigError", "room for 2 of 3 env runners"),
        ("no CPU for the learner", "ConfigError", "room for 0 of 1 learners"),
        ("no such task", "ConfigError", "unknown task 'Chess'"),
        ("no games", "ConfigError", "n must be a whole number of at least 1, got 0"),
        ("no config", "ConfigError", "must be an AlgorithmConfig of RLlib, got {}"),
        ("old API stack", "ConfigError", "new API stack"),
        ("another cluster", "ConfigError", "already connected"),
        ("no such game", "ConfigError", "cannot play: game='/nowhere'"),
        ("the task raises", "ClosedError", "ZeroDivisionError: a mistake in act"),
        ("in this process", "ClosedError", "ZeroDivisionError: a mistake in act"),
        ("envs made anew", "ClosedError", "ZeroDivisionError: a mistake in act"),
        ("two versions", "ConfigError", "standin-other"),
    ],
)
def test_impossible_configurations_are_typed_errors(case, name, kind, words):
    error = case("errors")[name]
    assert error["type"] == kind, error["text"]
    assert words in error["text"]


def test_what_no_node_can_play_is_not_told_as_a_nodes_fault(case):
    assert "if it shall not" not in case("errors")["no such game"]["text"]


def test_an_algorithm_does_not_fail_for_another_of_the_same_configuration(case):
    assert case("one_config_twice") == {"once": 1, "again": 1}


def test_nothing_is_left(case):
    assert case("errors")["left"] == 0
    assert case("in_the_end") == {"games": 0}
