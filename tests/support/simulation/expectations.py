"""Knows which rows a trainer may get from each env: the next step, a new episode, a fault.

The trainer notes its requests here (`sent`, `begins`, …), and `check` compares the pool's answers
with the requests. A row says where it comes from (see `worker`), so a lost, doubled, swapped or
stale row is noticed. After an interrupt the next rows are not known until a reset succeeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sc2pool.pool.batch import Batch
from sc2pool.pool.episodes import episode_seed
from tests.support.simulation.schedule import Schedule
from tests.support.simulation.worker import FIELDS, WHOLE
from tests.support.simulation.world import World

Row = tuple[int, ...]

INSTANCE, NUMBER, STEP, ACTION, MARK, ATTRIBUTE, SEED, LAST = range(len(FIELDS))
SEED_OF_BOOK = 7
NEW, IDLE, OVER, SENT, BEGUN = "new", "idle", "over", "sent", "begun"
NO_ROW = (-1,) * len(FIELDS)
_SEEDS: dict[int, int] = {}


class Expectations:
    """The expectations of one trainer.

    Attributes:
        stages: The stage of each env's step, as the trainer sees it.
        rows: The newest row of each env.
        certain: True if the next rows are known; False after an interrupt.
        transitions: The number of transitions so far.
    """

    def __init__(self, schedule: Schedule, world: World) -> None:
        self._schedule = schedule
        self._world = world
        n = schedule.n
        self.stages = [NEW] * n
        self.rows: list[Row | None] = [None] * n
        self.certain = True
        self.transitions = 0
        self._actions = [0] * n
        self._marks = [0] * n
        self._attributes: list[int | None] = [0] * n
        self._attributes_sent: list[int | None] = [0] * n
        self._begun: set[Any] = set()
        self._faults_shown: set[int] = set()
        self._next: int | None = 0
        self._dealt_in_order = schedule.one_book and (schedule.seeded or not schedule.spares)

    # Requests of the trainer.

    @property
    def pending(self) -> int:
        return sum(stage in (SENT, BEGUN) for stage in self.stages)

    def busy(self, envs: Sequence[int]) -> bool:
        """True if the trainer has not yet received the next row of one of these envs."""
        return any(self.stages[env] in (SENT, BEGUN) for env in envs)

    def sent(self, envs: Sequence[int], actions: Sequence[int]) -> None:
        for env, action in zip(envs, actions, strict=True):
            self.stages[env] = SENT
            self._actions[env] = action
            self._attributes_sent[env] = self._attributes[env]

    def begins(self, envs: Sequence[int], mark: int) -> None:
        """The trainer has requested episodes with this option."""
        for env in envs:
            self.stages[env] = BEGUN
            self._marks[env] = mark

    def everything_begins(self, mark: int) -> None:
        """All envs were reset, so the next rows are known again."""
        if not self.certain or self.pending:
            self.any_order()  # the numbers of dropped episodes are not used again
        self.certain = True
        self.begins(range(len(self.stages)), mark)

    def any_order(self) -> None:
        """From now on the order of episodes depends on which env is faster."""
        self._next = None

    def new_book(self) -> None:
        self._begun.clear()
        self._next = 0
        if self.pending:
            self.certain = False  # rows may have old or new episode numbers

    def attribute_set(self, envs: Sequence[int], value: int | None) -> None:
        """An attribute was set to this value; None if the value is not known."""
        for env in envs:
            self._attributes[env] = value
            if self.stages[env] in (SENT, BEGUN):
                self._attributes_sent[env] = None

    # Answers of the pool.

    def check(self, batch: Batch, wanted: int) -> None:
        """Check a batch of at least this many envs.

        Raises:
            Violation: A row is not the expected row.
        """
        if len(batch.envs) < wanted and self.certain:
            raise self._world.broken(f"{len(batch.envs)} envs come back, not {wanted}")
        for place, number in enumerate(batch.envs):
            env, row = int(number), as_row(batch.observations[place])
            self.transitions += self.stages[env] == SENT
            if self.certain:
                self._check_env(batch, place, env, row)
            elif row[LAST] != WHOLE:
                raise self._world.broken(f"env {env} is shown {row}")
            self.rows[env] = row
            over = batch.terminated[place] or batch.truncated[place]
            self.stages[env] = OVER if over and batch.reset_infos[place] is None else IDLE
        scribble(list(vars(batch).values()))

    def check_newest(self, observations: Sequence[Any]) -> None:
        """Check the newest observations of all envs.

        Raises:
            Violation: An observation differs from the newest row of its env.
        """
        newest = [as_row(observation) for observation in observations]
        if newest != self.rows:
            raise self._world.broken(f"the newest observations are {newest}, not {self.rows}")
        scribble(observations)

    def _check_env(self, batch: Batch, place: int, env: int, row: Row) -> None:
        world = self._world
        stage, info, reset_info = self.stages[env], batch.infos[place], batch.reset_infos[place]
        over = bool(batch.terminated[place] or batch.truncated[place])
        if stage == BEGUN:
            if over or batch.rewards[place] or info or reset_info is None:
                raise world.broken(f"env {env}: the begin of an episode is {batch}")
            self._check_fault(env, reset_info)
            self._check_first(env, row, self._marks[env])
            return
        if stage != SENT:
            raise world.broken(f"env {env}: a transition that no action asked for: {batch}")
        final = batch.final_observations[place]
        last = row if final is None else as_row(final)
        if (final is not None) != over:
            raise world.broken(f"env {env}: over or not? {batch}")
        if info.get("sc2pool.synthetic"):
            self._check_fault(env, info)
            if not batch.truncated[place] or batch.rewards[place] or last != self.rows[env]:
                raise world.broken(f"env {env}: synthetic, not after {self.rows[env]}: {batch}")
        else:
            self._check_step(env, last, float(batch.rewards[place]))
            if info.get("told", last) != last:
                raise world.broken(f"env {env}: another step's info: {info}")
        if over and self._schedule.autoreset:
            if reset_info is None:
                raise world.broken(f"env {env}: no next episode has begun: {batch}")
            self._check_fault(env, reset_info)
            self._check_first(env, row, 0)
        elif over and row != last:
            raise world.broken(f"env {env}: shown {row}, not {last}")

    def _check_step(self, env: int, row: Row, reward: float) -> None:
        before, action = self.rows[env], self._actions[env]
        attribute = self._attributes_sent[env]
        assert before is not None, "an env that is certain has been shown"
        if (
            row[:STEP] != before[:STEP]
            or row[STEP:MARK] != (before[STEP] + 1, action)
            or (row[MARK], row[SEED], row[LAST]) != (before[MARK], before[SEED], WHOLE)
            or reward != action
            or (attribute is not None and row[ATTRIBUTE] != attribute)
        ):
            raise self._world.broken(
                f"env {env}: {row}, reward {reward:g} follows {before} on action {action}, "
                f"attribute {attribute}"
            )

    def _check_first(self, env: int, row: Row, mark: int) -> None:
        world, schedule, number = self._world, self._schedule, row[NUMBER]
        if row[LAST] != WHOLE or row[STEP] or row[ACTION]:
            raise world.broken(f"env {env}: {row} is no begin of an episode")
        if row[MARK] != mark:
            raise world.broken(f"env {env}: {row} has not the options {mark}")
        if schedule.one_book and schedule.seeded and row[SEED] != seed_of(number):
            raise world.broken(f"env {env}: {row} has another episode's seed")
        if self._next is not None and self._dealt_in_order:
            if number != self._next:
                raise world.broken(f"env {env}: episode {number} begins, not {self._next}")
            self._next += 1
        episode = number if schedule.one_book else (env, number)
        if episode in self._begun:
            raise world.broken(f"env {env}: episode {number} is dealt twice")
        self._begun.add(episode)

    def _check_fault(self, env: int, info: dict[str, Any]) -> None:
        fault = info.get("sc2pool.fault")
        if fault is None:
            return
        if not self._world.harm:
            raise self._world.broken(f"env {env}: a fault of which there was none: {fault}")
        if fault["instance"] in self._faults_shown:
            raise self._world.broken(f"env {env}: the same fault twice: {fault}")
        self._faults_shown.add(fault["instance"])


def scribble(value: Any) -> None:
    """Overwrite all arrays and dicts that the pool returned, because a trainer may change them."""
    if isinstance(value, np.ndarray):
        value[...] = np.array(-7).astype(value.dtype)
    elif isinstance(value, dict):
        for part in value.values():
            scribble(part)
        value["scribbled"] = True
    elif isinstance(value, list | tuple):
        for part in value:
            scribble(part)


def as_row(observation: Any) -> Row:
    return NO_ROW if observation is None else tuple(observation.tolist())


def seed_of(number: int) -> int:
    """The seed of an episode that the pool numbered."""
    if number not in _SEEDS:
        _SEEDS[number] = episode_seed(SEED_OF_BOOK, number)
    return _SEEDS[number]
