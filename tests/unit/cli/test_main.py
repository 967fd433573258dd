"""The command: its arguments, the errors for wrong arguments, and signals."""

from __future__ import annotations

import argparse
import errno
import json
import os
import signal
import sys
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from stable_baselines3.common.save_util import data_to_json

from sc2pool.cli.arguments import (
    check_file,
    check_writable,
    hint,
    integer,
    numbers_of_games,
    positive_number,
)
from sc2pool.cli.main import main
from sc2pool.cli.parser import SHELLS, make_parser
from sc2pool.cli.stop import Stop, Stopped, say
from sc2pool.cli.training.algorithms import ALGORITHMS, Hyperparameters
from sc2pool.cli.training.options import TrainOptions
from sc2pool.errors import ConfigError
from sc2pool.platform import WINDOWS
from sc2pool.shell import called
from sc2pool.tasks.registry import resolve_task
from tests.unit.conftest import printed_by

# ---- wrong arguments of the commands -------------------------------------------------------------


@pytest.fixture
def installation(tmp_path: Path) -> Path:
    """A folder that looks like an installed StarCraft II with one mini-game."""
    root = tmp_path / "StarCraftII"
    executable = root / "Versions" / "Base75689" / "SC2_x64"
    executable.parent.mkdir(parents=True)
    executable.touch(mode=0o755)
    (root / "Maps" / "mini_games").mkdir(parents=True)
    (root / "Maps" / "mini_games" / "MoveToBeacon.SC2Map").touch()
    return root


@pytest.fixture
def earlier_run(tmp_path: Path) -> Path:
    """The folder of a run that has done 2,000 of 5,000 steps, with the files of its options."""
    folder = tmp_path / "earlier"
    folder.mkdir()
    task = resolve_task("MoveToBeacon")
    played = {"observation_space": task.observation_space, "action_space": task.action_space}
    data = dict.fromkeys(ALGORITHMS["ppo"].attributes, 0) | {
        "num_timesteps": 2000,
        **json.loads(data_to_json(played)),
        "policy_class": {"__module__": "stable_baselines3.common.policies"},
    }
    with zipfile.ZipFile(folder / "model.zip", "w") as archive:
        archive.writestr("data", json.dumps(data))
        for part in ("policy.pth", "policy.optimizer.pth"):
            archive.writestr(part, b"")
    options = {"task": "MoveToBeacon", "n": 3, "steps": 5000, "seed": 7, "video": False}
    (folder / "config.json").write_text(json.dumps({"options": options}))
    return folder


def options_from(*arguments: str | Path) -> TrainOptions:
    args = make_parser().parse_args(["train", *map(str, arguments)])
    return TrainOptions.from_args(args)


