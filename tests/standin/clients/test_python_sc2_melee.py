"""python-sc2's bots on the melee: they fight, build where its helpers say, and spread workers.

`tests/peers/python_sc2_examples.py` plays the examples of python-sc2's own repository.
"""

from __future__ import annotations

from tests.standin.clients.conftest import said


def _reached(run, bot: str) -> dict:
    return said(run("python_sc2_melee", bot), quiet=True)


def test_a_worker_rush_is_fought_out(run):
    reached = _reached(run, "Rush")
    assert reached["result"] == "Victory"
    assert reached["killed"] >= 600


def test_a_builder_walls_expands_and_spreads_its_workers(run):
    reached = _reached(run, "Builder")
    assert reached["wall"] >= 2
    assert reached["town_halls"] == 2
    assert reached["at_expansions"]
    assert len(reached["marines"]) >= 4
    assert max(reached["surplus"]) <= 2
    assert reached["errors"] == []


def test_a_mechanic_has_mules_a_tech_lab_cyclones_and_a_barracks_that_moved(run):
    reached = _reached(run, "Mechanic")
    assert reached["cyclones"] >= 2
    assert reached["labs"] == [True]
    assert reached["mules"] >= 1
    assert reached["lifted"]
    assert reached["errors"] == []
