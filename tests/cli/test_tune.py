"""`sc2pool tune`: trials on one pool, which go on where they were, and a file for `train`."""

from __future__ import annotations

import re
import sqlite3
from functools import partial

import optuna
import pytest
import yaml
from sqlalchemy.exc import OperationalError

from sc2pool.cli.training.hyperparameters import read_hyperparameters
from sc2pool.cli.training.run_folder import reserved
from sc2pool.cli.tune import open_study
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon


@pytest.fixture
def tune(in_process, standin_dir, tmp_path):
    options = [f"--game={standin_dir}", f"--out={tmp_path / 'search'}", "--n=1"]
    return partial(in_process, "tune", *options, "--eval-episodes=1")


def test_it_searches_goes_on_and_writes_the_best(tune, tmp_path):
    code, said, _ = tune("--task=3m", "--algo=maskable-ppo", "--steps=256", "--trials=2")
    assert code == 0
    assert said.count("trial ") == 2
    code, said, _ = tune("--task=3m", "--algo=maskable-ppo", "--steps=256", "--trials=3")
    assert (code, said.count("trial ")) == (0, 1)

    search = tmp_path / "search"
    study = optuna.load_study(study_name="sc2pool", storage=f"sqlite:///{search / 'study.db'}")
    values = [trial.value for trial in study.trials]
    assert len(values) == 3
    assert len({str(trial.params) for trial in study.trials}) == 3
    best = yaml.safe_load((search / "best.yml").read_text())
    assert list(best) == ["3m"]
    assert best["3m"]["learning_rate"] == study.best_trial.params["learning_rate"]
    found = read_hyperparameters("maskable-ppo", "3m", search / "best.yml")
    assert found.n_timesteps == read_hyperparameters("maskable-ppo", "3m").n_timesteps
    assert re.search(r"--algo maskable-ppo --hyperparameters .*best.yml\n$", said)

    # A search that was killed before it wrote the file of its best trial.
    written = (search / "best.yml").read_text()
    (search / "best.yml").unlink()
    assert tune("--task=3m", "--algo=maskable-ppo", "--steps=256", "--trials=3")[0] == 0
    assert (search / "best.yml").read_text() == written

    for other in ("--steps=512", "--seed=2"):
        code, _, complaint = tune("--task=3m", "--algo=maskable-ppo", "--steps=256", other)
        assert code == 2
        assert "holds another search" in complaint


class Broken(MoveToBeacon):
    """A task of a user's, with a mistake."""

    def reward(self):
        raise RuntimeError("a mistake of the task")


def test_games_that_fail_end_the_search_and_no_trial_counts(tune, tmp_path):
    for _ in range(2):
        code, said, complaint = tune(f"--task={__name__}:Broken", "--steps=64", "--trials=2")
        assert code == 2
        assert "a mistake of the task" in complaint
        assert "trial 0" not in said
    storage = f"sqlite:///{tmp_path / 'search' / 'study.db'}"
    study = optuna.load_study(study_name="sc2pool", storage=storage)
    assert [trial.state.name for trial in study.trials] == ["FAIL", "FAIL"]


def test_a_study_that_is_damaged(tune, tmp_path):
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "study.db").write_text("no database" * 100)
    code, _, complaint = tune("--trials=1")
    assert code == 2
    assert "its study.db cannot be used" in complaint


def test_a_disk_that_becomes_full(tune, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        full = OperationalError("INSERT", {}, sqlite3.OperationalError("database or disk is full"))
        raise optuna.exceptions.StorageInternalError("This typically happens …") from full

    monkeypatch.setattr(optuna.study.Study, "tell", refuse)
    code, _, complaint = tune("--task=3m", "--steps=64", "--trials=1")
    assert code == 2
    assert "its study.db cannot be used ((sqlite3.OperationalError) database or disk is f" in (
        complaint
    )


def test_a_folder_whose_search_never_began(tmp_path):
    """As when the games could not be launched."""
    open_study(tmp_path, {"seed": 0, "n": 100_000})
    study = open_study(tmp_path, {"seed": 0, "n": 1})
    assert study.user_attrs["asked"] == {"seed": 0, "n": 1}


def test_two_searches_at_once(tune, tmp_path):
    """Optuna's tables are not made twice, nor the same trials played twice."""
    with reserved(tmp_path / "search"):
        code, said, complaint = tune("--trials=1")
        assert list((tmp_path / "search").glob("*.db")) == []
    assert (code, said) == (2, "")
    assert "another training writes into this folder" in complaint


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--algo=async-ppo"], "--algo async-ppo: tune knows ppo, maskable-ppo, "),
        (["--algo=sac"], "--algo sac plays Box actions"),
        (["--task=Chess"], "unknown task 'Chess'"),
        (["--device=abacus"], "--device abacus: torch cannot use it"),
    ],
)
def test_bad_input(tune, tmp_path, arguments, message):
    code, _, complaint = tune(*arguments)
    assert code == 2
    assert message in complaint
    assert list(tmp_path.iterdir()) == []
