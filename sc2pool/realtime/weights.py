"""Weights on their way from the learner to the actor: versioned, and swapped whole.

The learner publishes a copy of all parameters and buffers after each update; the actor loads the
newest between two of its steps. Rule: what was published is never written again, so the actor
never acts with a half of one version and a half of the next.
"""

from __future__ import annotations

from typing import NamedTuple

import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy


class Version(NamedTuple):
    """The weights after so many updates."""

    number: int
    state: dict[str, th.Tensor]


class Weights:
    """Where the learner leaves the newest version, and the actor finds it."""

    def __init__(self, policy: ActorCriticPolicy) -> None:
        self.newest = _copy(0, policy)

    def publish(self, policy: ActorCriticPolicy) -> None:
        """Make this policy's weights the newest version."""
        self.newest = _copy(self.newest.number + 1, policy)


def _copy(number: int, policy: ActorCriticPolicy) -> Version:
    state = {name: value.detach().clone() for name, value in policy.state_dict().items()}
    if policy.device.type == "cuda":
        # The actor reads them from a stream of its own, which does not wait for this one.
        th.cuda.current_stream(policy.device).synchronize()
    return Version(number, state)
