"""Tests each way to find an installation of the game, and each way in which the search fails."""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from sc2pool.errors import ConfigError
from sc2pool.game.program import installation
from sc2pool.game.program.installation import find_installation, find_map
from sc2pool.platform import WINDOWS
from sc2pool.pool.report import fault_reports
from tests.support.systems import EXECUTABLE, write_program

has_modes = pytest.mark.skipif(WINDOWS, reason="its files have no modes")


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """Simulates a Linux machine with an empty home folder and without the variable SC2PATH.

    The games' executables have the name of the stand-in's executable on this system.
    """
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("USERPROFILE" if WINDOWS else "HOME", str(home))
    monkeypatch.setenv(installation._CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv("SC2PATH", raising=False)
    monkeypatch.setattr(installation, "SYSTEM", "linux")
    linux = replace(installation.PLATFORMS["linux"], executable=EXECUTABLE)
    monkeypatch.setitem(installation.PLATFORMS, "linux", linux)
    return home


def make(root: Path, *builds: int | str, maps: str | None = "Maps") -> Path:
    (root / "Versions").mkdir(parents=True)
    for build in builds:
        folder = root / "Versions" / (build if isinstance(build, str) else f"Base{build}")
        folder.mkdir()
        (folder / EXECUTABLE).touch(0o755)
    if maps:
        (root / maps).mkdir()
    return root


def test_path(tmp_path):
    root = make(tmp_path / "sc2", 75689)
    found = find_installation(root)
    assert found == find_installation(str(root))
    assert found.root == root
    assert found.executable == root / "Versions/Base75689" / EXECUTABLE
    assert found.base_build == 75689
    assert found.maps == root / "Maps"
    assert found.cwd is None
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda _, patch: patch.setattr(installation, "STAND_IN_S", 0.0),
            r"cannot write the stand-in game to .* within 0 s",
        ),
        (lambda home, _: (home.parent / "cache").touch(), "cannot write the stand-in"),
        (lambda home, _: (home / "StarCraftII").mkdir(), "no folder Versions"),
        (lambda _, patch: patch.setattr(installation, "SYSTEM", "plan9"), "plan9"),
    ],
    ids=["no time", "no cache", "broken usual place", "unsupported platform"],
)
def test_auto_finds_nothing_else(machine, monkeypatch, change, said):
    change(machine, monkeypatch)
    with pytest.raises(ConfigError, match=said):
        find_installation("auto")


class TestNoHome:
    """In a container, a user may have a number but no name, and no HOME."""

    @pytest.fixture(autouse=True)
    def no_home(self, monkeypatch):
        pwd = pytest.importorskip("pwd", reason="Windows has no such list of users")
        monkeypatch.delenv("HOME")
        monkeypatch.setattr(pwd, "getpwuid", Mock(side_effect=KeyError))

    @pytest.mark.parametrize("game", ["auto", "~/sc2"])
    def test_is_one_line(self, monkeypatch, game):
        monkeypatch.delenv("XDG_CACHE_HOME")
        with pytest.raises(ConfigError, match=r"^[^\n]*HOME is not set[^\n]*; set HOME[^\n]*$"):
            find_installation(game)

    def test_a_cache_is_enough(self, tmp_path):
        assert find_installation("auto").root.is_relative_to(tmp_path / "cache")


@pytest.mark.skipif(WINDOWS, reason="a name has no bytes there")
def test_a_path_that_is_not_utf8(tmp_path):
    root = make(tmp_path / "\udcff", 75689)
    with pytest.raises(ConfigError, match=r"told of the path b'.*\\xff', which is not UTF-8"):
        find_installation(root)
    other = make(tmp_path / "sc2", 75689)
    (root / "A.SC2Map").touch()
    with pytest.raises(ConfigError, match="which is not UTF-8"):
        find_map(find_installation(other), str(root / "A.SC2Map"))


def test_newest_version_wins_by_number(tmp_path):
    root = make(tmp_path, 75689, 100000, 99999, "Base", "BaseX", "Shared")
    (root / "Versions" / "Base200000").touch()  # a file does not count as a version
    assert find_installation(root).base_build == 100000


def test_maps_folder_in_lower_case_or_missing(tmp_path):
    found = find_installation(make(tmp_path / "a", 75689, maps="maps"))
    assert found.maps == tmp_path / "a" / "maps"
    assert find_installation(make(tmp_path / "b", 75689, maps=None)).maps is None


