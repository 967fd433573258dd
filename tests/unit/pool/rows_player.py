"""A player of several rows without a game, whose transitions tell exactly what they answer.

Row r of step s in episode e shows (e, r, s, the row's action), in the structure of its space, so a
test knows every value. It travels to the workers by value.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import numpy as np
from gymnasium import spaces

from sc2pool.tasks.player import Player
from sc2pool.tasks.queue_pair import Transition

cloudpickle.register_pickle_by_value(sys.modules[__name__])

MOST = 1000
BOX = spaces.Box(-1, MOST, (4,), np.float64)
DISCRETE = spaces.Discrete(MOST * MOST)
DICT = spaces.Dict(
    {
        "who": spaces.Tuple((spaces.Discrete(MOST), spaces.Discrete(MOST))),
        "where": spaces.Box(-1, MOST, (2, 2), np.float32),
        "bits": spaces.MultiBinary(4),
    }
)
ACTION = spaces.Discrete(MOST)
ACTIONS = spaces.Box(-1, MOST, (2,), np.float32)
ACTION_DICT = spaces.Dict({"kind": spaces.Discrete(MOST), "at": spaces.Box(-1, MOST, (2,))})


def shown(space: spaces.Space, episode: int, row: int, step: int, action: int) -> Any:
    """The observation of this row."""
    if space == BOX:
        return np.array([episode, row, step, action], np.float64)
    if space == DISCRETE:
        return np.int64(row * MOST + action)
    return {
        "who": (np.int64(episode), np.int64(row)),
        "where": np.array([[episode, row], [step, action]], np.float32),
        "bits": np.array([row % 2, row > 1, step % 2, action % 2], np.int8),
    }


def reward_of(row: int, step: int, action: int) -> float:
    """The reward of this row."""
    return row + step / 8 + action / 1024


def mask_of(row: int, step: int) -> np.ndarray:
    """The action mask of this row."""
    return np.arange(MOST) % (row + step + 2) == 0


def number_in(action: Any) -> int:
    """The number that an action of any of the action spaces holds."""
    if isinstance(action, dict):
        return int(action["kind"])
    return int(np.asarray(action).flat[0])


@dataclass
class Seat:
    """What `get_attr` and similar calls of one row act on."""

    row: int
    level: int = 0

    def twice(self, number: int) -> tuple[int, int]:
        return self.row, 2 * number


@dataclass(frozen=True)
class RowsSpec:
    """A player of as many rows.

    Attributes:
        rows: how many.
        observation_space: one of those above.
        action_space: one of those above.
        length: how many steps an episode has.
        masked: whether transitions have masks.
    """

    rows: int = 2
    observation_space: spaces.Space = field(default_factory=lambda: BOX)
    action_space: spaces.Space = field(default_factory=lambda: ACTION)
    length: int = 5
    masked: bool = False

    def player(self) -> Player:
        return RowsPlayer(self)


class RowsPlayer(Player):
    """Plays episodes of a fixed length: terminated if its number is even, else truncated."""

    strict = True
    metadata = {"render_modes": []}  # noqa: RUF012
    render_mode = None

    def __init__(self, spec: RowsSpec) -> None:
        self._spec = spec
        self.rows = spec.rows
        self.observation_space = spec.observation_space
        self.action_space = spec.action_space
        self._seats = [Seat(row) for row in range(spec.rows)]

    async def play(self, episode, pair) -> None:
        for seat, attributes in zip(self._seats, self.attributes, strict=True):
            vars(seat).update(attributes)
        actions = [0] * self.rows
        pair.put_rows([self._transition(episode.number, row, 0, 0) for row in range(self.rows)])
        for step in range(1, self._spec.length + 1):
            actions = [number_in(action) for action in await pair.get_actions()]
            transitions = [
                self._transition(episode.number, row, step, action)
                for row, action in enumerate(actions)
            ]
            pair.put_rows(transitions)

    def _transition(self, episode: int, row: int, step: int, action: int) -> Transition:
        spec = self._spec
        observation = shown(spec.observation_space, episode, row, step, action)
        over = step == spec.length
        ends = [over and episode % 2 == 0, over and episode % 2 == 1]
        info = {"row": row, "step": step} if step % 3 == 0 and row == spec.rows - 1 else {}
        mask = mask_of(row, step) if spec.masked else None
        reward = 0.0 if step == 0 else reward_of(row, step, action)
        return Transition(observation, reward, *ends, info, mask)

    def target(self, row: int = 0) -> Any:
        return self._seats[row]
