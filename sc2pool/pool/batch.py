"""Checks a batch of actions, and gathers the replies of the envs into one batch.

`check_actions` checks all actions of a batch before the pool sends any of them. An action outside
its space raises an `ActionError`. The error names the action, the space and the env (or the row, if
envs have several rows). But a Box action beyond its bounds is clipped, because SB3 clips the
actions of its own policies too. Numpy checks the whole batch together, because every step needs
this check.

A batch belongs to the caller, so the pool does not keep the batch's objects or use them again.
After a crash, an env's outcome is synthetic: a marked truncation with reward 0 in each row. A
synthetic outcome is never a terminal state, because a crash says nothing about the value of the
states before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

import numpy as np
from gymnasium import spaces

from sc2pool.errors import ActionError
from sc2pool.game.clock import Tick
from sc2pool.pool.instances.seats import FaultReport
from sc2pool.pool.queues.layout import Array, Leaf, SpaceLayout
from sc2pool.pool.queues.slots import Flag, SlotBatch
from sc2pool.pool.queues.trainer_end import TrainerEnd
from sc2pool.protocol import compiled

ARRAY_SPACES = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box)


def check_count(actions: Any, n: int, each: str = "env") -> None:
    """Raise `ActionError` unless there are n actions."""
    try:
        given = len(actions)
    except TypeError:
        raise ActionError(f"expected {n} actions, one per {each}, got {actions!r}") from None
    if given != n:
        raise ActionError(f"expected {n} actions, one per {each}, got {given}")


def is_batch_of(leaf: Leaf, actions: Any, n: int) -> bool:
    """True if `actions` is one array of n actions, with the leaf's shape and dtype."""
    return (
        isinstance(actions, np.ndarray)
        and actions.dtype == leaf.dtype
        and actions.shape == (n, *leaf.shape)
    )


def check_actions(
    space: spaces.Space[Any] | None, actions: Any, numbers: Sequence[int], each: str = "env"
) -> Sequence[Any] | Array:
    """Check the actions and return them; an array space gives one array (len(numbers), *shape).

    Args:
        space: the space of one action, or None to check only the number of actions.
        actions: one action for each of the envs or rows in `numbers`.
        numbers: the indices of the envs or rows, for error messages.
        each: "env" or "row", for error messages.

    Raises:
        ActionError: an action is outside the space.
    """
    if space is None:
        check_count(actions, len(numbers), each)
        return actions  # type: ignore[no-any-return]
    if not isinstance(space, ARRAY_SPACES):
        check_count(actions, len(numbers), each)
        for number, action in zip(numbers, actions, strict=True):
            if not space.contains(action):
                raise ActionError(f"{each} {number}: action {action!r} is not in {space}")
        return list(actions)
    try:
        batch = np.asarray(actions)
    except (ValueError, TypeError, RuntimeError) as error:  # torch raises TypeError or RuntimeError
        check_count(actions, len(numbers), each)
        raise ActionError(f"actions do not form an array for {space}: {error}") from None
    shape = (len(numbers), *(space.shape or ()))
    if batch.shape != shape:
        check_count(actions, len(numbers), each)
        raise ActionError(f"actions for {space} must have shape {shape}, got {batch.shape}")
    if isinstance(space, spaces.Box):
        return _check_box(space, batch, numbers, each)
    if isinstance(space, spaces.MultiBinary) and batch.dtype.kind in "bf":
        # SB3's policies return MultiBinary actions as floats.
        _raise_where((batch != 0) & (batch != 1), space, batch, numbers, each)
        return batch.astype(space.dtype)
    if batch.dtype.kind not in "iu":
        raise ActionError(f"actions for {space} must be integers, got dtype {batch.dtype}")
    fast = compiled.fast
    if fast and isinstance(space, spaces.Discrete):
        first = int(space.start)
        end = first + int(space.n)
        if end <= _MOST_INT64 and fast.all_within(batch, first, end):
            return batch
    first, last = _integer_bounds(space)
    _raise_where((batch < first) | (batch > last), space, batch, numbers, each)
    return batch


_MOST_INT64: Final = 2**63 - 1


def _integer_bounds(space: spaces.Space[Any]) -> tuple[Any, Any]:
    """The first and the last valid integer (not the last plus 1, which may not fit the dtype)."""
    if isinstance(space, spaces.Discrete):
        return space.start, space.start + (space.n - 1)
    if isinstance(space, spaces.MultiDiscrete):
        return space.start, space.start + (space.nvec - 1)
    return 0, 1  # MultiBinary


