"""Tests of `tasks`, `standin` and `bench`, and of all commands with unread output or a Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from sc2pool.cli.parser import AFTER_STOP, make_parser
from sc2pool.game.program.installation import find_installation, read_installation
from sc2pool.tasks.minigames.scores import ON_THE_STANDIN
from sc2pool.tasks.registry import BUILT_IN, SMAC, SMAC_DUELS, SMACV2
from sc2standin.process.server import AfterStop
from tests.cli.conftest import COMMAND
from tests.support.programs import run

Tasks = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tasks(in_process: Callable[..., tuple[int, str, str]]) -> Tasks:
    """Runs `sc2pool tasks` with these arguments; returns its exit code and output."""
    return partial(in_process, "tasks")


def cells(line: str) -> list[str]:
    """The cells of one line of a table."""
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_the_tables(standin_dir: Path, tasks: Tasks) -> None:
    code, said, _ = tasks("--game", standin_dir)
    assert code == 0
    *tables, duels, smac, smacv2, end = said.split("\n\n")
    looks, scores = ([cells(line) for line in table.splitlines()[2:]] for table in tables)
    assert [row[0] for row in looks] == [row[0] for row in scores] == list(BUILT_IN)
    roaches = list(BUILT_IN).index("DefeatRoaches")
    spaces = ["Box(-1, 1, (25,), float32)", "Discrete(11)"]
    assert looks[roaches] == ["DefeatRoaches", *spaces, *"8 1920 yes 1".split()]
    known = ["-4", "102.6", "41", "215", "100"]
    assert scores[roaches] == ["DefeatRoaches", "DefeatRoaches", "yes", *known]
    assert all(len(line) <= 125 for table in tables for line in table.splitlines())
    assert duels.split() == ["duels:", *SMAC_DUELS]
    assert smac.split() == ["smac:", *SMAC]
    assert smacv2.split() == ["smacv2:", *SMACV2]
    *source, where = end.splitlines()
    assert "SC2LE paper" in source[-2]
    assert where == f"Installation: {standin_dir}: game={str(standin_dir)!r}"


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("SMAC", list(SMAC)),
        ("duels", ["MarineDuel", *SMAC_DUELS]),
        ("banelings", ["DefeatZerglingsAndBanelings", "DefeatZerglingsAndBanelingsImage"]),
        ("mmm2", ["MMM2"]),
    ],
)
def test_a_group_or_a_word(standin_dir: Path, tasks: Tasks, word: str, found: list[str]) -> None:
    code, said, _ = tasks(word, "--game", standin_dir)
    assert code == 0
    looks, scores, _ = said.split("\n\n")
    for table in (looks, scores):
        assert [cells(line)[0] for line in table.splitlines()[2:]] == found


def test_a_word_that_is_in_no_name(standin_dir: Path, tasks: Tasks) -> None:
    code, _, complaints = tasks("chess", "--game", standin_dir)
    assert code == 2
    assert "no task with 'chess' in its name" in complaints
    _, _, complaints = tasks("MoveToBacon", "--game", standin_dir)
    assert complaints.endswith("; did you mean MoveToBeacon?\n")


def test_the_scores_are_those_of_the_stand_ins_page() -> None:
    page = (Path(__file__).parents[2] / "sc2standin" / "README.md").read_text().replace("−", "-")
    for name, scores in ON_THE_STANDIN.items():
        (row,) = re.findall(rf"^\| {name} \| (\S+) .*? \| (\S+) ", page, re.MULTILINE)[:1]
        assert tuple(map(float, row)) == scores


def test_json(standin_dir: Path, tasks: Tasks) -> None:
    (folder,) = standin_dir.glob("Maps/mini_games")
    code, said, _ = tasks("--json", "--game", standin_dir)
    assert code == 0
    listed = json.loads(said)
    assert listed["installation"]["root"] == str(standin_dir)
    told = {task["task"]: task for task in listed["tasks"]}
    assert list(told) == list(BUILT_IN)
    assert told["MoveToBeaconImage"]["observation_space"] == "Box(0, 255, (2, 64, 64), uint8)"
    assert told["CollectMineralShards"]["published"]["grandmaster"] == 177
    assert told["MoveToBeacon"]["map_file"] == str(folder / "MoveToBeacon.SC2Map")
    assert not told["MoveToBeacon"]["action_masks"]


def test_a_map_that_is_not_there(standin_dir: Path, tmp_path: Path, tasks: Tasks) -> None:
    (tmp_path / "Versions").symlink_to(standin_dir / "Versions")
    _, said, _ = tasks("--game", tmp_path)
    _, scores, *_ = said.split("\n\n")
    assert [cells(line)[2] for line in scores.splitlines()[2:]] == ["no"] * len(BUILT_IN)


def test_an_installation_that_is_not_there(tmp_path: Path, tasks: Tasks) -> None:
    code, said, complaints = tasks("--game", tmp_path / "nowhere")
    assert (code, said) == (2, "")
    assert "nowhere does not exist" in complaints


def test_without_an_installation(
    tmp_path: Path, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SC2PATH", str(tmp_path))
    code, said, complaints = tasks()
    assert code == 0
    assert "MoveToBeacon" in said
    assert "has no folder Versions" in complaints
    code, said, _ = tasks("--json")
    assert code == 0
    listed = json.loads(said)
    assert listed["installation"] is None
    assert "has no folder Versions" in listed["note"]


def test_on_a_terminal_with_few_letters(
    command: Callable[..., subprocess.CompletedProcess[str]],
    standin_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = command("tasks", "--game", str(standin_dir))
    assert (done.returncode, done.stderr) == (0, "")
    assert "MoveToBeacon" in done.stdout


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
    found = find_installation("auto")
    assert found.root == read_installation(Path(line), "given").root == Path(line)


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


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "thesis.tex"),
        (["--temper", "gentle"], "argument --temper: no temper 'gentle'; there are "),
    ],
)
def test_install_refuses_in_a_line(
    options: list[str], told: str, tmp_path: Path, in_process: InProcess
) -> None:
    (tmp_path / "thesis.tex").touch()
    code, _, complaints = in_process("standin", "install", tmp_path, *options)
    assert (code, complaints.count("\n")) == (2, 1)
    assert told in complaints
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.fixture(scope="module")
def benched(command, standin_dir, tmp_path_factory):
    out = tmp_path_factory.mktemp("bench")
    options = ["--n", "1,2", "--seconds", "0.6", "--game", standin_dir]
    options += ["--json", "--png", out / "deeper" / "bench.png"]
    done = command("bench", *options, timeout_s=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), out


def test_every_number_of_games_is_measured(benched):
    result, _ = benched
    assert [one["n"] for one in result["sizes"]] == [1, 2]
    for one in result["sizes"]:
        rates = sorted(single["steps"] / single["seconds"] for single in one["rounds"])
        assert one["steps_per_s"] == pytest.approx(rates[1])
        assert all(used_us > 0 for used_us in one["cpu_us_per_step"].values())
        assert 0 < one["cores_busy"] <= result["machine"]["cores"] * 1.2
        assert 5e6 < one["worker_bytes"] < 500e6
        assert 5e6 < one["game_bytes"] < 500e6
    assert result["game_version"].startswith("standin")


def test_both_rungs_with_and_without_spares(benched):
    result, _ = benched
    assert [one["spares"] for one in result["resets"]] == [0, 1]
    for one in result["resets"]:
        assert set(one["cost_percent"]) == {"restart_game", "create_game"}
        assert "create_game" in one["reset_ms"]  # a spare may restart too late to be measured
        assert all(0 < taken_ms < 10_000 for taken_ms in one["reset_ms"].values())


def test_advice_and_picture(benched):
    result, out = benched
    assert "looks best" in result["advice"][0]
    assert (out / "deeper" / "bench.png").stat().st_size > 10_000


INTERRUPTED_IMPORT = """
import sys

