"""Tests that the core works without extras, and that other features name the missing extra."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest

from sc2pool.errors import ConfigError, MissingPackageError
from sc2pool.optional import EXTRAS, how_to_install, needed_for
from tests.support.programs import run

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"

# Python imports the module `sitecustomize` at each start: in the trainer and in all workers.
SITECUSTOMIZE = f"""
from importlib.machinery import PathFinder

find_spec = PathFinder.find_spec


def find_none_of_the_extras(fullname, path=None, target=None):
    if fullname.partition(".")[0] in {sorted(EXTRAS)!r}:
        return None
    return find_spec(fullname, path, target)


PathFinder.find_spec = find_none_of_the_extras
"""

CORE = """
import gymnasium
import sc2pool
from sc2pool.errors import MissingPackageError


def fails(make):
    try:
        made = make()
    except MissingPackageError as error:
        print("MISSING", error)
    else:
        print("MISSING nothing for", made)


if __name__ == "__main__":
    for name in ("SubprocSC2VecEnv", "PoolStatsCallback", "AsyncPPO", "RLBotAI", "PolicyBot"):
        fails(lambda: getattr(sc2pool, name))
    fails(lambda: sc2pool.SC2TianshouVectorEnv)
    fails(lambda: sc2pool.SC2ParallelEnv)
    fails(lambda: sc2pool.SC2GymEnv(task="MoveToBeaconBot"))
    fails(lambda: sc2pool.SC2GymEnv(render_mode="rgb_array"))
    for make in (
        lambda: sc2pool.SC2GymEnv(),
        lambda: sc2pool.SC2VectorEnv(n=1, task="DefeatRoaches"),
        lambda: sc2pool.SC2VectorEnv([lambda: gymnasium.make("CartPole-v1")]),
    ):
        env = make()
        env.reset(seed=1)
        env.step(env.action_space.sample())
        env.close()
        print("PLAYED", type(env).__name__)
"""

EXPECTED = f"""\
MISSING sc2pool.SubprocSC2VecEnv needs stable-baselines3: {how_to_install("sb3")}
MISSING sc2pool.PoolStatsCallback needs stable-baselines3: {how_to_install("sb3")}
MISSING sc2pool.AsyncPPO needs torch: {how_to_install("sb3")}
MISSING sc2pool.RLBotAI needs burnysc2: {how_to_install("bot")}
MISSING sc2pool.PolicyBot needs burnysc2: {how_to_install("bot")}
MISSING sc2pool.SC2TianshouVectorEnv needs tianshou: {how_to_install("tianshou")}
MISSING sc2pool.SC2ParallelEnv needs pettingzoo: {how_to_install("pettingzoo")}
MISSING task MoveToBeaconBot needs burnysc2: {how_to_install("bot")}
MISSING render_mode='rgb_array' needs pillow: {how_to_install("render")}
PLAYED SC2GymEnv
PLAYED SC2VectorEnv
PLAYED SC2VectorEnv
"""


def run_without_extras(tmp_path, standin_dir, *command):
    (tmp_path / "sitecustomize.py").write_text(SITECUSTOMIZE)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "SC2PATH": str(standin_dir)}
    return run(sys.executable, *command, env=environment)


def test_the_core_plays_without_the_extras(tmp_path, standin_dir):
    program = tmp_path / "core.py"
    program.write_text(CORE)
    done = run_without_extras(tmp_path, standin_dir, program)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == EXPECTED


@pytest.mark.parametrize(
    ("command", "exit_code", "told"),
    [
        (["tasks"], 0, "MoveToBeaconImage"),
        (["bench", "--seconds", "1"], 2, f"needs stable-baselines3: {how_to_install('sb3')}"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_the_command_without_the_extras(tmp_path, standin_dir, command, exit_code, told):
    done = run_without_extras(tmp_path, standin_dir, "-m", "sc2pool", *command)
    assert (done.returncode, told in done.stdout + done.stderr) == (exit_code, True), done.stderr


def test_each_package_is_in_the_extra_that_the_error_names():
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    for distribution, extra in EXTRAS.values():
        if distribution != "torch":  # SB3 requires torch
            assert any(line.startswith(f"{distribution}>=") for line in extras[extra]), distribution


def test_another_missing_module_is_not_explained():
    with pytest.raises(ModuleNotFoundError, match="no_such_module"), needed_for("x"):
        import no_such_module  # noqa: F401


def test_a_damaged_package_is_named_with_its_failure():
    def fail():
        place = "/home/ray/lib/python3.11/site-packages/torch/_C.so"
        raise ImportError("libcudart.so.12: cannot open", name="_C", path=place)

    told = r'^x needs torch: .*install "sc2pool\[sb3\]"; the installed one fails: libcudart'
    with pytest.raises(MissingPackageError, match=told), needed_for("x"):
        fail()


def test_it_is_an_import_error_too():
    assert issubclass(MissingPackageError, ImportError)
    assert issubclass(MissingPackageError, ConfigError)