def test_a_folder_that_may_not_be_read(monkeypatch, capsys):
    stat = os.stat

    def refused(path: Any, **others: Any) -> os.stat_result:
        if str(path).startswith("theirs"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return stat(path, **others)

    monkeypatch.setattr(os, "stat", refused)  # no `chmod`, because root may read everything
    for command in (["play", "theirs/run"], ["train", "--resume", "theirs/run"]):
        assert main(command) == 2
        assert capsys.readouterr().err == "sc2pool: theirs/run: Permission denied\n"


def test_defaults(installation):
    options = options_from("--game", installation)
    assert (options.task, options.n, options.seed) == ("MoveToBeacon", 8, None)
    assert options.installation == installation
    assert options.out.parts[0] == "runs"
    assert options.out.name.startswith("MoveToBeacon-")
    assert not options.out.exists()


def test_a_resumed_run_keeps_what_is_not_given_anew(installation, earlier_run):
    options = options_from("--game", installation, "--resume", earlier_run, "--n", "4")
    assert (options.n, options.steps, options.seed) == (4, 5000, 7)
    assert (options.out, options.steps_done) == (earlier_run, 2000)
    assert options.resume == earlier_run / "model.zip"


@pytest.mark.parametrize(("name", "value"), [("realtime", True), ("spares", 2), ("device", "cuda")])
def test_a_resumed_run_keeps_each_option(installation, earlier_run, name, value):
    describe(earlier_run, options={"task": "MoveToBeacon", "steps": 5000, name: value})
    options = options_from("--game", installation, "--resume", earlier_run)
    assert getattr(options, name) == value


def test_a_resumed_run_of_an_unknown_algorithm(earlier_run):
    """The run's description may come from another version of sc2pool, or be written by hand."""
    (earlier_run / "config.json").write_text('{"options": {"task": "Melee", "algo": "pppo"}}')
    with pytest.raises(ConfigError, match="is a run of algo 'pppo', which is none of"):
        options_from("--resume", earlier_run)


def describe(run: Path, **parts: Any) -> None:
    """Change these parts of a run's description."""
    file = run / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | parts))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("n", "a", "of type int"),
        ("n", True, "of type int"),
        ("n", 0, "of at least 1"),
        ("algo", ["ppo"], "of type str"),
        ("seed", 1.5, "of type int | None"),
        ("seed", -1, "from 0 to 4294967295"),
        ("eval_every", "a", "of type int | None"),
        ("self_play", 3, "of type str"),
        ("self_play", "alone", "one of shared, latest, uniform, prioritised"),
        ("video", "no", "of type bool"),
        ("metrics_port", 70_000, "from 1 to 65535"),
    ],
)
def test_a_resumed_run_with_a_wrong_option(installation, earlier_run, name, value, expected):
    describe(earlier_run, options={"task": "MoveToBeacon", name: value})
    with pytest.raises(ConfigError) as caught:
        options_from("--game", installation, "--resume", earlier_run, "--steps", "9000")
    assert str(caught.value) == (
        f"{earlier_run}: {name} in its config.json must be {expected}, got {value!r}"
    )


@pytest.mark.parametrize(
    ("hyperparameters", "told"),
    [
        ({"reward_scale": "a"}, "reward_scale must be above 0, got 'a'"),
        ({"arguments": [3]}, "of another version ("),
        ({"unheard_of": 3}, "of another version ("),
        (None, "of another version ("),
    ],
)
def test_a_resumed_run_with_wrong_hyperparameters(earlier_run, hyperparameters, told):
    describe(earlier_run, hyperparameters=hyperparameters)
    with pytest.raises(ConfigError) as caught:
        options_from("--resume", earlier_run)
    assert f"{earlier_run}: hyperparameters in its config.json: {told}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_resumed_run_keeps_its_hyperparameters(installation, earlier_run):
    kept = Hyperparameters(
        n_envs=3, minibatches=4, reward_scale=0.5, arguments={"learning_rate": "lin_1e-3"}
    )
    describe(earlier_run, hyperparameters=asdict(kept))
    assert options_from("--game", installation, "--resume", earlier_run).hyperparameters == kept


def test_a_model_that_is_named_keeps_all_but_task_and_game(installation, earlier_run):
    """If only a model's file is named, the description beside it must not choose the game."""
    model = earlier_run / "model.zip"
    with pytest.raises(ConfigError, match="a model's file alone does not say its task; give --tas"):
        options_from("--game", installation, "--resume", model)
    describe(earlier_run, options={"task": "MoveToBeacon", "game": "/no/such/game", "n": 3})
    given = ("--task", "MoveToBeacon", "--steps", "9000")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SC2PATH", str(installation))
        options = options_from("--resume", model, *given)
        assert (options.game, options.n) == ("auto", 3)
        with pytest.raises(ConfigError, match="'/no/such/game' is no StarCraft II installation"):
            options_from("--resume", earlier_run, *given)


