"""Errors that need no cluster: Ray is missing, or an option is for pools of one machine only."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest

import sc2pool.ray
from sc2pool.cli.main import main
from sc2pool.errors import MissingPackageError
from sc2pool.optional import how_to_install

without_ray = pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")


@without_ray
def test_the_package_needs_no_ray_but_its_names_do():
    expected = f"sc2pool.ray.RaySC2VecEnv needs ray[rllib]: {how_to_install('ray')}"
    with pytest.raises(MissingPackageError, match=re.escape(expected)):
        _ = sc2pool.ray.RaySC2VecEnv


@without_ray
@pytest.mark.parametrize("command", ["train", "top", "watch"])
def test_the_commands_say_what_to_install(command, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([command, "--ray", "auto"]) == 2
    expected = f"sc2pool: --ray needs ray[rllib]: {how_to_install('ray')}\n"
    assert capsys.readouterr().err == expected
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options", [["--watch"], ["--metrics-port", "9464"], ["--realtime"], ["--algo", "async-ppo"]]
)
def test_options_of_games_on_this_machine_are_refused(options, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--ray", "auto", *options]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"sc2pool: {options[0]}")
    assert " is for games on this machine, not --ray: " in told
    assert list(tmp_path.iterdir()) == []
