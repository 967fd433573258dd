"""Writes an episode's result into the last info of each row.

Rule: an episode ends for both sides at the same time, and their results are opposite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import Computer
from sc2pool.tasks.opponents.results import CONTRADICTION, OPPONENT, RESULT, UNTOLD_END
from sc2pool.tasks.queue_pair import Transition

_NAMES: Mapping[int | None, str] = {
    sc_pb.Victory: "win",
    sc_pb.Defeat: "loss",
    sc_pb.Tie: "tie",
}
"""Names of a game's results in an info. Every other result is "undecided"."""


def with_result(
    last: Transition,
    result: int | None,
    opponent: str | None,
    *,
    untold_end: str = "",
    contradiction: str = "",
) -> Transition:
    """An episode's last transition, with the result in its info.

    Args:
        last: the last transition.
        result: the own `Result`. None if the game continued, or did not report it.
        opponent: the opponent's name. None against a learner, or without an opponent.
        untold_end: see `Game`.
        contradiction: see `Match`.
    """
    info = {**last.info, RESULT: _NAMES.get(result, "undecided")}
    for key, value in (
        (OPPONENT, opponent),
        (UNTOLD_END, untold_end),
        (CONTRADICTION, contradiction),
    ):
        if value:
            info[key] = value
    return last._replace(info=info)


def is_last(transition: Transition | None) -> bool:
    """True if this transition ends the episode. It is None for a side that decides by itself."""
    return transition is not None and (transition.terminated or transition.truncated)


def as_one_episode(
    transitions: Sequence[Transition | None],
    results: Sequence[int | None],
    opponent: str | None,
    *,
    untold_end: str = "",
    contradiction: str = "",
) -> list[Transition | None]:
    """The last transitions of both sides, with the same end flags and with the results.

    Args:
        transitions: the newest transition of each side, or None for a side without transitions.
            At least one ends the episode.
        results: each side's `Result`. None if the game continued.
        opponent: the opponent's name. None if a learner played the other side.
        untold_end, contradiction: see `with_result`.
    """
    present = [one for one in transitions if one is not None]
    terminated = any(one.terminated for one in present)
    truncated = any(one.truncated for one in present)
    told = partial(
        with_result, opponent=opponent, untold_end=untold_end, contradiction=contradiction
    )
    return [
        one and told(one, result)._replace(terminated=terminated, truncated=truncated)
        for one, result in zip(transitions, results, strict=True)
    ]


def name_of(computer: Computer) -> str:
    """The name of a computer opponent."""
    return f"computer-{sc_pb.Difficulty.Name(computer.difficulty)}"