def test_environment_beats_usual_place_and_path_beats_both(machine, tmp_path, monkeypatch):
    usual = make(machine / "StarCraftII", 75689)
    assert find_installation("auto").root == find_installation("real").root == usual
    named = make(tmp_path / "named", 75689)
    monkeypatch.setenv("SC2PATH", str(named))
    found = [find_installation(), find_installation("auto"), find_installation("real")]
    assert [one.root for one in found] == [named] * 3
    given = make(tmp_path / "given", 75689)
    assert find_installation(given).root == given


def test_found_by_names_the_reason(machine, tmp_path, monkeypatch):
    auto = find_installation("auto").found_by
    assert auto.startswith("the stand-in (SC2PATH is not set")
    assert str(machine / "StarCraftII") in auto
    make(machine / "StarCraftII", 75689)
    assert find_installation("auto").found_by == "the usual place on this system"
    named = make(tmp_path / "named", 75689)
    monkeypatch.setenv("SC2PATH", str(named))
    assert find_installation("real").found_by == f"SC2PATH={str(named)!r}"
    assert find_installation(named).found_by == f"game={str(named)!r}"


def executable_of(root: Path) -> Path:
    return make(root, 75689) / "Versions/Base75689" / EXECUTABLE


def a_folder_for_the_executable(root: Path) -> None:
    executable = executable_of(root)
    executable.unlink()
    executable.mkdir()


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda _: None, "does not exist"),
        (Path.touch, "is not a directory"),
        (Path.mkdir, "no folder Versions"),
        (make, "no folder BaseNNNNN"),
        (lambda root: make(root, 55957), "too old.*Base55957.*55958"),
        (lambda root: executable_of(root).unlink(), "no file .*SC2_x64"),
        (a_folder_for_the_executable, "no file .*SC2_x64"),
        pytest.param(
            lambda root: executable_of(root).chmod(0o644), "may not be executed", marks=has_modes
        ),
    ],
)
def test_broken_path(tmp_path, build, said):
    build(tmp_path / "sc2")
    with pytest.raises(ConfigError, match=said) as raised:
        find_installation(tmp_path / "sc2")
    assert str(tmp_path / "sc2") in str(raised.value).replace("\\\\", "\\")


@contextmanager
def forbidden(folder: Path) -> Iterator[None]:
    """A context manager; inside its block, this process may not read the folder."""
    folder.chmod(0)
    root = os.geteuid() == 0  # root may read everything
    if root:
        os.seteuid(65_534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o700)


@pytest.mark.skipif(WINDOWS, reason="it reports such a folder as one that does not exist")
def test_a_name_that_no_folder_can_have():
    with pytest.raises(ConfigError, match=r"aaa may not be read: File name too long"):
        find_installation("a" * 300)


@has_modes
def test_a_folder_that_may_not_be_read(tmp_path, monkeypatch):
    theirs = tmp_path / "theirs"
    make(theirs / "sc2", 75689)
    said = rf"{theirs}/sc2 may not be read: Permission denied"
    with forbidden(theirs):
        with pytest.raises(ConfigError, match=said):
            find_installation(theirs / "sc2")
        monkeypatch.setenv("SC2PATH", str(theirs / "sc2"))
        with pytest.raises(ConfigError, match=said):
            find_installation("auto")


@has_modes
def test_maps_that_may_not_be_read(tmp_path, monkeypatch):
    found = find_installation(make(tmp_path / "sc2", 75689))
    monkeypatch.chdir(found.root)  # with a relative path, parent folders are not read
    maps = Path("Maps")
    with (
        forbidden(maps),
        pytest.raises(ConfigError, match=r"^Maps may not be read: Permission denied$"),
    ):
        find_map(replace(found, maps=maps), "MoveToBeacon")


@pytest.mark.parametrize("game", ["auto", "real"])
def test_broken_environment_never_falls_back(tmp_path, monkeypatch, game):
    monkeypatch.setenv("SC2PATH", str(tmp_path / "sc2"))
    with pytest.raises(ConfigError, match=r"SC2PATH.* does not exist"):
        find_installation(game)


def test_real_says_where_it_looked(machine):
    with pytest.raises(ConfigError) as raised:
        find_installation("real")
    message = str(raised.value)
    assert "SC2PATH" in message
    assert str(machine / "StarCraftII") in message
    assert 'game="auto"' in message


def test_auto_writes_the_stand_in(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "sc2pool"):
        found = find_installation("auto")
    assert found.root.is_relative_to(tmp_path / "cache" / "sc2pool")
    assert found.root.name.startswith("standin-")
    assert find_map(found, "MoveToBeacon").name == "MoveToBeacon.SC2Map"
    (record,) = caplog.records
    assert "stand-in" in record.getMessage()
    assert find_installation("auto") == found


