"""Tests of the scripts that measure, which are `benchmark.py`, `walk.py`, and `studies`.

The scripts' figures must be plausible, and their comparisons fair.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from bench.comparison import CERTAINTY, alternate, median_interval, ratio, ratio_interval
from bench.equality import all_runs, differing
from bench.report import GOALS, goals_table, noise, throughput_rows, value_row
from bench.revision import RevisionSide
from PIL import Image

import sc2pool
from sc2pool.cli.bench.measuring import ROLES, Round, Rounds
from sc2pool.cli.training.run_folder import EpisodeLog, EpisodeRow
from sc2pool.pool.machine import sweep
from sc2pool.tasks.minigames.scores import PUBLISHED
from tests.support.programs import run, start

SCRIPTS = Path(__file__).parents[2] / "scripts"
SCRIPT = SCRIPTS / "benchmark.py"
CASES = ["pool-only", "whole-stack", "game-cost"]
POOLS = ["SubprocSC2VecEnv", "SubprocVecEnv", "AsyncVectorEnv", "bare shared memory"]
STACKS = ["pool, Task", "pool, RLBotAI", "recipe", "bare wire"]


def benchmark(*options):
    return run(sys.executable, SCRIPT, "--quick", *options)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The folder with the results of a measurement, and its output."""
    out = tmp_path_factory.mktemp("benchmark")
    done = benchmark("--case", *CASES, "--out", out)
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def rows_of(out, case, unit="steps/s"):
    rows = json.loads((out / "benchmark.json").read_text())["rows"]
    return {row["side"]: row for row in rows if (row["case"], row["unit"]) == (case, unit)}


def test_every_side_is_measured(measured):
    out, _ = measured
    assert list(rows_of(out, "pool only")) == POOLS
    assert list(rows_of(out, "whole stack")) == STACKS
    assert "pool, recv(min_ready=8)" in rows_of(out, "game cost")


def test_the_figures_are_those_of_the_rounds(measured):
    out, _ = measured
    for case in ("pool only", "whole stack", "game cost"):
        for row in rows_of(out, case).values():
            rates = [one["steps"] / one["seconds"] for one in row["rounds"]]
            assert len(rates) == 2
            assert row["figure"] == pytest.approx(sum(rates) / 2)
            assert (row["lowest"], row["highest"]) == pytest.approx((min(rates), max(rates)))
            assert 1 < row["figure"] < 1e6
    rows = rows_of(out, "whole stack")
    ratios = [
        ours["steps_per_s"] / theirs["steps_per_s"]
        for ours, theirs in zip(rows["pool, Task"]["rounds"], rows["recipe"]["rounds"], strict=True)
    ]
    assert rows["pool, Task"]["ratios"]["recipe"] == pytest.approx(sum(ratios) / 2)


@pytest.mark.timing
def test_cpu_time_is_counted_by_role(measured):
    out, _ = measured
    for side, row in rows_of(out, "pool only").items():
        used_us = row["cpu_us_per_step"]
        assert used_us["game"] == 0, side
        assert used_us["trainer"] > 0, side
        assert used_us["worker"] > 0, side
    for side, row in rows_of(out, "whole stack").items():
        assert all(used_us > 0 for used_us in row["cpu_us_per_step"].values()), side
        for one in row["rounds"]:
            cores = json.loads((out / "benchmark.json").read_text())["machine"]["cores"]
            # The CPU time must be that of the round, not that of a process's whole life.
            assert sum(one["cpu_s"].values()) < 1.5 * cores * one["seconds"] + 0.1, side


def test_a_sleeping_game_bounds_its_rate(measured):
    out, _ = measured
    for side, row in rows_of(out, "game cost").items():
        assert row["figure"] <= 200, side  # one game, whose steps take 5 ms each


def test_the_table(measured):
    _, printed = measured
    lines = printed.partition("\n\n")[0].splitlines()
    assert {line.count("|") for line in lines} == {lines[0].count("|")}
    assert sum("| whole stack |" in line for line in lines) == len(STACKS)


