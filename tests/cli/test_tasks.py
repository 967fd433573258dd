"""`sc2pool tasks` as a user runs it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sc2pool.cli.main import main
from sc2pool.tasks.minigames.scores import ON_THE_STANDIN
from sc2pool.tasks.registry import BUILT_IN, SMAC, SMAC_DUELS, SMACV2


def cells(line: str) -> list[str]:
    """What stands in one line of a table."""
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_the_tables(standin_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "--game", str(standin_dir)]) == 0
    *tables, duels, smac, smacv2, end = capsys.readouterr().out.split("\n\n")
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
def test_a_group_or_a_word(
    standin_dir: Path, capsys: pytest.CaptureFixture[str], word: str, found: list[str]
) -> None:
    assert main(["tasks", word, "--game", str(standin_dir)]) == 0
    looks, scores, _ = capsys.readouterr().out.split("\n\n")
    for table in (looks, scores):
        assert [cells(line)[0] for line in table.splitlines()[2:]] == found


def test_a_word_that_is_in_no_name(standin_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "chess", "--game", str(standin_dir)]) == 2
    assert "no task with 'chess' in its name" in capsys.readouterr().err


def test_the_scores_are_those_of_the_stand_ins_page() -> None:
    page = (Path(__file__).parents[2] / "sc2standin" / "README.md").read_text().replace("−", "-")
    for name, scores in ON_THE_STANDIN.items():
        (row,) = re.findall(rf"^\| {name} \| (\S+) .*? \| (\S+) ", page, re.MULTILINE)[:1]
        assert tuple(map(float, row)) == scores


def test_json(standin_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder,) = standin_dir.glob("Maps/mini_games")
    assert main(["tasks", "--json", "--game", str(standin_dir)]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["installation"]["root"] == str(standin_dir)
    tasks = {task["task"]: task for task in listed["tasks"]}
    assert list(tasks) == list(BUILT_IN)
    assert tasks["MoveToBeaconImage"]["observation_space"] == "Box(0, 255, (2, 64, 64), uint8)"
    assert tasks["CollectMineralShards"]["published"]["grandmaster"] == 177
    assert tasks["MoveToBeacon"]["map_file"] == str(folder / "MoveToBeacon.SC2Map")
    assert not tasks["MoveToBeacon"]["action_masks"]


def test_a_map_that_is_not_there(
    standin_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Versions").symlink_to(standin_dir / "Versions")
    main(["tasks", "--game", str(tmp_path)])
    _, scores, *_ = capsys.readouterr().out.split("\n\n")
    assert [cells(line)[2] for line in scores.splitlines()[2:]] == ["no"] * len(BUILT_IN)


def test_without_an_installation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "--game", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert "MoveToBeacon" in printed.out
    assert "has no folder Versions" in printed.err
    assert main(["tasks", "--json", "--game", str(tmp_path)]) == 0
    listed = json.loads(capsys.readouterr().out)
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