def test_a_run_in_a_folder_of_all_users(installation, earlier_run):
    """Another user can have written the run's description, so the description is not used."""
    earlier_run.chmod(0o1777)
    given = ("--game", installation, "--resume", earlier_run)
    with pytest.raises(ConfigError, match="not used, because every user may write there; give --t"):
        options_from(*given)
    given += ("--task", "MoveToBeacon", "--steps", "9000")
    with pytest.raises(ConfigError, match=r"is not for you alone \(every .* there\); give --out"):
        options_from(*given)
    elsewhere = earlier_run.parent / "elsewhere"
    options = options_from(*given, "--out", elsewhere)
    assert (options.n, options.seed, options.out) == (8, None, elsewhere)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "MoveToBacon"], "did you mean 'MoveToBeacon'"),
        (["--game", "/no/such/game"], "/no/such/game does not exist"),
        (["--task", "DefeatRoaches"], "no map 'DefeatRoaches'"),
        (["--resume", "/no/such/run"], "--resume /no/such/run: no such file or folder"),
        (["--resume", "{installation}"], "no model.zip in it"),
        (["--resume", __file__, "--task", "MoveToBeacon"], "not a model saved by training"),
        (["--resume", "{earlier_run}", "--task", "DefeatRoaches"], "is a run of task 'MoveToB"),
        (["--resume", "{earlier_run}", "--algo", "dqn"], "it lacks buffer_size, "),
        (["--resume", "{earlier_run}", "--hyperparameters", "f.yml"], "keeps the hyperparameters"),
        (["--hyperparameters", "/no/f.yml"], "/no/f.yml cannot be read: No such file"),
        (["--algo", "sac"], "--algo sac plays Box actions"),
        (["--eval-episodes", "3"], "--eval-episodes is for evaluations: give --eval-every or "),
        (["--task", "no_such_module:Walk"], "there is no module 'no_such_module'"),
        (["--task", "json:Walk"], "module json has no 'Walk'"),
        (["--task", "json:JSONDecode"], "has no 'JSONDecode'; did you mean json:JSONDecoder?"),
        (["--task", "my/kite.py:Kite"], "no module 'my/kite'; did you mean my.kite:Kite?"),
        (["--task", "my/kite.py"], "did you mean 'my.kite:CLASS'?"),
        (["--task", "./kite.py"], "did you mean 'kite:CLASS'?"),
        (["--task", "my.kite.Kite"], "did you mean 'my.kite:Kite'?"),
        (["--task", "json:loads"], "must be a built-in name, module:Class, or a subclass"),
        (["--task", "json:"], "task 'json:': expected module:Class"),
        (["--resume", "{earlier_run}", "--steps", "2000"], "has 2000 steps already"),
        (["--out", "{earlier_run}"], "already holds a run"),
        (["--out", __file__], "is not a folder"),
        (["--out", f"{__file__}/below"], "is not a folder"),
    ],
)
def test_bad_arguments(arguments, message, installation, earlier_run):
    places = {"installation": installation, "earlier_run": earlier_run}
    arguments = [argument.format(**places) for argument in arguments]
    with pytest.raises(ConfigError) as caught:
        options_from("--game", installation, *arguments)
    assert message in str(caught.value)


def test_a_resumed_model_for_other_spaces(installation, earlier_run):
    """A model with another observation space must be refused before the games start."""
    (earlier_run / "config.json").unlink()
    given = ("--resume", earlier_run / "model.zip", "--task", "MoveToBeaconImage")
    with pytest.raises(ConfigError, match=r"^--resume: model .* observes .*, expected the task's "):
        options_from("--game", installation, *given)


def test_a_module_of_the_folder_is_the_best_guess(installation, tmp_path, monkeypatch):
    (tmp_path / "walking.py").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"no module 'walkin'; did you mean walking:Walk\?$"):
        options_from("--game", installation, "--task", "walkin:Walk")


