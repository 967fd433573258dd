"""`SmacDuel`: a scenario of SMAC in which learners play both sides, with one task per scenario.

    SubprocSC2VecEnv("3m_duel")     rows: the first player's agents, then the second's
    smac_duel("3m", ZERO_SUM)       with other options

Observations, actions and rewards follow SMAC for each side, so a policy of a scenario also plays
its duel. Rules: both sides have the same units, so only even scenarios have a duel. The units of
both sides act only on orders. The second player sees the map turned by 180°, so both begin with the
same observations. Enemy i is agent i of the other side. A side with only medivacs left has lost. If
both sides have lost, the battle is drawn.

SMAC has no such maps; they belong to the stand-in, in `sc2standin/maps/smac_duels`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import raw_pb2

from sc2pool.errors import ConfigError
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.teams.battle import (
    DRAWN,
    LOST,
    WON,
    Army,
    Battle,
    Ground,
    by_type_and_place,
    own_kinds,
    side_of,
    units_of,
)
from sc2pool.tasks.teams.battle_task import SmacTask, made_task
from sc2pool.tasks.teams.scenarios import SCENARIOS, Contest, Rules, Scenario
from sc2pool.tasks.teams.scripted import EAST, NORTH, choose

SUFFIX = "_duel"
"""Not `_vs`, which in SMAC's names means that the sides differ."""
DUELS = {f"{one.name}{SUFFIX}": one for one in SCENARIOS.values() if one.is_even}
"""The scenarios that have a duel, by the duel's name."""
_AHEAD = {"bane_vs_bane": NORTH}
"""The move towards the enemy's end, where it is not east."""


class SmacDuel(SmacTask):
    """One side of a battle between two learners.

    Action and observation space are the scenario's. Each side's reward is SMAC's. With the rules
    `ZERO_SUM` the two sides' rewards add up to 0.
    """

    players: ClassVar[int] = 2

    @staticmethod
    def game_of(scenario: Contest) -> dict[str, Any]:
        return {"map_name": scenario.name + SUFFIX, "race_requested": scenario.kinds[0].race}

    @classmethod
    def scripted(cls, observation: NDArray[np.float32]) -> int:
        """A scripted player for one agent; see the module `scripted`."""
        ahead = _AHEAD.get(cls.scenario.name, EAST)
        return choose(observation, cls.sizes, ahead)

    async def on_start(self) -> None:
        ground = Ground.of(self.game_info)
        is_second = self.game.player_id == 2
        self.ground = ground.turned() if is_second else ground
        turned_on = ground.size if is_second else None
        battle = begun(self.scenario, self.rules, self.lazy_observation, turned_on)
        if battle is None:
            raise self.not_the_units()
        self.begin(battle)

    def outcome(self) -> int | None:
        own, enemy = is_beaten(self.battle.allies), is_beaten(self.battle.enemies)
        if not (own or enemy):
            return None
        return DRAWN if own and enemy else LOST if own else WON


def is_beaten(side: Army) -> bool:
    """True if all units of a side are dead, or only medivacs are left."""
    return not side.alive.any() or side.has_medivacs_alone()


def begun(
    scenario: Scenario, rules: Rules, observed: Observed, turned_on: tuple[int, int] | None
) -> Battle | None:
    """The battle of one player's observation; None if units are missing.

    Args:
        turned_on: the size of the map for the second player, None for the first.
    """
    own, enemies = (units_of(observed, whose) for whose in (raw_pb2.Self, raw_pb2.Enemy))
    if (len(own), len(enemies)) != (scenario.n_agents, scenario.n_enemies):
        return None
    # Enemies get the numbers that they have as agents of their own side.
    for units, is_turned in ((own, turned_on is not None), (enemies, turned_on is None)):
        units.sort(key=_turned_type_and_place if is_turned else by_type_and_place)
    allies = side_of(own, scenario.allies, own_kinds(own), turned_on)
    # The types are the same, but SMAC may number the enemy's in another order.
    numbered = [kind for kind, _ in scenario.enemies]
    index_of = [numbered.index(kind) for kind, _ in scenario.allies]
    kinds = [index_of[k] if k < len(index_of) else k for k in own_kinds(enemies)]
    others = side_of(enemies, scenario.enemies, kinds, turned_on)
    return Battle(scenario, rules, allies, others, observed)


def _turned_type_and_place(unit: raw_pb2.Unit) -> tuple[int, float, float]:
    """The sort key that numbers the second player's agents."""
    unit_type, x, y = by_type_and_place(unit)
    return unit_type, -x, -y


def smac_duel(name: str, rules: Rules | None = None) -> type[SmacTask]:
    """The duel of a scenario, with SMAC's default options or others.

    Raises:
        ConfigError: SMAC has no such map, the map's sides have different units, or the rules have
            another type.
    """
    scenario = SCENARIOS.get(name)
    if scenario is None or not scenario.is_even:
        even = ", ".join(one.name for one in DUELS.values())
        why = "no such scenario" if scenario is None else "its sides have different units"
        raise ConfigError(f"no duel of {name!r}: {why}; there is one of {even}")
    doc = f"SMAC's scenario {name} for two players: {scenario.n_agents} agents on either side."
    return made_task(SmacDuel, name + SUFFIX, scenario, rules, doc=doc, module=__name__)


def __getattr__(name: str) -> type[SmacTask]:
    """The tasks by their names, most of which are not Python names: `….duel:3m_duel`."""
    if name in DUELS:
        return smac_duel(DUELS[name].name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
