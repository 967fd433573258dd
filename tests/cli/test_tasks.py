"""`sc2pool tasks` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sc2pool.cli.main import main
from sc2pool.tasks.registry import BUILT_IN


def test_the_table(standin_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "--game", str(standin_dir)]) == 0
    header, underline, *rows, blank, source, where = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == list(BUILT_IN)
    assert len(header) <= len(underline)
    assert blank == ""
    assert "SC2LE paper" in source
    assert where == f"Installation: {standin_dir}: game={str(standin_dir)!r}"
    roaches = next(row for row in rows if row.startswith("DefeatRoaches"))
    cells = [cell.strip() for cell in roaches.split("  ") if cell.strip()]
    assert cells == [
        "DefeatRoaches",
        "DefeatRoaches",
        "Box(-1, 1, (25,), float32)",
        "Discrete(11)",
        "8",
        "1920",
        "yes",
        "1 (46)",
        "41",
        "215",
        "100",
        "yes",
    ]


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
    rows = capsys.readouterr().out.splitlines()[2 : 2 + len(BUILT_IN)]
    assert all(row.endswith("  no") for row in rows)


def test_without_an_installation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "--game", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert "MoveToBeacon" in printed.out
    assert "has no folder Versions" in printed.err
    assert main(["tasks", "--json", "--game", str(tmp_path)]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["installation"] is None
    assert "has no folder Versions" in listed["note"]
