"""Trains the policies of `sc2pool/pretrained` on the stand-in, and writes their scores and page.

Usage: `python scripts/pretrained.py RUNS`. A run that is already in the folder RUNS is not trained
again. All trainings together take half an hour on two cores.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from sc2pool.cli.bench.measuring import markdown
from sc2pool.pretrained import Pretrained, pretrained
from sc2pool.tasks.minigames.scores import ON_THE_STANDIN, PUBLISHED

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "sc2pool" / "pretrained"
PAGE = ROOT / "docs" / "pretrained.md"
EPISODES = 100
TRAININGS = {
    "MoveToBeacon": ("ppo", 150_000),
    "CollectMineralShards": ("ppo", 200_000),
    "FindAndDefeatZerglings": ("ppo", 200_000),
    "DefeatRoaches": ("maskable-ppo", 200_000),
    "DefeatZerglingsAndBanelings": ("ppo", 300_000),
    "CollectMineralsAndGas": ("maskable-ppo", 100_000),
    "BuildMarines": ("maskable-ppo", 60_000),
    "3m": ("maskable-ppo", 300_000),
    "MarineDuel": ("ppo", 300_000),
}
"""The algorithm and the env steps of each training, which uses the bundled hyperparameters."""
AGAINST = {"MarineDuel": "scripted"}
MARK = "<!-- the table that scripts/pretrained.py writes -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", type=Path, help="the folder of the trainings")
    runs = parser.parse_args().runs
    found = [make(task, runs / task) for task in TRAININGS]
    rows = json.dumps([asdict(one) for one in found], indent=1)
    (PACKAGE / "scores.json").write_text(rows + "\n")
    before, _, after = PAGE.read_text().split(MARK)
    PAGE.write_text(f"{before}{MARK}\n\n{table()}\n\n{MARK}{after}")


def make(task: str, run: Path) -> Pretrained:
    """Train the policy of a task, unless its run exists; then copy and score the policy."""
    algo, steps = TRAININGS[task]
    command = f"sc2pool train {task} --algo {algo} --steps {steps} --seed 1"
    if not (run / "model.zip").exists():
        sc2pool(*command.split()[1:], "--out", str(run), "--game", "standin")
    shutil.copyfile(run / "model.zip", PACKAGE / f"{task}.zip")
    against = ("--against", AGAINST[task]) if task in AGAINST else ()
    asked = ("--game", "standin", "--episodes", str(EPISODES), "--n", "4", "--seed", "1")
    *_, last = sc2pool("play", str(run), *asked, *against).splitlines()
    print(f"{task}: {last}", flush=True)
    mean, std = re.search(r"mean return (\S+) ± (\S+) over", last).groups()  # type: ignore[union-attr]
    return Pretrained(
        task,
        command,
        json.loads((run / "config.json").read_text())["game_version"],
        EPISODES,
        float(mean),
        float(std),
        last.partition(";")[0] if against else "",
    )


def sc2pool(*arguments: str) -> str:
    """The output of a `sc2pool` command."""
    command = [sys.executable, "-m", "sc2pool", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def table() -> str:
    """The table of the policies' scores, with random, scripted, human and published scores."""
    rows = []
    for one in pretrained().values():
        ours, published = ON_THE_STANDIN.get(one.task), PUBLISHED.get(one.task)
        rows.append(
            (
                one.task,
                f"{one.mean_return:,.1f} ± {one.std_return:,.1f}"
                + (f" ({one.outcome})" if one.outcome else ""),
                f"{ours.random:,.1f}" if ours else "",
                f"{ours.scripted:,.1f}" if ours else "",
                f"{published.human:,g}" if published else "",
                f"{published.agent_best_mean:,g}" if published else "",
                f"`{one.command}`",
            )
        )
    head = ("task", "mean return", "random", "scripted", "human", "FullyConv", "made by")
    return markdown(head, rows)


if __name__ == "__main__":
    main()