def _check_box(space: spaces.Box, batch: Array, numbers: Sequence[int], each: str) -> Array:
    if batch.dtype.kind not in "iufb":
        raise ActionError(f"actions for {space} must be numbers, got dtype {batch.dtype}")
    if batch.dtype.kind == "f":
        _raise_where(np.isnan(batch), space, batch, numbers, each)
    if space.low.dtype.kind in "iu" and np.result_type(batch, space.low).kind == "f":
        return _clip_to_integers(batch, space)
    return np.clip(batch, space.low, space.high).astype(space.dtype, copy=False)


def _clip_to_integers(batch: Array, space: spaces.Box) -> Array:
    """Clip without converting a bound to a float, because a large integer may have no exact float.

    Numpy converts even a mix of int64 and uint64 to floats.
    """
    with np.errstate(invalid="ignore"):  # numbers that overflow here are later set to a bound
        whole = batch.astype(space.dtype)
    within = np.where(batch <= space.low, space.low, whole)
    return np.where(batch >= space.high, space.high, within)


def _raise_where(
    bad: Array, space: spaces.Space[Any], batch: Array, numbers: Sequence[int], each: str
) -> None:
    if np.count_nonzero(bad):  # each step runs this test; `any` would take several times as long
        place = int(np.argmax(bad.reshape(len(batch), -1).any(axis=1)))
        action = batch[place].tolist()
        raise ActionError(f"{each} {numbers[place]}: action {action} is not in {space}")


@dataclass(slots=True)
class Outcome:
    """The result of one env's step or reset; all rows of the env end together.

    Attributes:
        rewards, infos: one reward and one info for each row.
        observation: the newest observation, or None if the space has a fixed layout.
        final_observations: each row's last observation, or None if no episode ended.
        reset_infos: each row's reset info, or None if no episode began.
        report: the fault that made the outcome synthetic, or None for a real outcome.
        tick: how late the step's action was, or None if the game does not run in real time.
        episode_return: the sum of the first row's rewards in the episode that ended, or None if no
            episode ended or if a fault cut it short.
    """

    rewards: Sequence[float]
    infos: list[dict[str, Any]]
    terminated: bool = False
    truncated: bool = False
    observation: Any = None
    final_observations: Sequence[Any] | None = None
    reset_infos: Sequence[dict[str, Any]] | None = None
    report: FaultReport | None = None
    tick: Tick | None = None
    episode_return: float | None = None

    @property
    def over(self) -> bool:
        return self.terminated or self.truncated

    @classmethod
    def empty(cls, rows: int) -> Outcome:
        """The outcome of a reset with this many rows: rewards 0 and empty infos."""
        return cls([0.0] * rows, [{} for _ in range(rows)])


@dataclass
class Batch:
    """The results of one step or one reset of some envs.

    A batch of k envs with r rows each has k * r rows: the rows of envs[0], then of envs[1], ….

    Attributes:
        envs: int64 (k,), the indices of the envs, ascending.
        observations: the observations in the space's structure, where each array has the shape (k *
            r, …), or a tuple of k observations if the space has no fixed layout.
        rewards: float64 (k * r,).
        terminated: bool (k * r,), equal for all rows of an env.
        truncated: bool (k * r,), equal for all rows of an env.
        infos: a dict for each row.
        final_observations: for each row, its last observation if its episode ended, else None.
        reset_infos: for each row, its reset info if an episode began, else None.
    """

    envs: Array
    observations: Any
    rewards: Array
    terminated: Array
    truncated: Array
    infos: list[dict[str, Any]]
    final_observations: list[Any]
    reset_infos: list[dict[str, Any] | None]


def real_outcome(queue: TrainerEnd, flags: int) -> Outcome | None:
    """The outcome of a step's reply; None if the reply is plain (has no flag of `Flag.TELLING`)."""
    if not flags & Flag.TELLING:
        return None
    observation, infos = queue.out_of_band()
    outcome = Outcome(
        queue.rewards(),
        infos,
        terminated=bool(flags & Flag.TERMINATED),
        truncated=bool(flags & Flag.TRUNCATED),
        observation=observation,
    )
    if flags & Flag.TICK:
        outcome.tick = tick = queue.tick()
        for info in infos:
            info.update({f"sc2pool.{name}": value for name, value in tick._asdict().items()})
    if outcome.over:
        outcome.episode_return = queue.progress().episode_return
        outcome.final_observations = queue.observations()
    return outcome


