"""A mistake on the command line is answered in two lines, and case does not matter for names."""

from __future__ import annotations

import pytest

from sc2pool.cli.parser import SHELLS, make_parser
from sc2pool.shell import called


@pytest.mark.parametrize(
    ("given", "complaint", "command"),
    [
        (["trian"], "argument COMMAND: invalid choice: 'trian' (choose from ", "sc2pool"),
        (["trian"], "; did you mean train?", "sc2pool"),
        (["train", "--epsilodes=3"], "unknown argument --epsilodes", "sc2pool train"),
        (["train", "--evla-every", "3"], "; did you mean --eval-every?", "sc2pool train"),
        (["train", "--algo", "pop"], "; did you mean ppo?", "sc2pool train"),
        (["train", "a", "b"], "unknown argument b", "sc2pool train"),
        (["train", "--self-play=best"], "invalid choice: 'best' (choose from ", "sc2pool train"),
        (["play"], "the following arguments are required: RUN|MODEL", "sc2pool play"),
        (["train", "--n", "0"], "--n: expected a whole number from 1 to 65535", "sc2pool train"),
        (["play", "MMM", "--n", "65536"], "from 1 to 65535, got '65536'", "sc2pool play"),
        (["record", "MMM", "--n", "1e9"], "from 1 to 65535, got '1e9'", "sc2pool record"),
        (["tune", "--n", "70,000"], "from 1 to 65535, got '70,000'", "sc2pool tune"),
        (["train", "--seed", "-1"], "from 0 to 4294967295, got '-1'", "sc2pool train"),
        (["train", "--metrics-port", "70000"], "from 1 to 65535, got '70000'", "sc2pool train"),
        (["bench", "--n", "1,,2"], "a whole number from 1 to 65535, got ''", "sc2pool bench"),
        (["bench", "--spares", "-1"], "a whole number of at least 0, got '-1'", "sc2pool bench"),
        (["bench", "--seconds", "soon"], "a number above 0, got 'soon'", "sc2pool bench"),
        (["doctor", "--timeout", "0"], "a number above 0, got '0'", "sc2pool doctor"),
        (["top", "--sort", "colour"], "invalid choice: 'colour' (choose from ", "sc2pool top"),
    ],
)
def test_two_lines(capsys, given, complaint, command):
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args(given)
    assert ended.value.code == 2
    said, place = capsys.readouterr().err.splitlines()
    assert said.startswith(f"{command}: ")
    assert complaint in said
    assert place == f"  see {called('sc2pool')}{command.removeprefix('sc2pool')} --help"


def test_the_hint_of_the_script_names_the_script(capsys, monkeypatch):
    monkeypatch.setenv("SC2POOL_COMMAND", "./scripts/train")
    with pytest.raises(SystemExit):
        make_parser().parse_args(["train", "--n", "0"])
    assert capsys.readouterr().err.splitlines()[1] == "  see ./scripts/train --help"


def test_case_does_not_matter_for_names():
    found = make_parser().parse_args(["train", "movetobeacon", "--algo", "PPO"])
    assert (found.task_alone, found.algo) == ("MoveToBeacon", "ppo")
    found = make_parser().parse_args(["bench", "--task", "mmm2"])
    assert found.task == "MMM2"
    assert make_parser().parse_args(["bench", "--task", "My:Own"]).task == "My:Own"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_for_completion(capsys, shell):
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args(["--print-completion", shell])
    assert ended.value.code == 0
    script = capsys.readouterr().out
    assert "--eval-every" in script
    assert "standin" in script
