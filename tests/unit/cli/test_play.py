"""Tests `sc2pool play`: the chosen model, the policies of the package, and the summary."""

from __future__ import annotations

from pathlib import Path

import pytest
from gymnasium import Env, spaces
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize

import sc2pool
from sc2pool.cli.chosen_player import ChosenPlayer, find_player, playable_model, scripted_function
from sc2pool.cli.play import Ended, summary
from sc2pool.cli.record import check_recordable, env_spec_of
from sc2pool.errors import ConfigError
from sc2pool.pretrained import pretrained
from sc2pool.tasks.minigames.scores import ON_THE_STANDIN, PUBLISHED
from sc2pool.tasks.registry import resolve_task

# ---- the chosen model ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["MoveToBeacon", "movetobeacon"])
def test_a_folder_does_not_hide_a_pretrained_policy(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a bundled policy must not lead to a folder, which another user can have made."""
    planted = tmp_path / "MoveToBeacon"
    planted.mkdir()
    (planted / "model.zip").write_text("what runs code when it is loaded")
    monkeypatch.chdir(tmp_path)
    bundled = str(pretrained()["MoveToBeacon"].path)
    assert find_player(name, None, None).name == bundled
    assert playable_model("./MoveToBeacon") == Path("MoveToBeacon/model.zip")


def test_a_space_without_arrays_is_not_recorded() -> None:
    built_in = resolve_task("MoveToBeacon")
    check_recordable(built_in)
    said = type("Said", (built_in,), {"observation_space": spaces.Text(5)})
    with pytest.raises(ConfigError, match=r"Said: observation_space Text\(1, 5, .* cannot be rec"):
        check_recordable(said)


def test_a_users_task_of_a_built_in_name_is_not_the_built_in_one() -> None:
    """A user's task with a built-in name has no scripted player and no gymnasium spec."""
    built_in = resolve_task("MoveToBeacon")
    scripted_function(built_in)
    assert env_spec_of(ChosenPlayer("random", built_in, "auto")) is not None
    own = type("MoveToBeacon", (built_in,), {})
    assert env_spec_of(ChosenPlayer("random", own, "auto")) is None
    with pytest.raises(ConfigError, match="MoveToBeacon has no scripted player"):
        scripted_function(own)


class Spaces(Env):
    """An env with the spaces of MoveToBeacon."""

    observation_space = resolve_task("MoveToBeacon").observation_space
    action_space = resolve_task("MoveToBeacon").action_space

    def reset(self, **_: object) -> tuple[object, dict[str, object]]:
        return self.observation_space.sample(), {}

    def step(self, _: object) -> tuple[object, float, bool, bool, dict[str, object]]:
        return self.observation_space.sample(), 0.0, False, True, {}


@pytest.mark.parametrize("normalized", [False, True])
def test_a_model_of_normalized_observations_is_played_with_a_warning(
    normalized: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = DummyVecEnv([Spaces])
    model = PPO("MlpPolicy", VecNormalize(env) if normalized else env, n_steps=2, batch_size=2)
    model.learn(2)
    model.save(tmp_path / "model.zip")
    find_player(str(tmp_path / "model.zip"), "MoveToBeacon", None)
    assert ("was trained under VecNormalize" in capsys.readouterr().out) == normalized


def test_a_model_of_stacked_frames_is_refused_with_the_reason(tmp_path: Path) -> None:
    PPO("MlpPolicy", VecFrameStack(DummyVecEnv([Spaces]), 4)).save(tmp_path / "model.zip")
    with pytest.raises(
        ConfigError, match=r"observes .* expected .*; frames that VecFrameStack has"
    ):
        find_player(str(tmp_path / "model.zip"), "MoveToBeacon", None)


# ---- policies of the package ---------------------------------------------------------------------


FOLDER = Path(sc2pool.__file__).parent / "pretrained"
MOST_BYTES = 2_000_000
"""The limit for the size of all policies together, so that the wheel stays small."""


def test_there_is_one_for_each_mini_game_a_team_and_a_duel() -> None:
    assert set(pretrained()) == {*PUBLISHED, "3m", "MarineDuel"}
    assert {file.stem for file in FOLDER.glob("*.zip")} == set(pretrained())
    assert sum(file.stat().st_size for file in FOLDER.glob("*.zip")) < MOST_BYTES


@pytest.mark.parametrize("name", sorted(pretrained()))
def test_it_plays_its_task_better_than_chance(name: str) -> None:
    """The policy has the spaces of its task, and its measured score beats random play."""
    one, found = pretrained()[name], find_player(name.lower(), None, None)
    assert found.task.__name__ == name
    assert Path(found.name) == one.path
    assert one.game_version.startswith("standin")
    assert one.episodes == 100
    if name in ON_THE_STANDIN:
        assert one.mean_return > ON_THE_STANDIN[name].random


# ---- the summary ---------------------------------------------------------------------------------


def match(result: str, whole: bool = True) -> Ended:
    return Ended(1.5, 10, result, whole, {"sc2pool.result": result})


ALONE = Ended(1.5, 10, "ended", True, {})


@pytest.mark.parametrize(
    ("episodes", "opponent", "words"),
    [
        ([ALONE], None, "mean return 1.50 ± 0.00 over 1 episode"),
        (
            [match("win"), match("loss"), match("tie"), match("win", whole=False)],
            "zerg",
            "won 1 of 3 matches against zerg, lost 1, 1 undecided; "
            "mean return 1.50 ± 0.00 over 3 episodes",
        ),
    ],
    ids=["alone", "match"],
)
def test_the_summary_counts_results_against_an_opponent(episodes, opponent, words):
    assert summary(episodes, opponent) == words
