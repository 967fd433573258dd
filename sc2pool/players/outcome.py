"""How an episode came out, in the last info of each row: against an opponent, or untold.

Rule: an episode ends for both sides at once; what one of them has won the other has lost.
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
"""Names of a game's results in an info; every other result is undecided."""


def with_result(
    last: Transition,
    result: int | None,
    opponent: str | None,
    *,
    untold_end: str = "",
    contradiction: str = "",
) -> Transition:
    """An episode's last transition, whose info says how it came out.

    Args:
        result: the own `Result`; None if the game continued, or never told it.
        opponent: the name of who played the other side; None if a learner did, or nobody.
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
    """True if this transition ends the episode; a side that decides by itself has none."""
    return transition is not None and (transition.terminated or transition.truncated)


def as_one_episode(
    transitions: Sequence[Transition | None],
    results: Sequence[int | None],
    opponent: str | None,
    *,
    untold_end: str = "",
    contradiction: str = "",
) -> list[Transition | None]:
    """The last transitions of both sides, which agree on the end, and say how it came out.

    Args:
        transitions: of which at least one ends the episode; None for a side that has none.
        results: each side's `Result`; None if the game continued.
        opponent: the name of who played the learner's opponent; None if a learner did.
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
    """The opponent's name of the game's own player."""
    return f"computer-{sc_pb.Difficulty.Name(computer.difficulty)}"
