"""The common base class of the algorithms that act while they learn."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from gymnasium.vector.utils import batch_space
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BasePolicy

from sc2pool.realtime.acting.actor import Actor
from sc2pool.realtime.acting.late import LateActions, OnLate, check_late_actions

A = TypeVar("A", bound=Actor[Any])


@contextmanager
def short_collections() -> Iterator[None]:
    """Exempt all objects that exist now from garbage collection in the block.

    Torch and SB3 alone bring 200,000 objects. A collection that looks at all of them stops every
    thread for 0.1 s or longer, which is more than a decision period of most games.
    """
    theirs = gc.get_freeze_count()  # the program has frozen its objects itself
    if not theirs:
        gc.collect()
        gc.freeze()
    try:
        yield
    finally:
        if not theirs:
            gc.unfreeze()


class ActsWhileLearning(BaseAlgorithm, Generic[A]):
    """Holds the actor of a running `learn`; put this class before SB3's in the list of bases.

    Args:
        args: see SB3's class.
        late_after_s: how long the envs may wait for the policy's actions, in seconds. Then they get
            late actions, and the policy's actions as soon as these are there. Choose less than a
            period of the game, which must be kept by the env's `step`. None: the envs wait for the
            policy.
        on_late: the late actions. `"repeat"` plays the last actions of the policy once more. An
            action of the action space, for example a no-op, is played by all envs. A function gets
            the last actions of the policy, as the envs received them, with a first axis of n, and
            the number of late steps since then, from 1 on. It returns the actions in the same
            shape.
        kwargs: see SB3's class.

    Raises:
        ConfigError: invalid `late_after_s` or `on_late`.
    """

    def __init__(
        self,
        *args: Any,
        late_after_s: float | None = None,
        on_late: OnLate = "repeat",
        **kwargs: Any,
    ) -> None:
        self.late_after_s = late_after_s
        self.on_late = on_late
        self._actor: A | None = None
        check_late_actions(late_after_s, on_late, None)
        super().__init__(*args, **kwargs)
        check_late_actions(late_after_s, on_late, getattr(self, "action_space", None))

    def _warm_up(self, policy: BasePolicy) -> None:
        """Let the actor's policy choose once, because the first choice of a policy takes longer.

        Call it before the envs are reset, because a game in real time would not wait.
        """
        policy.predict(
            batch_space(self.observation_space, self.n_envs).sample(), deterministic=True
        )

    def _late_actions(self) -> LateActions | None:
        if self.late_after_s is None:
            return None
        return LateActions(self.late_after_s, self.on_late)

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
        """Take over the observations of an actor that has ended."""
        if self._last_obs is not None:  # else `set_env` has given the model another env
            self._last_obs = actor.observations

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_actor"]
