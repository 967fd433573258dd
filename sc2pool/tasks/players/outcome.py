"""How an episode against an opponent came out, in the last info of each row.

Rule: an episode ends for both sides at once; what one of them has won the other has lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import Computer
from sc2pool.tasks.opponents.results import OPPONENT, RESULT
from sc2pool.tasks.queue_pair import Transition

_NAMES: Mapping[int | None, str] = {
    sc_pb.Victory: "win",
    sc_pb.Defeat: "loss",
    sc_pb.Tie: "tie",
}
"""Names of a game's results in an info; every other result is undecided."""


def with_result(last: Transition, result: int | None, opponent: str | None) -> Transition:
    """An episode's last transition, whose info says how it came out.

    Args:
        result: the own `Result`; None if the game went on.
        opponent: the name of who played the other side; None if a learner did.
    """
    info = {**last.info, RESULT: _NAMES.get(result, "undecided")}
    if opponent is not None:
        info[OPPONENT] = opponent
    return last._replace(info=info)


def is_last(transition: Transition | None) -> bool:
    """True if this transition ends the episode; a side that decides by itself has none."""
    return transition is not None and (transition.terminated or transition.truncated)


def as_one_episode(
    transitions: Sequence[Transition | None], results: Sequence[int | None], opponent: str | None
) -> list[Transition | None]:
    """The last transitions of both sides, which agree on the end, and say how it came out.

    Args:
        transitions: of which at least one ends the episode; None for a side that has none.
        results: each side's `Result`; None if the game went on.
        opponent: the name of who played the learner's opponent; None if a learner did.
    """
    present = [one for one in transitions if one is not None]
    terminated = any(one.terminated for one in present)
    truncated = any(one.truncated for one in present)
    return [
        one
        and with_result(one, result, opponent)._replace(terminated=terminated, truncated=truncated)
        for one, result in zip(transitions, results, strict=True)
    ]


def name_of(computer: Computer) -> str:
    """The opponent's name of the game's own player."""
    return f"computer-{sc_pb.Difficulty.Name(computer.difficulty)}"
