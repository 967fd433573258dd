"""`sc2pool standin`: an installation in the cache or a folder, for python-sc2 and other clients."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sc2pool.cli.parser import AFTER_STOP, make_parser
from sc2pool.game.program.installation import find, read_installation
from sc2standin.process.stops import AfterStop

InProcess = Callable[..., tuple[int, str, str]]


def test_path_prints_the_folder_that_auto_plays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_process: InProcess
) -> None:
    monkeypatch.delenv("SC2PATH", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    code, said, complaints = in_process("standin", "path")
    assert (code, complaints) == (0, "")
    (line,) = said.splitlines()
    assert Path(line).parent == tmp_path / "a cache" / "sc2pool"
    assert find("auto").root == read_installation(Path(line), "given").root == Path(line)


def test_path_says_why_it_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_process: InProcess
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    code, _, complaints = in_process("standin", "path")
    assert code == 2
    assert "sc2pool: cannot write the stand-in game to" in complaints


def test_the_choices_are_the_stand_ins() -> None:
    assert list(AFTER_STOP) == [str(choice) for choice in AfterStop]
    parsed = make_parser().parse_args(["standin", "install", "DIR"])
    assert parsed.after_stop == "catch-up"


@pytest.mark.parametrize("after_stop", AFTER_STOP)
def test_install_passes_its_choices_on(
    after_stop: str, tmp_path: Path, in_process: InProcess
) -> None:
    others = ["--any-race", "--temper", "both-win"] if after_stop == "freeze" else []
    install = ("standin", "install", tmp_path / "game", "--after-stop", after_stop)
    code, said, _ = in_process(*install, *others)
    assert code == 0
    executable = Path(said.strip())
    assert os.access(executable, os.X_OK)
    added = ' --after-stop freeze --any-race --temper both-win "$@"' in executable.read_text()
    assert added == (after_stop == "freeze")


def test_install_of_an_unknown_temper_says_so_in_a_line(
    tmp_path: Path, in_process: InProcess
) -> None:
    code, _, complaints = in_process("standin", "install", tmp_path / "game", "--temper", "gentle")
    assert code == 2
    assert complaints.startswith("sc2standin: argument --temper: no temper 'gentle'; there are ")
    assert complaints.count("\n") == 1


def test_install_leaves_a_folder_with_other_files_alone(
    tmp_path: Path, in_process: InProcess
) -> None:
    (tmp_path / "thesis.tex").touch()
    code, _, complaints = in_process("standin", "install", tmp_path)
    assert code == 2
    assert "thesis.tex" in complaints
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
