"""`sc2pool train`, `top` and `watch` with `--ray`, on two nodes of one machine.

One program runs all commands on one cluster. The first test that needs the program's report starts
the program. The driver has no game, and the nodes have a game.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.on_ray import TIMEOUT_S, cases_of, environment_for_ray
from tests.support.programs import run

PROGRAM = Path(__file__).with_name("command_cases.py")

pytestmark = [
    pytest.mark.standin("the banner names it"),
    pytest.mark.timeout(TIMEOUT_S + 30),
]


@pytest.fixture(scope="module")
def case(run_on_ray, standin_dir):
    """`case(name)`: the result of a case of the program."""
    return cases_of(run_on_ray(PROGRAM, standin_dir))


def test_the_training_of_a_cluster_says_where_it_plays_and_saves_at_ctrl_c(case):
    ended = case("ended")
    assert ended["code"] == 130, ended["err"]
    assert "task    my_task:Walk, 4 games, to 100,000 steps" in ended["out"]
    assert "game    standin-3  (the stand-in, not StarCraft II)" in ended["out"]
    assert "\nnodes   " in ended["out"]
    assert " × 4\n" in ended["out"]
    assert "saved after " in ended["out"]
    assert "--resume" in ended["out"].splitlines()[-1]
    assert " --ray " in ended["out"].splitlines()[-1]


def test_top_shows_the_games_of_all_nodes(case):
    top = case("looked_at")["top"]
    assert (top["code"], top["err"]) == (0, "")
    shown = json.loads(top["out"])
    assert shown["task"] == "Walk"
    assert [row["seat"] for row in shown["instances"]] == ["env 0", "env 1", "env 2", "env 3"]
    assert len({row["instance"] for row in shown["instances"]}) == 4
    assert all(row["node"] for row in shown["instances"])


def test_the_table_names_the_nodes(case):
    table = case("looked_at")["table"]["out"]
    assert table.startswith("Walk · 4 envs · standin-3 (stand-in, not StarCraft II)\n")
    assert "Ray node" in table.splitlines()[1]
    assert " NODE " in table.splitlines()[4]
    assert sum(line.startswith("env ") for line in table.splitlines()) == 4


def test_watch_shows_the_games_of_all_nodes_and_their_curves(case):
    watch = case("looked_at")["watch"]
    assert watch["said"][0].startswith("the Ray cluster at ")
    assert watch["waited_s"] >= 0
    assert watch["views"] == 4
    assert "key" in watch["map"]
    assert {"mean return", "steps/s"} <= set(watch["figures"])


def test_resume_goes_on_with_other_games_and_evaluates_on_the_cluster(case):
    resumed = case("resumed")
    assert resumed["resumed"]["code"] == 0, resumed["resumed"]["err"]
    assert f", from {resumed['from']:,}\n" in resumed["resumed"]["out"]
    assert "evaluation at " in resumed["resumed"]["out"]
    assert resumed["to"] >= resumed["from"] + 400
    assert resumed["episodes"][1] > resumed["episodes"][0]
    assert resumed["evaluations"] >= 2
    assert {"model.zip", "best_model.zip", "learning_curve.png"} <= set(resumed["files"])


def test_top_without_a_pool_says_so(case):
    found = case("no_pool")
    assert found["code"] == 2
    assert found["err"].startswith("sc2pool: no pool is running on the nodes of the Ray cluster")


@pytest.mark.parametrize("command", ["train", "top"])
def test_an_address_that_does_not_answer_is_one_line(case, command):
    found = case("dead_address")[command]
    assert found["code"] == 2
    assert found["err"].startswith("sc2pool: no Ray cluster answers at 127.0.0.1:9")
    assert len(found["err"].splitlines()) == 1


NO_CLUSTER = """
import sys
from functools import cache
from ray._private import services
services.find_gcs_addresses = cache(set)  # of the machine's processes none is a cluster
services.find_bootstrap_address = lambda temp_dir: None
from sc2pool.cli.main import main
sys.exit(main(["top", "--ray", "auto"]))
"""


def test_no_cluster_on_this_machine_is_one_line(python_with_ray):
    with environment_for_ray() as environment:
        done = run(python_with_ray, "-c", NO_CLUSTER, env=environment, timeout_s=TIMEOUT_S)
    assert done.returncode == 2
    assert done.stderr.startswith("sc2pool: no Ray cluster at 'auto': Could not find any running")
    assert len(done.stderr.splitlines()) == 1


def test_nothing_is_left(case):
    assert case("in_the_end") == {"games": 0}
