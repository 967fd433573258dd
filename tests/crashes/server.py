"""Runs commands of sc2pool, each in a fork of a process that has imported what commands need.

The server reads each request as a line of JSON, and answers with a line that says how the command
ended, what it printed, and how it changed the files of a folder. The libraries of `ends.c` and of
`scripts/chaos/attacks/clock.c` are preloaded.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py  # noqa: F401
import minari  # noqa: F401
import optuna  # noqa: F401
import torch
import torch._dynamo  # an optimizer would import this module later, and take seconds

import sc2pool.cli.bench.own_game
import sc2pool.cli.doctor
import sc2pool.cli.play
import sc2pool.cli.record
import sc2pool.cli.replay
import sc2pool.cli.training.train
import sc2pool.cli.tune  # noqa: F401
from sc2pool import datasets
from sc2pool.cli.main import main
from sc2pool.cli.training import progress
from sc2standin.command import main as standin

LIMIT_S = 300.0
SAVES_AT = (100, 200, 400)
"""Env steps at which a training saves itself here; other trainings save once a minute."""
SHARD_STEPS = 300
"""The number of steps in a shard of a dataset: so few that a shard has two episodes."""


def saving(on_step: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """A training's callback for each step, which saves the run at some of the steps."""

    def step(callback: Any) -> bool:
        if callback.num_timesteps in SAVES_AT:
            callback.save()
        return on_step(callback)

    return step


def run(request: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """Run a command to its end.

    Args:
        request: see `Server.run` in `conftest.py`.
        scratch: a folder for the files of this program.
    """
    with Path(os.environ["SC2POOL_CHAOS_CLOCK"]).open("r+b") as file:
        file.write(struct.pack("l", request["clock_s"]))
    out, err, log = (scratch / name for name in ("out", "err", "log"))
    child = os.fork()
    if child == 0:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(out, flags), 1)
        os.dup2(os.open(err, flags), 2)
        os.environ.update(request["environment"])
        changes = os.open(log, flags)
        folder = request["folder"].encode() + b"/"
        change = ctypes.c_long(request["change"])
        ctypes.CDLL(None).arm(folder, change, request["action"], changes)
        program = standin if request["program"] == "sc2standin" else main
        sys.exit(program(request["arguments"]))
    deadline_s = time.monotonic() + LIMIT_S
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline_s:
            os.kill(child, signal.SIGABRT)
        time.sleep(0.01)
    return {
        "status": os.waitstatus_to_exitcode(ended[1]),
        "said": out.read_text(errors="replace"),
        "complaints": err.read_text(errors="replace"),
        "changes": log.read_text().splitlines(),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    progress.Recorder._on_step = saving(progress.Recorder._on_step)
    datasets.SHARD_STEPS = SHARD_STEPS
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line), Path(sys.argv[1]))), flush=True)
