"""Compares seeded runs of an earlier commit and of this checkout byte for byte.

The benchmark starts `python -m bench.equality` once for each commit, asks it to play runs, and gets
a digest of each step. A run plays a task with an env class in one mode, by random actions that the
masks allow. Episodes are short, so that there are resets and final observations. Each run also has
a spare instance. Each commit plays its own stand-in (simulated game), so that changes of the
stand-in's behaviour are found as well.
"""

from __future__ import annotations

import hashlib
import logging
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from bench import child
from sc2pool import SC2GymEnv, SC2VectorEnv, SubprocSC2VecEnv
from sc2pool.tasks.registry import BUILT_IN, SMAC, SMAC_DUELS, SMACV2

STEPS = 24
SEED = 11
MAX_LOOPS = 80
"""An episode ends after this many loops (often ten steps), so that a run has several episodes."""
POOL = {"n": 2, "spares": 1, "max_loops": MAX_LOOPS}

Run = tuple[str, str]
"""A key of `PLAYS` (it names an env class and a mode), and a task."""


def all_runs() -> list[Run]:
    """Built-in tasks with all env classes and modes, teams with SB3's class, and a duel."""
    alone = [task for task in BUILT_IN if task != "MarineDuel"]
    return [
        *((play, task) for play in PLAYS for task in alone),
        *(("sb3", task) for task in ("MarineDuel", *SMAC, *SMAC_DUELS, *SMACV2)),
        *((play, "3m_duel") for play in PLAYS if play.startswith("vector")),
    ]


def differing(revision: Path, runs: Sequence[Run]) -> Iterator[tuple[Run, str]]:
    """Play each run on both commits.

    Args:
        revision: the folder in which the earlier commit is installed.
        runs: some of `all_runs`.

    Yields:
        Each run with a text: its first difference, the error of both commits, or "" if equal.
    """
    programs = [
        child.start_asked("bench.equality", import_from=folders) for folders in ([revision], [])
    ]
    try:
        for run in runs:
            before, now = child.ask(programs, *run)
            yield run, _difference(before, now)
    finally:
        child.end(programs)


def _difference(before: list[str], now: list[str]) -> str:
    for step, (one, other) in enumerate(zip(before, now, strict=False)):
        if one != other:
            return f"step {step}: {one} before, {other} now"
    if len(before) != len(now):
        return f"{len(before)} steps before, {len(now)} now"
    return f"both raise {now[-1]}" if ":" in now[-1] else ""


# All code below runs in the child process of each commit.


def played(play: str, task: str, installation: Path) -> list[str]:
    """A digest of a run's reset and of each step; an error of the run is the last entry."""
    digests = []
    try:
        for brought in PLAYS[play](task, installation):
            digests.append(hashlib.sha256(b"".join(_bytes_of(brought))).hexdigest()[:16])
    except Exception as error:
        digests.append(f"{type(error).__name__}: {error}")
    return digests


def _sb3(task: str, installation: Path) -> Iterator[Any]:
    with closing(SubprocSC2VecEnv(task=task, seed=SEED, game=str(installation), **POOL)) as env:
        rng = np.random.default_rng(SEED)
        yield env.reset(), env.reset_infos
        for _ in range(STEPS):
            masks = [env.pool.action_mask(row) for row in range(env.num_envs)]
            yield masks, env.step(np.array([_action(env.action_space, m, rng) for m in masks]))


def _vector(task: str, installation: Path, mode: AutoresetMode) -> Iterator[Any]:
    with closing(
        SC2VectorEnv(task=task, game=str(installation), autoreset_mode=mode, **POOL)
    ) as env:
        rng = np.random.default_rng(SEED)
        yield env.reset(seed=SEED)
        for _ in range(STEPS):
            masks = [env.pool.action_mask(row) for row in range(env.num_envs)]
            actions = [_action(env.single_action_space, mask, rng) for mask in masks]
            brought = env.step(np.array(actions))
            yield masks, brought
            over = brought[2] | brought[3]
            if mode is AutoresetMode.DISABLED and over.any():
                yield env.reset(options={"reset_mask": over})


def _gym(task: str, installation: Path) -> Iterator[Any]:
    with closing(SC2GymEnv(task=task, max_loops=MAX_LOOPS, game=str(installation))) as env:
        rng = np.random.default_rng(SEED)
        yield env.reset(seed=SEED)
        for _ in range(STEPS):
            mask = env.pool.action_mask(0)
            brought = env.step(_action(env.action_space, mask, rng))
            yield mask, brought
            if brought[2] or brought[3]:
                yield env.reset()


PLAYS = {
    "sb3": _sb3,
    "gym": _gym,
    **{
        f"vector, {mode.value}": lambda task, game, mode=mode: _vector(task, game, mode)
        for mode in AutoresetMode
    },
}


def _action(space: spaces.Space[Any], mask: np.ndarray | None, rng: np.random.Generator) -> Any:
    """A random action of a space, among those that the mask allows."""
    if isinstance(space, spaces.Discrete):
        allowed = np.arange(space.n) if mask is None else np.flatnonzero(mask)
        return int(rng.choice(allowed)) + int(space.start)
    if isinstance(space, spaces.MultiDiscrete):
        whole = np.ones(space.nvec.sum(), bool) if mask is None else mask
        parts = np.split(whole, space.nvec.cumsum()[:-1])
        return np.array([rng.choice(np.flatnonzero(part)) for part in parts])
    assert isinstance(space, spaces.Box)
    return rng.uniform(space.low, space.high).astype(space.dtype)


def _bytes_of(value: Any) -> Iterator[bytes]:
    """The bytes of a value and of all values inside it, in a fixed order."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield repr((value.dtype.str, value.shape)).encode()
        yield value.tobytes()
    elif isinstance(value, Mapping):
        for key in sorted(value):
            yield str(key).encode()
            yield from _bytes_of(value[key])
    elif isinstance(value, list | tuple | np.ndarray):
        yield repr(len(value)).encode()
        for part in value:
            yield from _bytes_of(part)
    else:
        yield repr(value).encode()


def serve() -> None:
    """Play each requested run, until stdin is closed."""
    from bench.standin import install  # noqa: PLC0415

    logging.getLogger("sc2pool").setLevel(logging.ERROR)  # hides a warning about the stand-in
    with tempfile.TemporaryDirectory(prefix="equality-", ignore_cleanup_errors=True) as folder:
        root = install(Path(folder) / "StarCraftII").root
        for play, task in child.questions():
            child.answer(played(play, task, root))


if __name__ == "__main__":
    sys.exit(serve())
