"""The opponents of a run with self-play, while it learns and when it is evaluated."""

from __future__ import annotations

from functools import partial

from sc2pool.cli.training.run_folder import SNAPSHOTS_FOLDER
from sc2pool.cli.training.settings.options import TrainOptions
from sc2pool.cli.training.settings.self_play import LATEST_SHARE, SHARED
from sc2pool.tasks.opponents.opponent import Opponent
from sc2pool.tasks.opponents.policies import FunctionPair
from sc2pool.tasks.opponents.resolve import InTurn, PairOpponent
from sc2pool.tasks.opponents.snapshots import RULES, FirstOpponent, SnapshotStore
from sc2pool.tasks.registry import resolve
from sc2pool.tasks.teams.team_task import agents_of

FIRST, SCRIPTED = "first", "scripted"


def store_of(options: TrainOptions) -> SnapshotStore:
    """The run's snapshots, from which its mode chooses the opponents."""
    rule = next((rule for rule in RULES if rule == options.self_play), RULES[0])
    return SnapshotStore(options.out / SNAPSHOTS_FOLDER, rule, latest_share=LATEST_SHARE)


def learns_against(options: TrainOptions) -> SnapshotStore | None:
    """The opponent in training; None if both sides learn, or if there is but one side."""
    return None if options.self_play in ("", SHARED) else store_of(options)


def yardsticks(options: TrainOptions) -> dict[str, Opponent]:
    """Those that evaluations are played against: the first snapshot, and the scripted player."""
    task = resolve(options.task)
    actions, agents = task.action_space, agents_of(task)
    found: dict[str, Opponent] = {FIRST: FirstOpponent(store_of(options), actions, FIRST)}
    scripted = getattr(task, "scripted", None)  # a function of the observation
    if scripted is not None:
        found[SCRIPTED] = PairOpponent(SCRIPTED, partial(FunctionPair, scripted, actions), agents)
    return found


def taking_turns(opponents: dict[str, Opponent]) -> InTurn:
    """All of them, as the opponent of one pool."""
    return InTurn(tuple(opponents.values()))