interrupted = sys.argv[1]
sys.argv = ["sc2pool", "tasks", "--game", "/nowhere"]

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == interrupted:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from sc2pool.cli.main import main
sys.exit(main())
"""


@pytest.mark.parametrize("argument", ["--help", "tasks"])
@pytest.mark.parametrize("buffered", [True, False], ids=["buffered", "unbuffered"])
def test_a_closed_pipe_ends_quietly(into_closed_pipe, argument, buffered):
    done = into_closed_pipe(argument, buffered=buffered)
    unseen = not buffered and argument == "--help"  # argparse ignores a failed write
    assert done.returncode == (0 if unseen else 141)
    assert not re.search("Error|Traceback|Exception", done.stderr)


LONG_COMMAND = """
import sys
from sc2pool.cli import main
from sc2pool.cli.stop import say
main.run_command = lambda _: say("as train, tune and record do")
sys.exit(main.main())
"""


@pytest.mark.parametrize(
    "words",
    [
        (*COMMAND, "tasks"),
        (*COMMAND, "tasks", "--json"),
        (*COMMAND, "standin", "path"),
        (sys.executable, "-c", LONG_COMMAND),
    ],
    ids=["tasks", "json", "path", "a command that the full disk does not end"],
)
@pytest.mark.parametrize("buffered", [True, False], ids=["buffered", "unbuffered"])
def test_output_onto_a_full_disk_is_one_line(words, buffered):
    env = {**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"}
    with Path("/dev/full").open("w") as full:
        streams = {"stdout": full, "stderr": subprocess.PIPE, "capture_output": False}
        done = run(*words, **streams, env=env)
    assert (done.returncode, done.stderr) == (1, "sc2pool: cannot write: No space left on device\n")


@pytest.mark.parametrize("arguments", ["tasks", "standin path", "train --steps 0"])
def test_without_standard_streams(arguments):
    """Commands must work without standard streams, as some daemons start them."""
    command = shlex.join([sys.executable, "-m", "sc2pool", *arguments.split()])
    done = run("sh", "-c", f"{command} >&- 2>&-")
    assert done.returncode == (2 if "train" in arguments else 0)


def test_an_error_message_into_a_closed_pipe(into_closed_pipe, tmp_path):
    done = into_closed_pipe("top", "--run", str(tmp_path), closed="stderr")
    assert done.returncode == 141


@pytest.mark.parametrize("module", ["sc2pool.cli.arguments", "sc2pool.cli.tasks", "numpy"])
def test_ctrl_c_during_an_import_prints_nothing(module):
    """An import raises KeyboardInterrupt, as at a Ctrl-C; the command must print nothing."""
    done = run(sys.executable, "-c", INTERRUPTED_IMPORT, module)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
