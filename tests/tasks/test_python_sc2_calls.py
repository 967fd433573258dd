"""In the pool, python-sc2's calls do what they do under `run_game`, or raise a `UserCodeError`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from sc2.bot_ai import BotAI
from sc2.client import Client

from tests.support.programs import run
from tests.tasks.python_sc2_calls import BOT, CLIENT, PROPERTIES

PROGRAM = Path(__file__).with_name("python_sc2_calls.py")
PAGE = (Path(__file__).parents[2] / "docs" / "python-sc2.md").read_text()
ROWS = re.findall(r"^\| (`.*) \| (.*) \|$", PAGE, re.MULTILINE)
PROMISED = {name: promise for names, promise in ROWS for name in re.findall(r"`(\w+)`", names)}
"""What `docs/python-sc2.md` says about each method of the client."""
ENDING = {"leave", "debug_leave"}


@pytest.fixture(scope="module")
def outcomes(standin_dir: Path) -> dict[str, Any]:
    done = run(sys.executable, PROGRAM, standin_dir)
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def public(cls: type) -> set[str]:
    """The names of a class's methods and properties."""
    return {
        name
        for base in cls.__mro__[:-1]
        for name, value in vars(base).items()
        if not name.startswith(("_", "on_")) and not isinstance(value, int)
    }


def test_every_name_is_on_the_page_and_called():
    assert set(PROMISED) == public(Client)
    called = {name.partition(",")[0] for name in CLIENT}
    assert called | ENDING | {"in_game"} == public(Client)
    assert {name for name in BOT if not name.startswith("_")} | set(PROPERTIES) == public(BotAI)


def test_each_call_does_what_it_does_under_run_game(outcomes):
    pool, run_game = outcomes["pool"], outcomes["run_game"]
    assert pool.keys() - {"client.quit"} == run_game.keys() - {"client.quit"}
    differing = {name for name, outcome in pool.items() if run_game.get(name) != outcome}
    assert differing == {f"client.{name}" for name in ("join_game", "quit", "obs_move_camera")}
    assert len(pool["in_pathing_grid"]) >= 2, "its town hall, and what it has built"
    assert not any(pool["in_pathing_grid"])
    assert {pool[f"client.{name}"] for name in ENDING} == {"Defeat"}
    assert outcomes["files"] == ["calls.SC2Replay", "data_dump.txt"]


def test_each_call_of_the_client_does_what_the_page_says(outcomes):
    for name in PROMISED.keys() - {"in_game"}:
        outcome = str(outcomes["pool"][f"client.{name}"])
        refuses = PROMISED[name].startswith("`UserCodeError`")
        assert (outcome == "raises UserCodeError") == refuses, name
        raised = "ProtocolError" if name.startswith("quick_") else "UserCodeError"
        assert not outcome.startswith("raises") or outcome == f"raises {raised}", name
