"""Repeated and simultaneous installing must write whole files, and nothing into foreign folders."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sc2.maps import Map

from sc2standin.install import MARKER, InstallError, install
from sc2standin.version import BASE_BUILD
from tests.standin.process.test_replays import MAPS
from tests.support.programs import run


def _snapshot(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(directory)): (path.read_bytes(), path.stat().st_mode)
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_layout(tmp_path):
    executable = install(tmp_path / "game")
    assert executable == tmp_path / "game" / "Versions" / f"Base{BASE_BUILD}" / "SC2_x64"
    assert executable.stat().st_mode & 0o111 == 0o111
    maps = tmp_path / "game" / "Maps" / "mini_games"
    assert {path.stem for path in maps.glob("*.SC2Map")} == set(MAPS)
    assert all(json.loads(path.read_text())["name"] == path.stem for path in maps.iterdir())


def test_the_melee_has_the_names_that_pysc2_asks_for(tmp_path):
    install(tmp_path)
    melee = {
        path.stem: json.loads(path.read_text()) for path in (tmp_path / "Maps/Melee").iterdir()
    }
    assert {name: scenario["name"] for name, scenario in melee.items()} == {
        name: name for name in ("Simple64", "Simple96", "Flat64")
    }
    assert "ground" not in melee["Flat64"]
    assert melee["Flat64"]["playable_area"] == [[0, 0], melee["Simple64"]["size"]]


def test_the_melee_has_the_names_of_ladder_maps(tmp_path):
    """python-sc2 looks for a map by the exact name of its file, one folder deep."""
    install(tmp_path)
    simple = json.loads((tmp_path / "Maps/Melee/Simple64.SC2Map").read_text())
    found = {path.stem: path for path in (tmp_path / "Maps").glob("*/*.SC2Map")}
    for name in ("AcropolisLE", "Acropolis", "Abyssal Reef LE", "(2)CatalystLE", "PillarsofGoldLE"):
        assert Map.matches_target_map_name(found[name], name)
        assert json.loads(found[name].read_text()) == simple | {"name": name}


def test_a_client_that_names_no_folder_gets_the_scripts_own(launch):
    wire = launch(data_dir=None).connect()
    wire.start("MoveToBeacon")


def test_again_changes_nothing_and_repairs(tmp_path):
    executable = install(tmp_path)
    before = _snapshot(tmp_path)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    install(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == times
    executable.write_text("broken")
    executable.chmod(0o600)
    (tmp_path / "Maps" / "mini_games" / "MoveToBeacon.SC2Map").unlink()
    install(tmp_path)
    assert _snapshot(tmp_path) == before


def test_a_map_of_the_users_own_stays(tmp_path):
    install(tmp_path)
    own = tmp_path / "Maps" / "mini_games" / "Mine.SC2Map"
    own.write_text("{}")
    install(tmp_path)
    assert own.read_text() == "{}"


@pytest.mark.parametrize("stranger", ["Versions", "notes.txt", ".hidden"])
def test_a_strangers_directory_is_left_alone(tmp_path, stranger):
    (tmp_path / stranger).write_text("not ours")
    with pytest.raises(InstallError, match=stranger):
        install(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [stranger]


def test_a_file_is_no_directory(tmp_path):
    place = tmp_path / "file"
    place.write_text("x")
    with pytest.raises(InstallError, match="not a directory"):
        install(place)


@pytest.mark.parametrize("name", ["~nobody of this name/game", "long" * 100])
def test_a_place_that_cannot_be(name):
    with pytest.raises(InstallError, match="cannot install the stand-in in"):
        install(Path(name))


def test_command_line_errors_are_short_and_nonzero(tmp_path):
    (tmp_path / "x").touch()
    done = run(sys.executable, "-m", "sc2standin", "install", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("sc2standin: ")
    assert done.stderr.count("\n") == 1


def test_two_at_once(tmp_path):
    place = tmp_path / "game"
    command = [sys.executable, "-m", "sc2standin", "install", str(place)]
    writers = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    install(tmp_path / "reference")
    assert _snapshot(place) == _snapshot(tmp_path / "reference")
    assert (place / MARKER).is_file()
