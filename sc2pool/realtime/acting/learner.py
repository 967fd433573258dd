"""What the algorithms that act while they learn have in common, around `learn`."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from stable_baselines3.common.base_class import BaseAlgorithm

from sc2pool.realtime.acting.actor import Actor

A = TypeVar("A", bound=Actor[Any])


class ActsWhileLearning(BaseAlgorithm, Generic[A]):
    """Holds the actor of a running `learn`; put this class before SB3's in the list of bases."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._actor: A | None = None
        super().__init__(*args, **kwargs)

    def _end_actor(self) -> None:
        """Wait until the actor has ended, if there is one.

        Then model and env are as after the `learn` of SB3. If an interrupt ends the wait, the next
        `learn` waits again.
        """
        actor = self._actor
        if actor is None:
            return
        actor.finish()
        self._adopt(actor)
        self._actor = None

    def _adopt(self, actor: A) -> None:
        """Take over what an actor that has ended leaves."""
        if self._last_obs is not None:  # else `set_env` has given the model another env
            self._last_obs = actor.observations

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_actor"]
