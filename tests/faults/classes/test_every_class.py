"""Tests promises of all env classes: recycling, trainers' arrays, `close` at exit, safe imports.

The long form of the tests plays all classes; the short form leaves out a class whose library is
slow to import.
"""

from __future__ import annotations

import json
import pkgutil
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.programs import run
from tests.tiers import is_long

sys.path.insert(0, str(Path(__file__).parent))
from every_class import LIBRARIES, MODES, OF_ONE_GAME

Programs = Callable[..., subprocess.CompletedProcess[str]]
_SLOW_TO_IMPORT = "SC2TianshouVectorEnv"
"""A class whose library takes 4 s of CPU time to import; `tests/libraries` always tests it."""
TESTED = [name for name in LIBRARIES if name != _SLOW_TO_IMPORT or is_long()]


@pytest.fixture
def run_with(python_with: Callable[[str], str]) -> Programs:
    """`run_with(program, name, …)`: runs a program with a Python that has the class's library."""

    def run_one(program: str, name: str, *more: object, timeout_s: float = 300.0) -> object:
        library = LIBRARIES.get(name, "")
        python = python_with(library) if library else sys.executable
        return run(python, Path(__file__).with_name(program), name, *more, timeout_s=timeout_s)

    return run_one


@pytest.mark.parametrize("name", TESTED)
def test_each_instance_is_replaced_after_two_episodes(
    name, run_with, standin_dir, tmp_path, monkeypatch
):
    monkeypatch.setenv("SC2PATH", str(standin_dir))
    closed = tmp_path / "closed"
    closed.touch()
    monkeypatch.setenv("CLOSED", str(closed))
    done = run_with("recycled.py", name)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert len(counts) == len(MODES[name]) + (name not in OF_ONE_GAME)
    for envs, found in counts.items():
        n = 2 if envs == "env_fns" else 1
        # An instance is replaced after two episodes; the second instance's last episode is cut off.
        assert (envs, found["replacements"]) == (envs, {"soft-episodes": n})
        assert (envs, found["cut"]) == (envs, {"soft-episodes": 2 * n})
    if "env_fns" in counts:
        assert len(set(closed.read_text().split())) == 3 * 2, "each closes by its own method"


TRANSITIONS = 20_000 if is_long() else 150
TIMEOUT_S = 2400.0 if is_long() else 240.0


@pytest.mark.timeout(TIMEOUT_S + 60)
@pytest.mark.parametrize("name", TESTED)
def test_every_last_observation_is_true(name, run_with, standin_dir, monkeypatch):
    monkeypatch.setenv("SC2PATH", str(standin_dir))
    done = run_with("scribbling.py", name, TRANSITIONS, timeout_s=TIMEOUT_S)
    assert done.returncode == 0, done.stderr[-3000:]
    assert all(played["faults"] > 0 for played in json.loads(done.stdout))


ENDS_WITHIN_S = 90.0
"""The time limit of the program, which imports a library and launches five games."""


@pytest.mark.timing
@pytest.mark.parametrize("name", TESTED)
def test_close_returns_however_the_interpreter_is_left(name, run_with, standin_dir, monkeypatch):
    monkeypatch.setenv("SC2PATH", str(standin_dir))
    done = run_with("leaving.py", name, timeout_s=ENDS_WITHIN_S)
    assert (done.returncode, done.stderr) == (0, "")
    said = dict(line.split(": ") for line in done.stdout.splitlines())
    said.pop("made")  # the type of this error varies
    late = {"atexit", "__del__", "generator"}
    late |= {f"closed before, {one}" for one in late}
    assert set(said) == {"here", "again", "thread", "__del__ in a cycle"} | late
    assert max(map(float, said.values())) < 5.0


SC2POOL = Path(sys.executable).with_name("sc2pool")
MARKER = "imported"
CODE = """
import sys
with open({marker!r}, "a") as file:
    print(__name__, *sys.orig_argv, file=file)
"""
SELDOM_INSTALLED = """
    IPython boto3 colorama cv2 google jax orjson pandas pettingzoo psycopg2 pyarrow ray redis scipy
    simplejson sitecustomize tensorboardX tianshou tqdm triton usercustomize uvloop wandb
""".split()
"""Names of modules that libraries import if they are installed."""
SHORT = "default:\n  n_steps: 16\n  batch_size: 16\n  n_epochs: 1\n"
"""Hyperparameters of a training that ends soon."""
TRAIN = ("train", "--steps", "16", "--n", "1", "--hyperparameters", "short.yml")
COMMANDS = {
    "async-ppo": (*TRAIN, "--algo", "async-ppo", "--realtime"),
    "self-play": (*TRAIN, "--task", "MarineDuel", "--self-play", "--eval-episodes", "1", "--watch"),
    "record": ("record", "random", "--steps", "16", "--n", "1"),
    "tasks": ("tasks",),
    "doctor": ("doctor",),
    "top": ("top",),
    "watch": ("watch",),
    "standin install": ("standin", "install", "installation"),
    "standin path": ("standin", "path"),
    "version": ("--version",),
}


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of each known name; only the stand-in can be played."""
    folder = tmp_path / "planted"
    code = CODE.format(marker=str(folder / MARKER))
    installed = {module.name for module in pkgutil.iter_modules()}
    for name in installed | sys.stdlib_module_names | set(SELDOM_INSTALLED) | {"sc2pool"}:
        package = folder / name
        package.mkdir(parents=True)
        for file in ("__init__.py", "__main__.py"):
            (package / file).write_text(code)
    (folder / "short.yml").write_text(SHORT)
    monkeypatch.delenv("SC2PATH", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("name", [*TESTED, "PauseGate", "page"])
def test_no_constructor_imports_it(name, planted, run_with):
    done = run_with("planted.py", name)
    assert not (planted / MARKER).exists(), (planted / MARKER).read_text()
    assert done.stdout.splitlines()[-1] == "played", done.stderr


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_no_command_imports_it(command, planted):
    done = run(SC2POOL, *command)
    assert not (planted / MARKER).exists(), (planted / MARKER).read_text()
    expected = 2 if command[0] in ("top", "watch") else 0  # exit status 2, because no pool runs
    assert done.returncode == expected, done.stderr


def test_a_task_that_is_named_may_lie_there(planted):
    """A task's folder may hold modules that the task imports, but installed modules come first."""
    (planted / "my_task.py").write_text(
        "from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon\n"
        "class Mine(MoveToBeacon): pass\n"
    )
    shutil.rmtree(planted / "cv2")  # Stable-Baselines3 would import this planted module
    asked = ("bench", "--task", "my_task:Mine", "--n", "1", "--seconds", "0.2")
    done = run(SC2POOL, *asked)
    assert done.returncode == 0, done.stderr
    marker = planted / MARKER
    imported = (
        {line.split()[0] for line in marker.read_text().splitlines()} if marker.exists() else set()
    )
    assert imported.isdisjoint(module.name for module in pkgutil.iter_modules())
