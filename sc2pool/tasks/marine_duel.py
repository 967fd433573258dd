"""MarineDuel: five marines fight five marines, and learners can lead both sides.

Concentrated fire and the rescue of hurt marines decide the duel. Each side sees the map from its
own end (`facing`), so the same policy can play either side. The duel is zero-sum, except that a tie
counts as a defeat for both sides.

StarCraft II has no map for MarineDuel; the stand-in has one: `sc2standin/maps/MarineDuel.SC2Map`.
The marines begin in two columns at the two ends of an open field, and each side gets one of the
ends at random. A side loses when it has no marines left. After 1920 loops the duel is a tie.
"""

from __future__ import annotations

from itertools import repeat
from typing import ClassVar, Final

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import commands
from sc2pool.commands import Commands
from sc2pool.tasks.minigames.geometry import (
    N_DIRECTIONS,
    PlayableArea,
    nearest_first,
    rescue,
    walks,
)
from sc2pool.tasks.task import Task
from sc2pool.units import ENEMY, Floats, Kind, Units, distances, health, select, weapon_cooldown

ENEMY_MARINES = Kind("Marine", ENEMY)
OWN_MARINES = Kind("Marine")

FOCUS_NEAREST = 0
FOCUS_WEAKEST = 1
ATTACK_NEAREST = 2
RESCUE_FOREMOST = 3
HOLD = 4
FIRST_WALK = 5
N_ACTIONS = FIRST_WALK + N_DIRECTIONS

