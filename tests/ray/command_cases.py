"""`command_cases.py TEMP REPORT GAME` runs the commands on two nodes. See `vec_env_cases.py`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support import programs
from tests.support.ray_nodes import Nodes, games_of, run_cases, wait

TEMP, REPORT, GAME = sys.argv[1:]
OUT = Path(TEMP, "run")
WORK = Path(TEMP, "work")
"""The folder in which the commands run; only this folder has the user's task."""
TASK = """
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon

class Walk(MoveToBeacon):
    pass
"""


def start(*arguments: object) -> subprocess.Popen[str]:
    return programs.start(sys.executable, "-m", "sc2pool", *arguments, cwd=WORK)


def run(*arguments: object) -> dict[str, Any]:
    process = start(*arguments)
    out, err = process.communicate(timeout=600)
    return {"code": process.returncode, "out": out, "err": err}


def looked_at() -> dict[str, Any]:
    """While two nodes train, `top` and `watch` show the nodes. At the end, press Ctrl-C."""
    training = start(
        "train",
        f"--ray={NODES.address}",
        "--task=my_task:Walk",
        "--n=4",
        "--steps=100_000",
        "--seed=3",
        f"--out={OUT}",
    )
    try:
        began = wait(lambda: len(games_of(GAME)) == 4)
        top: dict[str, Any] = {}

        def shows_all() -> bool:
            top.update(run("top", "--ray", NODES.address, "--json"))
            return top["code"] == 0 and len(json.loads(top["out"])["instances"]) == 4

        wait(shows_all)  # a new node or pool is not shown until it answers
        table = run("top", "--ray", NODES.address, "--once")
        return {"began": began, "top": top, "table": table, "watch": watched()}
    finally:
        training.send_signal(signal.SIGINT)
        out, err = training.communicate(timeout=600)
        ENDED.update(out=out, err=err, code=training.returncode)


ENDED: dict[str, Any] = {}


def ended() -> dict[str, Any]:
    """How the training ended after the Ctrl-C in `looked_at`."""
    return ENDED


def watched() -> dict[str, Any]:
    watch = start("watch", "--ray", NODES.address)
    try:
        assert watch.stdout is not None
        said = [watch.stdout.readline(), watch.stdout.readline()]
        address = said[1].split()[3]
        state: dict[str, Any] = {}

        def shows_all() -> bool:
            with suppress(OSError):
                state.update(ask(address + "state"))
            figures = ask(address + "curves")["figures"]  # the mean return exists after an episode
            return len(state.get("views", ())) == 4 and {"mean return", "steps/s"} <= set(figures)

        waited_s = wait(shows_all)
        key = next(iter(state["views"].values()))["map"]
        return {
            "said": said,
            "waited_s": waited_s,
            "views": len(state["views"]),
            "nodes": len({row["node"] for row in state["pool"]["instances"]}),
            "map": sorted(ask(f"{address}map/{key}")),
            "figures": sorted(ask(address + "curves")["figures"]),
        }
    finally:
        watch.send_signal(signal.SIGINT)
        watch.communicate(timeout=300)


def ask(address: str) -> dict[str, Any]:
    with urllib.request.urlopen(address, timeout=300) as answer:
        return dict(json.load(answer))


def resumed() -> dict[str, Any]:
    """Resume the run, with an evaluation on the cluster."""
    done = int((OUT / "episodes.csv").read_text().count("\n"))
    steps = steps_done()
    went_on = run(
        "train",
        f"--resume={OUT}",
        f"--ray={NODES.address}",
        f"--steps={steps + 400}",
        "--n=3",
        "--eval-every=200",
        "--eval-episodes=1",
    )
    return {
        "resumed": went_on,
        "episodes": [done, (OUT / "episodes.csv").read_text().count("\n")],
        "evaluations": (OUT / "evaluations.csv").read_text().count("\n"),
        "from": steps,
        "to": steps_done(),
        "files": sorted(path.name for path in OUT.iterdir()),
    }


def steps_done() -> int:
    from sc2pool.cli.training.run_folder import read_steps

    return read_steps(OUT / "model.zip", "ppo")


def no_pool() -> dict[str, Any]:
    return run("top", "--ray", NODES.address, "--once")


def dead_address() -> dict[str, Any]:
    return {name: run(name, "--ray", "127.0.0.1:9") for name in ("train", "top")}


if __name__ == "__main__":
    WORK.mkdir()
    Path(WORK, "my_task.py").write_text(TASK)
    os.environ["SC2PATH"] = "/no/such/game"  # because the driver needs no game
    NODES = Nodes(TEMP, GAME)
    try:
        found = run_cases([looked_at, ended, resumed, no_pool, dead_address])
        found["in_the_end"] = {"games": len(games_of(GAME))}
        Path(REPORT).write_text(json.dumps(found, default=float))
    finally:
        NODES.shutdown()