def test_goals_are_judged_by_their_bounds():
    for goal in GOALS:
        for figure, verdict in (
            (goal.bound * 0.5, goal.at_most),
            (goal.bound * 2, not goal.at_most),
        ):
            ratios = {} if goal.against is None else {goal.against: figure}
            own = 7.0 if goal.against else figure
            row = value_row(goal.case, goal.setting, goal.side, [own], unit="", ratios=ratios)
            assert goal.reached(goal.figure([row])) is verdict
            answer = "yes" if verdict else "**no**"
            assert goals_table([row]).splitlines()[-1].endswith(f"| {answer} |")
    assert goals_table([]) == ""


def test_recovery_after_deaths_and_slow_resets(tmp_path):
    done = benchmark("--case", "recovery", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    rows = rows_of(tmp_path, "recovery", "ms")
    assert set(rows) == {
        "death detected",
        "batch with a death",
        "sc2pool, spares=2",
        "sc2pool, spares=0",
        "SubprocVecEnv over SC2GymEnv",
    }
    assert 0 < rows["death detected"]["figure"] < rows["batch with a death"]["figure"]


def test_an_earlier_commit_is_one_more_side(tmp_path):
    options = ["--case", "pool-only", "whole-stack", "--sides", "SubprocSC2VecEnv,Task"]
    done = benchmark(*options, "--against", "HEAD", "--out", tmp_path)
    if "not a git repository" in done.stderr:
        pytest.skip("not a git repository")
    assert done.returncode == 0, done.stderr
    for case, side in (("pool only", "SubprocSC2VecEnv"), ("whole stack", "pool, Task")):
        rows = rows_of(tmp_path, case)
        assert list(rows) == [side, f"{side} before"]
        low, high = rows[side]["intervals"][f"{side} before"]
        assert low <= rows[side]["ratios"][f"{side} before"] <= high
        assert rows[f"{side} before"]["figure"] > 1


def test_the_earlier_commit_is_the_one_that_is_played(tmp_path):
    package = tmp_path / "sc2pool"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('the other package')")
    side = RevisionSide(tmp_path, "empty_side", "SubprocSC2VecEnv", 1, 1024)
    with closing(side), pytest.raises(RuntimeError, match=r"bench\.revision has ended"):
        side.prepare()


def test_a_commit_that_git_does_not_know():
    done = benchmark("--against", "nosuch")
    assert done.returncode == 1
    assert done.stderr.startswith("benchmark: --against nosuch: fatal: ")
    assert "Traceback" not in done.stderr


def test_noise_is_said_where_there_is_some():
    def rows(others_cores):
        rounds = Rounds([Round(1, 1.0, dict.fromkeys(ROLES, 0.1), others_cores)])
        return throughput_rows("case", "setting", {"side": rounds}, {})

    assert noise(rows(0.01)) == ""
    assert "other programs used 0.70 cores" in noise([*rows(0.7)])


def test_ctrl_c_ends_everything_and_prints_what_was_measured():
    options = ["--case", "whole-stack", "--maps", "Canned", "--n", "1", "--sides", "pool,wire"]
    rounds = ["--rounds", "1000", "--seconds", "0.2"]
    with start(sys.executable, SCRIPT, *options, *rounds) as process:
        for line in process.stderr:
            if "steps/s" in line:
                process.send_signal(signal.SIGINT)
                break
        printed, _ = process.communicate(timeout=300)
        assert process.returncode == 130
    assert printed.startswith("| case |")


class Counting:
    """A compared program (a "side") that records the order of its calls."""

    def __init__(self, name, calls):
        self.name, self.calls = name, calls

    def prepare(self):
        self.calls.append(("prepare", self.name))

    def run(self, seconds):
        self.calls.append(("run", self.name))
        return 100, seconds


def test_the_order_alternates_and_every_round_is_prepared():
    calls = []
    sides = {name: Counting(name, calls) for name in "ABC"}
    measured = alternate(sides, 2, 0.5)
    assert [name for call, name in calls if call == "run"] == list("ABCCBA")
    assert [call for call, _ in calls] == ["prepare", "run"] * 6
    assert {name: len(rounds) for name, rounds in measured.items()} == dict.fromkeys("ABC", 2)
    assert measured["A"][0].steps_per_s == 200


def test_a_ratio_is_taken_round_by_round():
    def rounds(*rates):
        return Rounds(Round(rate, 1.0, {}) for rate in rates)

    # The first side is twice as fast in each round, however busy the machine is.
    assert ratio(rounds(100, 20, 60), rounds(50, 10, 30)) == 2.0
    with pytest.raises(ValueError, match="zip"):
        ratio(rounds(1, 2), rounds(1))


@pytest.mark.parametrize(
    ("values", "interval"),
    [([7.0], (7, 7)), ([3, 1, 2], (1, 3)), (range(1, 6), (1, 5)), (range(1, 9), (2, 7))],
)
def test_interval_of_a_median_leaves_out_the_extremes(values, interval):
    assert median_interval(values) == interval


def test_a_medians_interval_is_as_certain_as_it_says():
    rng = np.random.default_rng(0)
    for n in (5, 9, 20):
        intervals = [median_interval(rng.exponential(size=n)) for _ in range(2000)]
        inside = np.mean([low <= np.log(2) <= high for low, high in intervals])
        assert CERTAINTY - 0.02 < inside < CERTAINTY + 0.08


class Rates:
    """A compared program (a "side"), which has a given rate in each round."""

    def __init__(self, *rates):
        self._rates = iter(rates)

    def prepare(self):
        pass

    def run(self, _):
        return next(self._rates), 1.0


def test_rounds_are_repeated_until_the_ratio_is_certain():
    steady, noisy = Rates(*[100] * 20), Rates(*[100, 200, 150, 110, 190, *[150] * 15])
    measured = alternate({"a": steady, "b": noisy}, 5, 1.0, most_rounds=20)
    low, high = ratio_interval(measured["b"], measured["a"])
    assert (low, high) == (1.5, 1.5)
    assert 5 < len(measured["a"]) == len(measured["b"]) < 20
    never = {"a": Rates(*[100] * 7), "b": Rates(*[1, 100, 2, 200, 3, 300, 4])}
    assert len(alternate(never, 2, 1.0, most_rounds=7)["a"]) == 7


RUN = ("gym", "MoveToBeacon")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A folder with a copy of the package."""
    package = Path(sc2pool.__file__).parent
    shutil.copytree(package, tmp_path / "sc2pool", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_a_copy_is_equal(other: Path) -> None:
    assert list(differing(other, [RUN])) == [(RUN, "")]


def test_another_reward_is_found(other: Path) -> None:
    adapter = other / "sc2pool/envs/gym.py"
    adapter.write_text(adapter.read_text().replace("reward, terminated", "reward + 1, terminated"))
    ((played, difference),) = differing(other, [RUN])
    assert played == RUN
    assert difference.startswith("step 1: ")


def test_a_run_that_cannot_be_played_is_no_equality(other: Path) -> None:
    ((_, difference),) = differing(other, [("gym", "3m")])
    assert difference.startswith("both raise ConfigError: SC2GymEnv has one learner")


def test_every_task_is_played() -> None:
    built_in = sc2pool.tasks.registry.available_tasks()
    assert {task for _, task in all_runs()} >= {*built_in, "3m", "MMM"}


PACKAGE = Path(sc2pool.__file__).parent


def test_a_step_is_followed_in_the_trainer_and_in_a_worker(standin_dir):
    env = os.environ | {"SC2PATH": str(standin_dir), "PYTHONPATH": str(PACKAGE.parent)}
    done = run(sys.executable, SCRIPTS / "walk.py", env=env)
    assert done.returncode == 0, done.stderr
    trainer, worker = done.stdout.strip().split("\n\n")
    for table, first in ((trainer, "envs/sb3.py"), (worker, "tasks/minigames/move_to_beacon.py")):
        head, *lines = table.splitlines()
        n_files, n_calls = map(int, re.search(r"(\d+) files, (\d+) calls", head).groups())
        rows = [line.split() for line in lines]
        assert (n_files, n_calls) == (len(rows), sum(int(calls) for calls, _ in rows))
        assert rows[0][1] == first
        assert all((PACKAGE / file).is_file() for _, file in rows)


def test_it_draws_seven_runs(tmp_path: Path) -> None:
    for task in PUBLISHED:
        folder = tmp_path / task
        folder.mkdir()
        about = {"options": {"algo": "ppo", "steps": 960}, "game_version": "standin-1"}
        (folder / "config.json").write_text(json.dumps(about))
        log = EpisodeLog(folder / "episodes.csv")
        for number, fault in ((1, ""), (2, "hung"), (3, "")):
            log.add(EpisodeRow(240 * number, float(number), 240, 1.0, fault))
        log.close()
    done = run(sys.executable, SCRIPTS / "studies" / "learning_curves.py", tmp_path)
    assert done.returncode == 0, done.stderr
    head, _, first, *others = done.stdout.splitlines()
    assert head == "| task | algorithm | env steps | random | last 32 episodes | scripted |"
    assert first == "| MoveToBeacon | ppo | 960 | 0.6 | 2.0 | 25.5 |"
    assert len(others) == 6
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.width > picture.height > 500


@pytest.mark.standin("the bounds in its table are checked against its rules")
def test_one_row(standin_dir):
    options = ["--game", standin_dir, "--task", "MoveToBeacon", "--episodes", "1"]
    finished = run(sys.executable, SCRIPTS / "studies" / "scores.py", *options)
    assert finished.returncode == 0, finished.stderr
    header, separator, row, _, game = finished.stdout.splitlines()
    assert header.count("|") == separator.count("|") == row.count("|")
    assert row.startswith("| MoveToBeacon |")
    assert row.endswith("| yes (22–34) | yes (≤ 6) |")
    assert game.startswith("Game standin")


@pytest.mark.skipif(
    shutil.which("supertux2", path="/usr/games:/usr/bin") is None, reason="no SuperTux"
)
def test_a_table_of_learners_on_a_live_game(tmp_path, run_temp):
    """Two learners of the table play for six seconds each; a third learner's library is missing."""
    options = ["--rows", "ppo", "gate", "rtgym", "--minutes", "0.1", "--seeds", "1"]
    root = SCRIPTS.parent
    module = ("-m", "scripts.studies.live_game_table")
    words = (sys.executable, *module, *options, "--out", tmp_path / "out")
    done = run(*words, cwd=root, env=os.environ | {"PYTHONPATH": str(root)}, timeout_s=500)
    assert done.returncode == 0, done.stderr
    sweep(run_temp)  # clean up after the killed processes, as the next pool does
    results = [json.loads(line) for line in (tmp_path / "out/results.jsonl").open()]
    assert [result["row"] for result in results] == ["ppo", "gate", "rtgym"]
    for result in results[:2]:
        assert 20 < result["steps"] <= 60, "a step takes at least 0.105 s"
        assert 0 < result["gap_ms_p50"] <= result["gap_ms_p99"] <= result["gap_ms_max"]
    assert results[2]["skipped"] == "No module named 'rtgym'"
    head, _, ppo, gate, rtgym, *_ = done.stdout.splitlines()
    assert head.count("|") == ppo.count("|") == gate.count("|") == rtgym.count("|")
    assert rtgym.startswith("| rtgym's env and `wait`, SB3's PPO; skipped: No module named")


def test_returns_are_those_of_the_last_finished_episodes():
    sys.path.insert(0, str(SCRIPTS.parent))
    from scripts.studies.live_game_table import Step, figures_of

    def episode(number: int, began_s: float, reward: float) -> list[Step]:
        return [
            Step(began_s + n, number, 0.01 * n, int(n == 2), reward, int(n == 2), 0)
            for n in range(3)
        ]

    steps = [*episode(1, 100.0, 1.0), *episode(2, 110.0, 2.0), *episode(3, 159.0, 3.0)]
    found = figures_of(steps, (0.15, 1.0))
    assert found["returns"] == {"0.15": 3.0, "1": 4.5}, "the third is not over after a minute"
    assert (found["steps"], found["missed_periods"], found["deaths"]) == (8, 2, 2)
    assert found["gap_ms_max"] == 20
