"""Plays SMAC and our task of a scenario with the same seeds and actions, and compares the results.

Usage: `python tests/peers/compare_smac.py [SCENARIO ...] [--steps 200] [--options]`.

SMAC plays battles with random actions for `--steps` steps; our task plays each battle again. The
observations, states, available actions, rewards and ends must differ by at most 1e-5. If you name
no scenario, five are played. With `--options`, the scenarios are also played under other options.
SMAC is installed as run_smac.py says, with the same `--environment`, `--python` and `--source`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sc2pool.deadline import Deadline
from sc2pool.tasks.player import Episode
from sc2pool.tasks.queue_pair import Transition
from sc2pool.tasks.teams.battle_task import BattleTask, smac_task
from sc2pool.tasks.teams.scenarios import SCENARIOS, Rules
from tests.matches.playing import RecordedRows, player_of
from tests.peers.clients import default_python, prepare
from tests.peers.run_smac import ENVIRONMENT, PACKAGES, SOURCE, installation, smac_output

RECORD = Path(__file__).parent / "programs" / "record_smac.py"
USUAL = ("3m", "8m", "2s3z", "MMM", "corridor")
TOLERANCE = 1e-5
BATTLE_S = 120.0
"""Limit in seconds for a battle that SMAC plays, including the launch of its game."""
LAUNCH_S = 60.0
OPTIONS: tuple[Mapping[str, Any], ...] = (
    {
        "obs_last_action": True,
        "obs_pathing_grid": True,
        "obs_terrain_height": True,
        "state_timestep_number": True,
        "reward_only_positive": False,
    },
    {"obs_all_health": False, "obs_own_health": False, "obs_instead_of_state": True},
    {"obs_all_health": False, "state_last_action": False, "reward_sparse": True},
    {"move_amount": 4, "reward_scale": False, "reward_only_positive": False, "reward_defeat": -50},
    {"heuristic_ai": True},
    {"heuristic_ai": True, "heuristic_rest": True},
)
"""Options other than the defaults. `obs_timestep_number` is missing, because with it SMAC's
observation does not have the size that SMAC states."""

Record = Mapping[str, np.ndarray[Any, np.dtype[Any]]]


@dataclass
class Compared:
    """The result of comparing one scenario."""

    steps: int = 0
    battles: int = 0
    over: int = 0
    """The number of battles that were played to their end."""
    largest: float = 0.0
    """The largest difference between a number from SMAC and the same number from our task."""
    different: list[str] = field(default_factory=list)


class ReplayingPair(RecordedRows):
    """A queue pair that plays recorded actions, and keeps the task's transitions."""

    def __init__(self, actions: Any) -> None:
        super().__init__([])
        self._actions = iter(actions)
        self.transitions: list[list[Transition]] = []

    async def get_actions(self) -> Any:
        actions = next(self._actions, None)
        if actions is None:
            raise asyncio.CancelledError  # the pool raises this error when a trainer resets
        return actions.tolist()

    def put_rows(self, transitions: Any) -> None:
        self.transitions.append(list(transitions))


Compare = Callable[..., Compared]
"""The type of the function `compare`, here and in `compare_smacv2`."""


def main() -> int:
    options = parse_arguments(__doc__, SCENARIOS, ENVIRONMENT, SOURCE)
    return print_table(options, USUAL, OPTIONS, compare, "SMAC's own")


def print_table(
    options: argparse.Namespace,
    usual: Sequence[str],
    others: Sequence[Mapping[str, Any]],
    compare: Compare,
    own: str,
) -> int:
    """Make the comparisons that the arguments ask for, and print a line for each.

    Args:
        options: the arguments.
        usual: the scenarios to play if none is named.
        others: the sets of options that `--options` adds.
        compare: compares one scenario under one set of options.
        own: the name for the empty set of options.

    Returns:
        The number of comparisons that found a difference.
    """
    python = prepare(options.environment, options.python, PACKAGES, options.source)
    print("| scenario | options | battles | steps | played to the end | largest difference |")
    print("|---|---|---|---|---|---|", flush=True)
    different = 0
    with installation() as game:
        for scenario in options.scenarios or usual:
            for chosen in ({}, *others) if options.options else ({},):
                much = {"steps": options.steps, "seed": options.seed}
                found = compare(python, game, scenario, chosen, **much)
                named = json.dumps(chosen) if chosen else own
                print(
                    f"| {scenario} | {named} | {found.battles} | {found.steps} | {found.over} | "
                    f"{found.largest:.1e} |",
                    flush=True,
                )
                for line in found.different[:20]:
                    print(line)
                different += bool(found.different)
    return different


