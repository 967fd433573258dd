"""What is said before a cluster is asked: no Ray, and options that are for this machine."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

without_ray = pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")


@without_ray
def test_the_package_needs_no_ray_but_its_names_do():
    program = (
        "import sc2pool.ray\n"
        "from sc2pool.errors import MissingPackageError\n"
        "try:\n"
        "    sc2pool.ray.RaySC2VecEnv\n"
        "except MissingPackageError as error:\n"
        "    print(error)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    expected = "sc2pool.ray.RaySC2VecEnv needs ray[rllib]: pip install 'sc2pool[ray]'\n"
    assert said.stdout == expected


@without_ray
@pytest.mark.parametrize("command", ["train", "top", "watch"])
def test_the_commands_say_what_to_install(command, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "sc2pool", command, "--ray", "auto"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "sc2pool: --ray needs ray[rllib]: pip install 'sc2pool[ray]'\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options", [["--watch"], ["--metrics-port", "9464"], ["--realtime"], ["--algo", "async-ppo"]]
)
def test_options_of_games_on_this_machine_are_refused(options, python_with_ray, tmp_path):
    done = subprocess.run(
        [python_with_ray, "-m", "sc2pool", "train", "--ray", "auto", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"sc2pool: {options[0]}")
    assert " is for games on this machine, not --ray: " in done.stderr
    assert list(tmp_path.iterdir()) == []
