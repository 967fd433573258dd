"""Paths and commands as a user can paste them into a shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from sc2pool import shell
from sc2pool.shell import called, quoted


@pytest.mark.parametrize(
    ("windows", "path", "word"),
    [
        (False, "runs/first", "runs/first"),
        (False, "my runs/it's", """'my runs/it'"'"'s'"""),
        (True, r"runs\first", r"runs\first"),
        (True, r"C:\my runs\first", r'"C:\my runs\first"'),
    ],
)
def test_quoted(monkeypatch: pytest.MonkeyPatch, windows: bool, path: str, word: str) -> None:
    monkeypatch.setattr(shell, "WINDOWS", windows)
    assert quoted(Path(path)) == word


def test_a_program_of_an_environment_that_is_not_on_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As in a clone, where another environment's pip may be on it."""
    clone, other = tmp_path / "my clone", tmp_path / "other"
    name = "pip.exe" if shell.WINDOWS else "pip"
    for folder in (clone / ".venv" / "bin", other):
        folder.mkdir(parents=True)
        (folder / name).touch(0o755)
    script = clone / ".venv" / "bin" / name
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(script.parent))
    monkeypatch.setattr("sys.executable", str(script.parent / "python"))
    monkeypatch.setenv("PATH", str(other))
    monkeypatch.chdir(tmp_path)
    assert called("pip") == quoted(script.relative_to(tmp_path))
    monkeypatch.chdir(clone)
    assert called("pip") == quoted(Path(".venv") / "bin" / name)
    assert called("nosuch") == f"{quoted(Path('.venv') / 'bin' / 'python')} -m nosuch"
    monkeypatch.chdir(other)
    assert called("pip") == quoted(script)
    monkeypatch.chdir(script.parent)
    assert called("pip") == quoted(script)
    monkeypatch.setenv("PATH", str(script.parent))
    assert called("pip") == "pip"
