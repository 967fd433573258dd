"""What lies in the working directory is not imported: it may be another user's."""

from __future__ import annotations

import pkgutil
import shutil
import sys
from pathlib import Path

import pytest
from tested import TESTED

from tests.support.programs import run

SC2POOL = Path(sys.executable).with_name("sc2pool")
MARKER = "imported"
CODE = """
import sys
with open({marker!r}, "a") as file:
    print(__name__, *sys.orig_argv, file=file)
"""
SELDOM_INSTALLED = (
    "IPython",
    "boto3",
    "colorama",
    "cv2",
    "google",
    "jax",
    "orjson",
    "pandas",
    "pettingzoo",
    "psycopg2",
    "pyarrow",
    "ray",
    "redis",
    "scipy",
    "simplejson",
    "sitecustomize",
    "tensorboardX",
    "tianshou",
    "tqdm",
    "triton",
    "usercustomize",
    "uvloop",
    "wandb",
)
"""Modules that libraries import if they are there."""
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
    """A folder with code under the name of every module; none plays a game but the stand-in."""
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
def test_no_command_imports_it(command: tuple[str, ...], planted: Path) -> None:
    done = run(SC2POOL, *command)
    assert not (planted / MARKER).exists(), (planted / MARKER).read_text()
    expected = 2 if command[0] in ("top", "watch") else 0  # no pool is there
    assert done.returncode == expected, done.stderr


def test_a_task_that_is_named_may_lie_there(planted: Path) -> None:
    """Then what it imports may, too, but not in place of what is installed."""
    (planted / "my_task.py").write_text(
        "from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon\n"
        "class Mine(MoveToBeacon): pass\n"
    )
    shutil.rmtree(planted / "cv2")  # Stable-Baselines3 uses it if it is there
    asked = ("bench", "--task", "my_task:Mine", "--n", "1", "--seconds", "0.2")
    done = run(SC2POOL, *asked)
    assert done.returncode == 0, done.stderr
    marker = planted / MARKER
    imported = (
        {line.split()[0] for line in marker.read_text().splitlines()} if marker.exists() else set()
    )
    assert imported.isdisjoint(module.name for module in pkgutil.iter_modules())