def parse_arguments(
    doc: str | None, scenarios: Iterable[str], environment: Path, source: str
) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(scenarios))
    parser.add_argument("--steps", type=int, default=200, help="of each scenario, at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--options", action="store_true", help="other options, too")
    parser.add_argument("--environment", type=Path, default=environment)
    parser.add_argument("--python", default=default_python(), help="makes the environment")
    parser.add_argument("--source", default=source, help="the client, as pip names it")
    return parser.parse_args()


def compare(
    python: Path, game: Path, scenario: str, chosen: Mapping[str, Any], *, steps: int, seed: int
) -> Compared:
    """Let SMAC and our task play battles of one scenario until this many steps are played."""
    members = {"scenario": SCENARIOS[scenario], "rules": Rules(**chosen), "__module__": __name__}
    task = type(scenario, (smac_task(scenario),), members)
    battle = partial(recorded, python, game, scenario, chosen)
    return compared(battle, lambda _: task, game, steps=steps, seed=seed)


def compared(
    battle: Callable[..., Record],
    task_of: Callable[[Record], type[BattleTask]],
    game: Path,
    *,
    steps: int,
    seed: int,
) -> Compared:
    """Compare battles until this many steps are played.

    Args:
        battle: records the battle of a seed, with at most a given number of steps.
        task_of: returns our task of a recorded battle.
    """
    found = Compared()
    while found.steps < steps:
        number = seed + found.battles
        theirs = battle(seed=number, steps=steps)
        ours = asyncio.run(played(task_of(theirs), game, number, theirs["actions"]))
        check(theirs, ours, found)
        found.battles += 1
        found.steps += len(theirs["rewards"])
        found.over += int(theirs["ends"][-1])
    return found


def recorded(
    python: Path, game: Path, map_name: str, options: Mapping[str, Any], *, seed: int, steps: int
) -> Record:
    """Let SMAC or SMACv2 play a battle, and return its record."""
    with tempfile.TemporaryDirectory(prefix="sc2pool-smac-") as folder:
        file = Path(folder) / "battle.npz"
        words = [python, RECORD, map_name, str(seed), str(steps), json.dumps(options), file]
        smac_output(words, game, BATTLE_S, f"a battle of {map_name}")
        with np.load(file) as archive:
            return dict(archive)


async def played(
    task: type[BattleTask], game: Path, seed: int, actions: Any
) -> list[tuple[list[Transition], Any]]:
    """Play the recorded battle with our task; returns each step's transitions and state."""
    shared = type(task.__name__, (task,), {"shares_state": True, "__module__": __name__})
    pair = ReplayingPair(actions)
    with player_of(game, shared) as player:
        await player.launch(Deadline.after(LAUNCH_S))
        with contextlib.suppress(asyncio.CancelledError):
            await player.play(Episode(0, seed), pair)
    return [(rows, rows[0].observation["state"]) for rows in pair.transitions]


def check(theirs: Record, ours: list[tuple[list[Transition], Any]], found: Compared) -> None:
    """Compare one battle step by step."""
    battle = found.battles
    if len(ours) != len(theirs["states"]):
        n = len(theirs["states"])
        found.different.append(f"battle {battle}: {len(ours)} observations, SMAC has {n}")
    for step, (rows, state) in enumerate(ours[: len(theirs["states"])]):
        seen = np.array([row.observation["observation"] for row in rows])
        masks = np.array([row.action_masks for row in rows])
        pairs = [
            ("observations", seen, theirs["observations"][step]),
            ("state", state, theirs["states"][step]),
            ("masks", masks, theirs["masks"][step]),
        ]
        if step > 0:
            over = rows[0].terminated or rows[0].truncated
            pairs.append(("reward", rows[0].reward, theirs["rewards"][step - 1]))
            pairs.append(("end", over, theirs["ends"][step - 1]))
        for what, own, other in pairs:
            found.different += differences(f"battle {battle}, step {step}, {what}", own, other)
            if np.shape(own) == np.shape(other):
                gap = np.abs(np.asarray(own, np.float64) - np.asarray(other, np.float64))
                found.largest = max(found.largest, float(gap.max(initial=0.0)))


def differences(what: str, own: Any, other: Any) -> Iterator[str]:
    """A text that describes the difference between two arrays."""
    own, other = np.asarray(own, np.float64), np.asarray(other, np.float64)
    if own.shape != other.shape:
        yield f"{what}: shape {own.shape}, SMAC has {other.shape}"
        return
    wrong = np.argwhere(~(np.abs(own - other) <= TOLERANCE))
    if len(wrong):
        at = tuple(wrong[0])
        first = f"at {at} {own[at]}, SMAC has {other[at]}"
        yield f"{what}: {len(wrong)} numbers differ, the first {first}"


if __name__ == "__main__":
    sys.exit(main())