N_MARINES = 5
MARINE_HEALTH = 45.0
COOLDOWN_LOOPS = 15.0
"""In game loops: a little more than the time between two shots of a marine."""
HURT = 18.0
"""A marine with at most this many hit points dies after three more hits."""
NEAR = 10.0
"""The length that counts as 1 for observed distances in a fight, in cells."""
VALUES_PER_MARINE = 5
FIRST_OWN = 7
FIRST_ENEMY = FIRST_OWN + N_MARINES * VALUES_PER_MARINE
OBSERVATION_SIZE = FIRST_ENEMY + N_MARINES * VALUES_PER_MARINE
_BONUS: Final[dict[int | None, float]] = {sc_pb.Victory: 1.0, sc_pb.Defeat: -1.0, sc_pb.Tie: -1.0}
"""A tie costs both sides as much as a defeat. If a tie cost nothing, two learners could learn to
flee from each other for the whole duel."""
_TURNED = tuple((N_DIRECTIONS // 2 - k) % N_DIRECTIONS for k in range(N_DIRECTIONS))
"""For each direction's index, the index of the direction with left and right exchanged."""


class MarineDuel(Task):
    """Lead five marines as one group against another learner, or an opponent.

    Action space: `Discrete(13)`:

    * Action 0: all attack the enemy nearest to the group's centre.
    * Action 1: all attack the enemy with the fewest hit points (of several, the nearest).
    * Action 2: each marine attacks the enemy nearest to it.
    * Action 3: the marine nearest to the enemies walks away if three more hits would kill it; the
      others attack as in action 0.
    * Action 4: all stand still, and shoot at enemies in range.
    * Actions 5 to 12: all walk. Action 5 is ahead, towards the enemy's end; the next ones follow in
      steps of 45°, counter-clockwise in this side's view (see `facing`).

    Actions 0 to 3 are masked, and do nothing, if one side has no marines. Action 3 is also masked,
    and acts like action 0, if the marine nearest to the enemies is unhurt or is the only one.

    The observation space is `Box(-1, 1, (57,), float32)`, described at `observe`.

    Reward: the change of (own strength - the enemy's strength). A side's strength is half its share
    of living marines plus half its share of hit points. A win adds 1; a defeat or tie subtracts 1.
    """

    map_name: ClassVar[str] = "MarineDuel"
    players: ClassVar[int] = 2
    max_loops: ClassVar[int | None] = 1920
    disable_fog: ClassVar[bool] = True
    action_space = spaces.Discrete(N_ACTIONS)
    observation_space = spaces.Box(-1.0, 1.0, (OBSERVATION_SIZE,), np.float32)

    area: PlayableArea
    facing: float = 1.0
    """1 if the own marines began on the left, -1 (a mirrored view) if they began on the right."""
    own: Units
    enemies: Units
    own_health: Floats
    enemy_health: Floats
    _advantage: float = 0.0
    _gained: float = 0.0

    @staticmethod
    def scripted(observation: NDArray[np.float32]) -> int:
        """The action of a scripted player: all marines shoot at the nearest enemy.

        The player won 100 of 100 games against random actions, and 34 of 100 against a player that
        always shoots at the weakest enemy.
        """
        return FOCUS_NEAREST if observation[1] > 0 else HOLD

    def on_start(self) -> None:
        self.area = PlayableArea.of(self.game_info)
        (own,) = select(self.lazy_observation, OWN_MARINES)
        if len(own) and own.positions[:, 0].mean() > self.area.centre[0]:
            self.facing = -1.0

    def observe(self) -> NDArray[np.float32]:
        """Observe the field from this side's end.

        Returns:
            (57,) float32, each in [-1, 1]; zeros stand for missing marines. x grows towards the
            enemy's end. Places are relative to the centre of the own marines, in tens of cells.

            Values 0 and 1: the number of own and of enemy marines / 5. Value 2: the loop / 1920.
            Values 3 and 4: the position (x, y) of the own marines' centre relative to the area's
            centre, in halves of the area's longer side.
            Values 5 and 6: the place (x, y) of the enemy marines' centre.
            Values 7 to 31: five values for each own marine: its place (x, y), its hit points / 45,
            the loops until its weapon is ready / 15, and its distance to the nearest enemy in tens
            of cells. The marine nearest to the enemy's centre is first: enemies shoot at it first.
            Values 32 to 56: the same five values for each enemy marine, with its distance to the
            nearest own marine. The enemy marine nearest to the own marines' centre is first.
        """
        own, enemies = select(self.lazy_observation, OWN_MARINES, ENEMY_MARINES)
        self.own, self.enemies = own, enemies
        self.own_health, self.enemy_health = health(own), health(enemies)
        before, self._advantage = self._advantage, self._strengths()
        self._gained = self._advantage - before
        vector = np.zeros(OBSERVATION_SIZE, np.float32)
        vector[:2] = len(own) / N_MARINES, len(enemies) / N_MARINES
        if self.max_loops is not None:
            vector[2] = self.lazy_observation.game_loop / self.max_loops
        if not len(own):
            return vector.clip(-1.0, 1.0, out=vector)
        centre = own.positions.mean(axis=0)
        x, y = self.area.relative(*centre.tolist())
        vector[3:5] = self.facing * x, y
        apart = distances(own.positions, enemies.positions)
        of_own = self._described(own, centre, apart)
        if len(enemies):
            vector[5:7] = self._relative(enemies.positions.mean(axis=0) - centre)
            of_enemies = self._described(enemies, centre, apart.T)
            _put(of_enemies[nearest_first(enemies, own)], vector[FIRST_ENEMY:])
            of_own = of_own[nearest_first(own, enemies)]
        _put(of_own, vector[FIRST_OWN:FIRST_ENEMY])
        return vector.clip(-1.0, 1.0, out=vector)

    def reward(self) -> float:
        return self._gained + _BONUS.get(self.game.result, 0.0)

    def act(self, action: int) -> Commands:
        own, enemies = self.own, self.enemies
        if not len(own):
            return []
        if action >= FIRST_WALK:
            direction = int(action) - FIRST_WALK
            on_map = direction if self.facing > 0 else _TURNED[direction]
            # All marines walk in the same direction, so the group keeps its shape.
            return walks(own, repeat(on_map), self.area)
        if action == HOLD:
            return [commands.hold_position(own.tags)]
        return self._attack(action) if len(enemies) else []

    def _attack(self, action: int) -> Commands:
        own, enemies = self.own, self.enemies
        if action == ATTACK_NEAREST:
            nearest = distances(own.positions, enemies.positions).argmin(axis=1)
            targets = [enemies.tags[i] for i in nearest]
            return [commands.attack([tag], to) for tag, to in zip(own.tags, targets, strict=True)]
        by_distance = nearest_first(enemies, own)
        if action == FOCUS_WEAKEST:
            weakest = by_distance[self.enemy_health[by_distance].argmin()]
            return [commands.attack(own.tags, enemies.tags[weakest])]
        nearest_enemy = enemies.tags[by_distance[0]]
        if action == RESCUE_FOREMOST and self._foremost_is_hurt():
            foremost = int(nearest_first(own, enemies)[0])
            return rescue(own, [foremost], enemies, nearest_enemy, self.area)
        return [commands.attack(own.tags, nearest_enemy)]

    def action_masks(self) -> NDArray[np.bool_]:
        masks = np.ones(N_ACTIONS, np.bool_)
        masks[:HOLD] = len(self.own) > 0 and len(self.enemies) > 0
        masks[RESCUE_FOREMOST] &= self._foremost_is_hurt()
        return masks

    def _foremost_is_hurt(self) -> bool:
        """True if three hits would kill the foremost own marine and this side has other marines."""
        if len(self.own) < 2 or not len(self.enemies):
            return False
        return bool(self.own_health[nearest_first(self.own, self.enemies)[0]] <= HURT)

    def _strengths(self) -> float:
        """This side's strength minus the enemy's strength, from -1 to 1."""
        more = (len(self.own) - len(self.enemies)) / N_MARINES
        healthier = self.own_health.sum() - self.enemy_health.sum()
        return float(more + healthier / (N_MARINES * MARINE_HEALTH)) / 2

    def _relative(self, offsets: Floats) -> Floats:
        """Convert offsets on the map, in cells, to this side's view, in tens of cells."""
        return offsets * (self.facing / NEAR, 1 / NEAR)

    def _described(self, units: Units, centre: Floats, to_others: Floats) -> NDArray[np.float32]:
        """The values of one side's marines, a row for each, in the order of their tags.

        `centre` is the own marines' centre. `to_others` has distances to the other side's marines.
        """
        rows = np.zeros((len(units), VALUES_PER_MARINE), np.float32)
        rows[:, :2] = self._relative(units.positions - centre)
        rows[:, 2] = health(units) / MARINE_HEALTH
        rows[:, 3] = weapon_cooldown(units) / COOLDOWN_LOOPS
        if to_others.shape[1]:
            rows[:, 4] = to_others.min(axis=1) / NEAR
        return rows


def _put(rows: NDArray[np.float32], numbers: NDArray[np.float32]) -> None:
    """Write up to `N_MARINES` rows of one side into that side's part of the observation."""
    shown = rows[:N_MARINES].ravel()
    numbers[: len(shown)] = shown