def test_fault_reports_are_in_the_same_cache(tmp_path):
    ours = tmp_path / "cache" / "sc2pool"
    assert installation.cache_folder() == (ours / "Cache" if WINDOWS else ours)
    assert fault_reports.default_dir() == installation.cache_folder() / "faults"


@pytest.mark.skipif(WINDOWS, reason="it has no signals")
def test_a_signal_to_the_program_that_writes_the_stand_in(tmp_path, monkeypatch):
    """After a signal the error does not advise another folder, which would not help."""
    killed = write_program(tmp_path / "python", "import os; os.kill(os.getpid(), 9)")
    monkeypatch.setattr("sys.executable", str(killed))
    with pytest.raises(ConfigError, match=r"ended with signal SIGKILL$") as raised:
        find_installation("auto")
    assert "XDG_CACHE_HOME" not in str(raised.value)


@pytest.mark.parametrize(
    ("system", "place", "executable"),
    [
        ("win32", r"C:\Games\StarCraft II", r"\Versions\Base75689\SC2_x64.exe"),
        ("darwin", "/Games/StarCraft II", "/Versions/Base75689/SC2.app/Contents/MacOS/SC2"),
    ],
)
def test_execute_info(machine, system, place, executable):
    described = installation.PLATFORMS[system]
    usual = [Path(name) for name in described.usual_places]
    assert installation.usual_places(described) == usual
    info = machine / described.execute_info
    info.parent.mkdir(parents=True)
    info.write_text("nothing of use")
    assert installation.usual_places(described) == usual
    info.write_text(f"executable = {place}{executable}")
    assert installation.usual_places(described) == [Path(place), *usual]


@pytest.mark.parametrize(
    ("system", "name", "cwd"),
    [("darwin", "SC2.app/Contents/MacOS/SC2", None), ("win32", "SC2_x64.exe", "Support64")],
)
def test_layout_of_other_systems(tmp_path, monkeypatch, system, name, cwd):
    monkeypatch.setattr(installation, "SYSTEM", system)
    executable = tmp_path / "Versions/Base75689" / name
    executable.parent.mkdir(parents=True)
    executable.touch(0o755)
    (tmp_path / "Support64").mkdir()
    found = find_installation(tmp_path)
    assert (found.executable, found.cwd) == (executable, cwd and tmp_path / cwd)


class TestFindMap:
    @pytest.fixture
    def game(self, tmp_path):
        root = make(tmp_path / "sc2", 75689)
        for name in (
            "mini_games/MoveToBeacon.SC2Map",
            "mini_games/DefeatRoaches.SC2Map",
            "Ladder/2019/Season1/AutomatonLE.SC2Map",
            "Ladder/2018/AutomatonLE.SC2Map",
            "Melee/Simple64.sc2map",
            "notes.txt",
        ):
            path = root / "Maps" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        (root / "Maps" / "Folder.SC2Map").mkdir()
        return find_installation(root)

    @pytest.mark.parametrize(
        ("name", "found"),
        [
            ("MoveToBeacon", "mini_games/MoveToBeacon.SC2Map"),
            ("MoveToBeacon.SC2Map", "mini_games/MoveToBeacon.SC2Map"),
            ("movetobeacon", "mini_games/MoveToBeacon.SC2Map"),
            ("mini_games/MoveToBeacon", "mini_games/MoveToBeacon.SC2Map"),
            ("Simple64", "Melee/Simple64.sc2map"),
            ("AutomatonLE", "Ladder/2018/AutomatonLE.SC2Map"),
            ("Season1/AutomatonLE", "Ladder/2019/Season1/AutomatonLE.SC2Map"),
        ],
    )
    def test_found(self, game, name, found):
        assert find_map(game, name) == game.maps / found

    def test_absolute(self, game, tmp_path):
        path = game.maps / "mini_games/MoveToBeacon.SC2Map"
        assert find_map(game, str(path)) == path
        with pytest.raises(ConfigError, match="no file"):
            find_map(game, str(tmp_path / "Nowhere"))

    @pytest.mark.parametrize("name", ["MovToBeacon", "notes.txt", "Folder", "", "../x", "beacon"])
    def test_missing(self, game, name):
        with pytest.raises(ConfigError) as raised:
            find_map(game, name)
        assert repr(name) in str(raised.value)
        assert str(game.maps) in str(raised.value)

    def test_similar_names_are_told(self, game):
        with pytest.raises(ConfigError, match="similar: MoveToBeacon"):
            find_map(game, "MovToBeacon")

    def test_no_map_folder(self, tmp_path):
        with pytest.raises(ConfigError, match="no folder Maps"):
            find_map(find_installation(make(tmp_path, 75689, maps=None)), "MoveToBeacon")
