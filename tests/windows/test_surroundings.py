"""A program must play or give a one-line error, however it starts and wherever the game lies."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sc2pool import SC2VectorEnv
from sc2pool.errors import ConfigError
from sc2pool.replacing import new_folder
from sc2standin import install
from sc2standin.replacing import replace_file

REFUSES = Path("Z:/sys/kernel")
"""A path under Wine of a Linux folder in which even root cannot create a file."""
WITHOUT_A_CONSOLE = """
import sys
from pathlib import Path
from sc2pool import SC2GymEnv
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon

class Prints(MoveToBeacon):
    def observe(self):
        print("seen")
        return super().observe()

env = SC2GymEnv(Prints)
env.reset()
env.step(env.action_space.sample())
env.close()
Path(sys.argv[1]).write_text(f"{sys.stdout} {env.stats().faults}")
"""


def test_an_installation_with_spaces_and_umlauts(tmp_path: Path) -> None:
    folder = tmp_path / "Spiele für Ömer (neu)" / "StarCraft II"
    install = [sys.executable, "-m", "sc2standin", "install", str(folder)]
    subprocess.run(install, check=True, stdout=subprocess.DEVNULL, timeout=100)
    env = SC2VectorEnv("MoveToBeacon", n=1, game=folder)
    env.reset(seed=1)
    env.step(env.action_space.sample())
    assert env.stats().faults == 0
    env.close()


def test_an_installation_whose_file_is_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process that installs has the file open, and Windows cannot replace open files."""
    install.install(tmp_path)
    marker = tmp_path / install.MARKER
    marker.write_text("of an earlier release")
    with marker.open() as reader:
        monkeypatch.setattr(install.time, "sleep", lambda _: reader.close())
        install.install(tmp_path)
    assert marker.read_text().startswith("This is not StarCraft II.")


@pytest.mark.parametrize(
    "make",
    [lambda path: new_folder(path, "report-"), lambda path: replace_file(path / "map", b"")],
    ids=["a folder", "a file"],
)
def test_a_folder_that_may_not_be_written_to(make: Callable[[Path], object]) -> None:
    """Windows reports the folder as writable, so `tempfile` would try one name after the other."""
    assert os.access(REFUSES, os.W_OK)
    with pytest.raises(PermissionError):
        make(REFUSES)


def test_no_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = tmp_path / "nowhere"
    monkeypatch.setenv("SC2PATH", str(nowhere))
    with pytest.raises(ConfigError) as caught:
        SC2VectorEnv("MoveToBeacon", n=1)
    assert str(caught.value).count("\n") == 0
    assert f"{nowhere} does not exist" in str(caught.value)


def test_a_start_without_a_console(
    standin_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program has no output streams, as under pythonw, as a service or as a scheduled task."""
    monkeypatch.setenv("SC2PATH", str(standin_dir))
    said = tmp_path / "said"
    script = tmp_path / "script.py"
    script.write_text(WITHOUT_A_CONSOLE)
    # Like pythonw, the interpreter has no output streams when it starts the script.
    none = "sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = None"
    run = f"import runpy, sys; {none}; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", run, script, said],
        stdin=subprocess.DEVNULL,
        creationflags=subprocess.DETACHED_PROCESS,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0
    assert said.read_text() == "None 0"
