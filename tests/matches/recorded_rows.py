"""A queue pair of several rows that plays a policy in each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sc2pool.tasks.queue_pair import QueuePair, Transition

Policy = Callable[[Any], Any]


class RecordedRows(QueuePair):
    """Keeps every transition.

    Attributes:
        rows: the transitions of each.
    """

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._policies = policies
        self.rows: list[list[Transition]] = [[] for _ in policies]

    async def get_action(self) -> Any:
        (action,) = await self.get_actions()
        return action

    def put(self, transition: Transition) -> None:
        self.put_rows([transition])

    async def get_actions(self) -> Sequence[Any]:
        rows = zip(self._policies, self.rows, strict=True)
        return [policy(transitions[-1].observation) for policy, transitions in rows]

    def put_rows(self, transitions: Sequence[Transition]) -> None:
        for row, transition in zip(self.rows, transitions, strict=True):
            row.append(transition)
