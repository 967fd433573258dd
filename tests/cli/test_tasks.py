"""`sc2pool tasks` as a user runs it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from sc2pool.tasks.minigames.scores import ON_THE_STANDIN
from sc2pool.tasks.registry import BUILT_IN, SMAC, SMAC_DUELS, SMACV2

Tasks = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tasks(in_process: Callable[..., tuple[int, str, str]]) -> Tasks:
    """Runs `sc2pool tasks` with these arguments: its exit code, and what it prints."""
    return partial(in_process, "tasks")


def cells(line: str) -> list[str]:
    """What stands in one line of a table."""
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_the_tables(standin_dir: Path, tasks: Tasks) -> None:
    code, said, _ = tasks("--game", standin_dir)
    assert code == 0
    *tables, duels, smac, smacv2, end = said.split("\n\n")
    looks, scores = ([cells(line) for line in table.splitlines()[2:]] for table in tables)
    assert [row[0] for row in looks] == [row[0] for row in scores] == list(BUILT_IN)
    roaches = list(BUILT_IN).index("DefeatRoaches")
    assert looks[roaches] == [
        "DefeatRoaches",
        "Box(-1, 1, (25,), float32)",
        "Discrete(11)",
        "8",
        "1920",
        "yes",
        "1",
    ]
    known = ["-4", "102.6", "41", "215", "100"]
    assert scores[roaches] == ["DefeatRoaches", "DefeatRoaches", "yes", *known]
    assert all(len(line) <= 125 for table in tables for line in table.splitlines())
    assert duels.split() == ["duels:", *SMAC_DUELS]
    assert smac.split() == ["smac:", *SMAC]
    assert smacv2.split() == ["smacv2:", *SMACV2]
    *source, where = end.splitlines()
    assert "SC2LE paper" in source[-2]
    assert where == f"Installation: {standin_dir}: game={str(standin_dir)!r}"


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("SMAC", list(SMAC)),
        ("duels", ["MarineDuel", *SMAC_DUELS]),
        ("banelings", ["DefeatZerglingsAndBanelings", "DefeatZerglingsAndBanelingsImage"]),
        ("mmm2", ["MMM2"]),
    ],
)
def test_a_group_or_a_word(standin_dir: Path, tasks: Tasks, word: str, found: list[str]) -> None:
    code, said, _ = tasks(word, "--game", standin_dir)
    assert code == 0
    looks, scores, _ = said.split("\n\n")
    for table in (looks, scores):
        assert [cells(line)[0] for line in table.splitlines()[2:]] == found


def test_a_word_that_is_in_no_name(standin_dir: Path, tasks: Tasks) -> None:
    code, _, complaints = tasks("chess", "--game", standin_dir)
    assert code == 2
    assert "no task with 'chess' in its name" in complaints
    _, _, complaints = tasks("MoveToBacon", "--game", standin_dir)
    assert complaints.endswith("; did you mean MoveToBeacon?\n")


def test_the_scores_are_those_of_the_stand_ins_page() -> None:
    page = (Path(__file__).parents[2] / "sc2standin" / "README.md").read_text().replace("−", "-")
    for name, scores in ON_THE_STANDIN.items():
        (row,) = re.findall(rf"^\| {name} \| (\S+) .*? \| (\S+) ", page, re.MULTILINE)[:1]
        assert tuple(map(float, row)) == scores


def test_json(standin_dir: Path, tasks: Tasks) -> None:
    (folder,) = standin_dir.glob("Maps/mini_games")
    code, said, _ = tasks("--json", "--game", standin_dir)
    assert code == 0
    listed = json.loads(said)
    assert listed["installation"]["root"] == str(standin_dir)
    told = {task["task"]: task for task in listed["tasks"]}
    assert list(told) == list(BUILT_IN)
    assert told["MoveToBeaconImage"]["observation_space"] == "Box(0, 255, (2, 64, 64), uint8)"
    assert told["CollectMineralShards"]["published"]["grandmaster"] == 177
    assert told["MoveToBeacon"]["map_file"] == str(folder / "MoveToBeacon.SC2Map")
    assert not told["MoveToBeacon"]["action_masks"]


def test_a_map_that_is_not_there(standin_dir: Path, tmp_path: Path, tasks: Tasks) -> None:
    (tmp_path / "Versions").symlink_to(standin_dir / "Versions")
    _, said, _ = tasks("--game", tmp_path)
    _, scores, *_ = said.split("\n\n")
    assert [cells(line)[2] for line in scores.splitlines()[2:]] == ["no"] * len(BUILT_IN)


def test_an_installation_that_is_not_there(tmp_path: Path, tasks: Tasks) -> None:
    code, said, complaints = tasks("--game", tmp_path / "nowhere")
    assert (code, said) == (2, "")
    assert "nowhere does not exist" in complaints


def test_without_an_installation(
    tmp_path: Path, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SC2PATH", str(tmp_path))
    code, said, complaints = tasks()
    assert code == 0
    assert "MoveToBeacon" in said
    assert "has no folder Versions" in complaints
    code, said, _ = tasks("--json")
    assert code == 0
    listed = json.loads(said)
    assert listed["installation"] is None
    assert "has no folder Versions" in listed["note"]


def test_on_a_terminal_with_few_letters(
    command: Callable[..., subprocess.CompletedProcess[str]],
    standin_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = command("tasks", "--game", str(standin_dir))
    assert (done.returncode, done.stderr) == (0, "")
    assert "MoveToBeacon" in done.stdout