def synthetic_outcome(report: FaultReport, queue: TrainerEnd, layout: SpaceLayout) -> Outcome:
    """The outcome of an env whose instance died before it answered."""
    last_observations = queue.observations()
    rows = len(last_observations)
    return Outcome(
        [0.0] * rows,
        [{"sc2pool.synthetic": True, "sc2pool.fault": fault_info(report)} for _ in range(rows)],
        truncated=True,
        observation=None if layout.fixed else queue.observations()[0],
        final_observations=last_observations,
        report=report,
    )


def fault_info(report: FaultReport) -> dict[str, Any]:
    """The fields of a fault for an info dict."""
    return {
        "kind": str(report.fault.kind),
        "phase": str(report.fault.phase),
        "detail": report.fault.detail,
        "instance": report.instance,
        "recovery_s": time.monotonic() - report.at_s,
        "fault_report": report.folder,
    }


class Gatherer:
    def __init__(self, layout: SpaceLayout, n: int, rows: int = 1) -> None:
        self._layout = layout
        self._rows = rows
        self.n_rows = n * rows
        self._every = np.arange(n)
        # The function is chosen here, once, because each step calls it.
        self._whole: Callable[[list[Array]], Any] = (
            itemgetter(0) if layout.is_array else lambda leaves: layout.build(leaves.__getitem__)
        )

    def gather_plain(self, slots: SlotBatch) -> Batch:
        """One batch of all envs, whose replies must all be plain."""
        n = self.n_rows
        return Batch(
            envs=self._every.copy(),
            observations=self._whole(slots.observations()),
            rewards=slots.rewards(),
            terminated=np.zeros(n, np.bool_),
            truncated=np.zeros(n, np.bool_),
            infos=[{} for _ in range(n)],
            final_observations=[None] * n,
            reset_infos=[None] * n,
        )

    def gather(
        self,
        envs: Sequence[int],
        queues: Sequence[TrainerEnd],
        given: Sequence[Outcome | None],
    ) -> Batch:
        """One batch of these envs; `given` has each env's outcome (None for a plain reply)."""
        outcomes = [
            outcome or self._plain(queue) for queue, outcome in zip(queues, given, strict=True)
        ]
        for outcome in outcomes:
            if outcome.report is not None:
                recovery_s = time.monotonic() - outcome.report.at_s
                for info in outcome.infos:
                    info["sc2pool.fault"]["recovery_s"] = recovery_s
        none = [None] * self._rows
        terminated = np.array([outcome.terminated for outcome in outcomes], np.bool_)
        truncated = np.array([outcome.truncated for outcome in outcomes], np.bool_)
        return Batch(
            envs=np.array(envs, np.int64),
            observations=self._observations(queues, outcomes),
            rewards=np.array([one for each in outcomes for one in each.rewards], np.float64),
            terminated=terminated if self._rows == 1 else terminated.repeat(self._rows),
            truncated=truncated if self._rows == 1 else truncated.repeat(self._rows),
            infos=[info for each in outcomes for info in each.infos],
            final_observations=[
                one for each in outcomes for one in each.final_observations or none
            ],
            reset_infos=[info for each in outcomes for info in each.reset_infos or none],
        )

    def _plain(self, queue: TrainerEnd) -> Outcome:
        outcome = Outcome.empty(self._rows)
        outcome.rewards = queue.rewards()
        return outcome

    def newest(self, queues: Sequence[TrainerEnd]) -> Any:
        """The newest observations of all envs, in the structure of a batch of all envs."""
        outcomes = [Outcome.empty(self._rows) for _ in queues]
        if not self._layout.fixed:
            for queue, outcome in zip(queues, outcomes, strict=True):
                (outcome.observation,) = queue.observations()
        return self._observations(queues, outcomes)

    def _observations(self, queues: Sequence[TrainerEnd], outcomes: Sequence[Outcome]) -> Any:
        leaves = self._layout.leaves
        if leaves is None:
            return tuple(outcome.observation for outcome in outcomes)
        arrays = [np.empty((len(queues), *leaf.whole_shape), leaf.dtype) for leaf in leaves]
        for place, queue in enumerate(queues):
            queue.copy_rows(arrays, place)
        n_rows = len(queues) * self._rows
        return self._layout.build(lambda index: arrays[index].reshape(n_rows, *leaves[index].shape))

    def row(self, batch: Batch, row: int) -> Any:
        """A copy of one row's observation in a batch."""
        return self._layout.row_of(batch.observations, row)