@pytest.mark.parametrize("command", ["train", "bench"])
def test_an_error_is_one_message_without_a_traceback(command, capsys):
    assert main([command, "--task", "Chess"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("sc2pool: unknown task 'Chess'")
    assert error.count("\n") == 1


def test_a_file_of_hyperparameters_has_its_say(installation, tmp_path):
    file = tmp_path / "mine.yml"
    file.write_text("default: {n_timesteps: 7000, n_envs: 3, n_steps: 32}")
    options = options_from("--game", installation, "--hyperparameters", file)
    assert (options.steps, options.n) == (7000, 3)
    assert options.hyperparameters.arguments == {"n_steps": 32}
    given = ("--game", installation, "--hyperparameters", file, "--n", "2", "--steps", "9000")
    assert (options_from(*given).steps, options_from(*given).n) == (9000, 2)


def test_a_task_of_the_users_own(installation, tmp_path, monkeypatch):
    (tmp_path / "my_tasks_of_this_test.py").write_text(
        "from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon as Mine\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    options = options_from("--game", installation, "--task", "my_tasks_of_this_test:Mine")
    assert options.task == "my_tasks_of_this_test:Mine"
    assert options.task_folder == str(tmp_path)
    assert options.out.name.startswith("Mine-")


@pytest.fixture
def run_of_own_task(earlier_run, tmp_path, monkeypatch):
    """A run of a task whose module is in another folder than the working directory."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "kept_by_this_test.py").write_text(
        "from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon as Mine\n"
    )
    options = {"task": "kept_by_this_test:Mine", "task_folder": str(home)}
    describe(earlier_run, options=options)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    yield earlier_run
    sys.modules.pop("kept_by_this_test", None)


def test_a_run_knows_the_folder_of_its_task(installation, run_of_own_task, tmp_path, capsys):
    given = ("--game", installation, "--resume", run_of_own_task, "--steps", "9000")
    options = options_from(*given)
    assert (options.task, options.task_folder) == ("kept_by_this_test:Mine", str(tmp_path / "home"))
    assert f"takes the module of kept_by_this_test:Mine from {tmp_path}" in capsys.readouterr().out


def test_a_folder_of_all_users_is_not_the_tasks(installation, run_of_own_task, tmp_path):
    """If only a model's file is named, files beside it must not say where the task's module is."""
    (tmp_path / "home").chmod(0o1777)
    given = ("--game", installation, "--steps", "9000", "--resume")
    with pytest.raises(ConfigError, match=r"no module is taken from .*home, because every user"):
        options_from(*given, run_of_own_task)
    (tmp_path / "home").chmod(0o700)
    with pytest.raises(ConfigError, match="there is no module 'kept_by_this_test'"):
        options_from(*given, run_of_own_task / "model.zip", "--task", "kept_by_this_test:Mine")


def test_a_module_in_a_folder_of_all_users(tmp_path, monkeypatch):
    (tmp_path / "planted_for_this_test.py").write_text("raise SystemExit('it was imported')")
    tmp_path.chmod(0o1777)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(ConfigError, match=r"no module is taken from .*, because every user may wr"):
        options_from("--task", "planted_for_this_test:Walk")
    assert str(tmp_path) not in sys.path


def test_metrics_are_refused_where_they_cannot_be_served(installation, monkeypatch):
    arguments = ("--game", installation, "--metrics-port", "9464")
    assert options_from(*arguments).metrics_port == 9464
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigError, match=r'pip.* install "sc2pool\[metrics\]"'):
        options_from(*arguments)


def test_bench_refuses_a_file_it_cannot_write_before_it_measures(installation, tmp_path):
    (tmp_path / "file").touch()
    for place, why in (
        (tmp_path, "is a folder, expected a file's name"),
        (tmp_path / "file" / "x.png", "file is not a folder"),
        (tmp_path / "x.txt", r"the name must end with \.png"),
    ):
        arguments = ["bench", "--game", str(installation), "--png", str(place)]
        args = make_parser().parse_args(arguments)
        with pytest.raises(ConfigError, match=f"^--png .*{why}$"):
            args.run(args)


@pytest.mark.parametrize("command", ["train", "bench"])
def test_help_loads_nothing_heavy(command):
    printed_by(f"""
import sys
import sc2pool.cli.bench.command
from sc2pool.cli.main import main
try:
    main(["{command}", "--help"])
except SystemExit as done:
    assert done.code == 0
assert not {{"torch", "numpy", "stable_baselines3", "s2clientprotocol"}} & set(sys.modules)
""")


# ---- mistakes on the command line, and case ------------------------------------------------------


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


# ---- readers of arguments ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("150000", 150_000),
        ("150,000", 150_000),
        ("1,500,000", 1_500_000),
        ("150_000", 150_000),
        ("1e5", 100_000),
        ("1.5E3", 1_500),
    ],
)
def test_whole_numbers_as_people_write_them(text: str, value: int) -> None:
    assert integer(1)(text) == value
    assert numbers_of_games("1,2,1e3,65535") == (1, 2, 1000, 65_535)


NO_INTEGERS = ["", "0", "-3", "1.5", "1.5e0", "15,00", "1,2", "1e999", "nan", "ten", "1e"]
NO_PORTS = ["0", "-1", "a", "1.5", "1e30", "65536", ""]


@pytest.mark.parametrize(
    ("read", "text", "told"),
    [
        *((integer(1), text, "expected a whole number of at least 1") for text in NO_INTEGERS),
        *((numbers_of_games, f"1,{wrong}", f"65535, got '{wrong}'$") for wrong in NO_PORTS),
        *((positive_number, text, f"above 0, got '{text}'") for text in ("0", "-1", "nan", "inf")),
        *((positive_number, text, f"above 0, got '{text}'") for text in ("soon", "")),
    ],
)
def test_other_texts_than_numbers_are_refused(read: Any, text: str, told: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=told):
        read(text)


def test_a_device_or_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    """A device must not be replaced: if root replaced it, the machine would have no `/dev/null`."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for special in (pipe, Path(os.devnull)):
        with pytest.raises(ConfigError, match=f"^--replay {special} is a device or a pipe"):
            check_file(special, "--replay")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_a_folder_in_which_not_even_root_can_write() -> None:
    with pytest.raises(ConfigError, match=r"^--out /proc/run: cannot write into /proc \("):
        check_writable(Path("/proc/run"), "--out")


@pytest.mark.parametrize(
    "command", [["train", "--out"], ["play"], ["tasks", "--game"]], ids=" ".join
)
def test_a_path_that_no_file_can_have(command, capsys) -> None:
    assert main([*command, "a" * 300]) == 2
    (complaint,) = [line for line in capsys.readouterr().err.splitlines() if "aaa" in line]
    assert complaint.startswith("sc2pool: ")


@pytest.mark.parametrize("check", [check_file, check_writable])
def test_a_name_that_no_file_can_have(check, tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"^--gif .*aaa: File name too long$"):
        check(tmp_path / ("a" * 300), "--gif")


def test_a_guess_leaves_the_dashes_out() -> None:
    known = ["--out", "--task", "-h"]
    assert hint("--bogus", known) == ""
    assert hint("--tasks", known) == "; did you mean --task?"


def test_a_drive_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sc2pool.cli.arguments.os.path.exists", lambda _: False)  # a missing drive
    with pytest.raises(ConfigError, match=r"^--out runs: there is no drive /$"):
        check_writable(Path("runs"), "--out")


# ---- signals: the first signal asks to stop, the second interrupts -------------------------------


HANGUP = None if WINDOWS else signal.SIGHUP
needs_hangup = pytest.mark.skipif(HANGUP is None, reason="Windows has no SIGHUP")


@pytest.mark.parametrize("first", [signal.SIGTERM, pytest.param(HANGUP, marks=needs_hangup)])
def test_the_first_signal_only_asks_and_the_second_interrupts(first: signal.Signals) -> None:
    stop = Stop()
    before = signal.signal(first, signal.SIG_DFL)  # under nohup, SIGHUP is ignored
    try:
        with stop.handling(), stop.polite():
            signal.raise_signal(first)
            assert stop.signal == first
            with pytest.raises(Stopped) as caught:
                signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(first, before)
    assert caught.value.exit_code == 130


def test_outside_of_the_training_a_signal_interrupts_at_once() -> None:
    stop = Stop()
    with stop.handling(), pytest.raises(Stopped) as caught:
        signal.raise_signal(signal.SIGTERM)
    assert caught.value.exit_code == 143


def test_an_interrupt_that_ray_made_of_a_signal_tells_which_it_was() -> None:
    stop = Stop()
    with pytest.raises(Stopped) as caught, stop.handling():
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None  # `ray.get` raises the interrupt in this way
    assert caught.value.exit_code == 143


def test_the_former_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with Stop().handling():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@needs_hangup
def test_a_program_under_nohup_ignores_a_hangup() -> None:
    before = signal.signal(HANGUP, signal.SIG_IGN)
    stop = Stop()
    with stop.handling(), stop.polite():
        signal.raise_signal(HANGUP)
    assert stop.signal is None
    assert signal.signal(HANGUP, before) is signal.SIG_IGN


def test_what_is_said_is_no_command_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say("first\n\x1b]0;title\x07second")
    assert capsys.readouterr().out == "first\n\\x1b]0;title\\x07second\n"
