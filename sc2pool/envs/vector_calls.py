"""The part of gymnasium's vector face that speaks to the envs themselves: methods and attributes.

Rules are those of `AsyncVectorEnv.call`: a method is called and an attribute is got; results are a
tuple in the order of the envs. Other than there, what a method raises ends no env.
"""

from __future__ import annotations

from typing import Any

from gymnasium import logger
from gymnasium.vector import VectorEnv
from gymnasium.vector.async_vector_env import AsyncState

from sc2pool.envs.vector_pending import Pending
from sc2pool.pool.ipc.layout import Array
from sc2pool.pool.pool import Pool

_NOT_BY_CALL = ("reset", "step", "close", "_setattr", "_check_spaces")


class EnvCalls(VectorEnv[Any, Any, Array]):
    """See `SC2VectorEnv`, which sets the attributes below."""

    pool: Pool
    _pending: Pending
    _is_task: bool
    _call: tuple[str, tuple[Any, ...], dict[str, Any]] = ("", (), {})

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each env, or get an attribute.

        Returns:
            A result per env. `action_masks` of a task is answered from its newest observation,
            without asking it: bool, (n,) for `Discrete(n)`, (sum(nvec),) for `MultiDiscrete(nvec)`.

        Raises:
            Exception: what an env's method raised, or AttributeError; the envs go on.
            ValueError: a method that has its own here.
        """
        self.call_async(name, *args, **kwargs)
        return self.call_wait()

    def call_async(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        """Note a call, which is made when `call_wait` waits for it."""
        self._pending.check_idle("call_async")
        if name in _NOT_BY_CALL:
            raise ValueError(
                f"Trying to call function `{name}` with `call`, use `{name}` directly instead."
            )
        self._call = (name, args, kwargs)
        self._pending.state = AsyncState.WAITING_CALL

    def call_wait(self, timeout: float | None = None) -> tuple[Any, ...]:
        """The results of the call, in the order of the envs.

        Raises:
            multiprocessing.TimeoutError: not all answered within `timeout` seconds.
            NoAsyncCallError: none was begun.
        """
        self._pending.check_waiting(AsyncState.WAITING_CALL)
        self._pending.state = AsyncState.DEFAULT
        if self._call[0] == "action_masks":  # they came with the observations
            masks = [self.pool.action_mask(env) for env in range(self.num_envs)]
            if all(mask is not None for mask in masks):
                return tuple(masks)
        with self._pending.gymnasiums_errors():
            everyone = range(self.num_envs)
            return tuple(self.pool.call(everyone, "call", *self._call, timeout_s=timeout))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """The attribute of each env; a method is called, as by `AsyncVectorEnv`.

        Raises:
            AttributeError: an env has none of that name.
        """
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of each env; it survives resets and replaced instances.

        Args:
            name: of the attribute.
            values: a list or tuple of one for each env, or one for all.

        Raises:
            ValueError: a list of another length.
        """
        self._pending.check_open()
        one_each = isinstance(values, list | tuple)
        if one_each and len(values) != self.num_envs:
            raise ValueError(
                "Values must be a list or tuple with length equal to the number of environments. "
                f"Got `{len(values)}` values for {self.num_envs} environments."
            )
        self._pending.check_idle("set_attr")
        with self._pending.gymnasiums_errors():
            if not one_each:
                self.pool.set_attr(range(self.num_envs), name, values)
                return
            for env, value in enumerate(values):
                self.pool.set_attr([env], name, value)

    @property  # type: ignore[misc]  # nobody sets those of n envs
    def np_random(self) -> Any:
        """The random generators of the user's envs; for tasks, one that nothing else uses."""
        return super().np_random if self._is_task else self.get_attr("np_random")

    @property
    def np_random_seed(self) -> Any:
        """The seeds of `np_random`."""
        return super().np_random_seed if self._is_task else self.get_attr("np_random_seed")

    def render(self) -> tuple[Any, ...] | None:
        """What each env renders; None, with a warning, where a task renders nothing.

        Returns:
            For tasks a frame per env, uint8 (480, 640, 3), unless they draw their own.

        Raises:
            ResetNeeded: no episode of a task has begun.
        """
        if self._is_task and self.render_mode is None:
            logger.warn("render() was called, but render_mode is None")
            return None
        if not self._is_task:
            return self.call("render")
        self._pending.check_idle("render")
        with self._pending.gymnasiums_errors():
            return tuple(self.pool.render(range(self.num_envs)))
