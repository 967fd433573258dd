"""The ways in which a policy is trained against itself: `--self-play MODE`.

    shared        both sides of each match are rows of the learner; the default
    latest        the opponent is the newest snapshot of the learner
    uniform       half of the matches against the newest, half against any snapshot
    prioritised   the same, but rather against those that the learner wins less against

Rule: nothing here imports numpy or torch, so that the command's help is printed at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sc2pool.errors import ConfigError

if TYPE_CHECKING:
    from sc2pool.tasks.definition import TaskDefinition

SHARED: Final = "shared"
MODES: Final = (SHARED, "latest", "uniform", "prioritised")
LATEST_SHARE: Final = 0.5
"""Part of the matches against the newest snapshot: what the learner meets next is like itself, and
the older ones keep it from forgetting how to beat them."""
PARTS: Final = 20
"""Snapshots of a run, if nothing else is asked for."""
EVALUATIONS: Final = 10
LEAST_BETWEEN: Final = 5_000
"""Env steps between two evaluations, whose matches would else take longer than a short training."""
GAMES: Final = 20
"""Of an evaluation, against each opponent."""


def choose_self_play(chosen: str | None, earlier: str | None, task: type[TaskDefinition]) -> str:
    """The mode of a run: as chosen, else the resumed run's; empty for a task of one player.

    Raises:
        ConfigError: it is asked for, and the task has one player.
    """
    if task.players == 2:
        return chosen or earlier or SHARED
    if chosen:
        raise ConfigError(
            f"--self-play {chosen}: it needs a task of two players, and {task.__name__} has "
            f"{task.players}"
        )
    return ""
