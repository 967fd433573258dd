"""SMAC's and SMACv2's options, with their names and defaults.

Source: `StarCraft2Env.__init__` in either repository.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from sc2pool.errors import ConfigError
from sc2pool.tasks.teams.smac.scenarios import UnitType

SIGHT_RANGE, SHOOT_RANGE = 9.0, 6.0
"""SMAC's ranges of sight and attack for every unit, in cells, whatever its weapon."""


@dataclass(frozen=True)
class Rules:
    """Options of observations, rewards and the scripted player.

    Attributes:
        move_amount: the length of a move, in cells; a whole number.
        obs_all_health: agents see the health of all units in sight, and their own.
        obs_own_health: agents see their own health.
        obs_last_action: agents see the last actions of allies in sight.
        obs_pathing_grid: agents see on which of 8 places around them units can walk.
        obs_terrain_height: agents see the height of 8 places around them and of their own.
        obs_instead_of_state: the state consists of all agents' observations.
        obs_timestep_number: agents see the elapsed share of the time limit.
        obs_own_pos: agents see their position on the map (SMACv2).
        use_unit_ranges: each type of unit has its own ranges of sight and attack (SMACv2).
        min_attack_range: the lower bound of those ranges of attack, in cells (SMACv2).
        state_last_action: the state contains the last actions.
        state_timestep_number: the state contains the elapsed share of the time limit.
        reward_sparse: the reward is 1 for a victory, -1 for a defeat, and otherwise 0.
        reward_only_positive: damage and deaths of the team cost nothing.
        reward_death_value: added for each killed enemy, subtracted for each lost ally.
        reward_win: added for a victory.
        reward_defeat: added for a defeat.
        reward_negative_scale: the factor on the team's damage and deaths.
        reward_scale: whether rewards are scaled so that the best return is `reward_scale_rate`.
        reward_scale_rate: the best return.
        heuristic_ai: SMAC's scripted player acts, and actions are ignored. See `scripted`.
        heuristic_rest: the scripted player takes only available actions.

    Raises:
        ConfigError: a value has the wrong type, or a length or scale is not positive.
    """

    move_amount: int = 2
    obs_all_health: bool = True
    obs_own_health: bool = True
    obs_last_action: bool = False
    obs_pathing_grid: bool = False
    obs_terrain_height: bool = False
    obs_instead_of_state: bool = False
    obs_timestep_number: bool = False
    obs_own_pos: bool = False
    use_unit_ranges: bool = False
    min_attack_range: float = 2
    state_last_action: bool = True
    state_timestep_number: bool = False
    reward_sparse: bool = False
    reward_only_positive: bool = True
    reward_death_value: float = 10
    reward_win: float = 200
    reward_defeat: float = 0
    reward_negative_scale: float = 0.5
    reward_scale: bool = True
    reward_scale_rate: float = 20
    heuristic_ai: bool = False
    heuristic_rest: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            kinds = {"bool": (bool,), "int": (int,), "float": (int, float)}[str(field.type)]
            if type(value) not in kinds:
                raise ConfigError(f"{field.name} must be of type {field.type}, got {value!r}")
        for name in ("move_amount", "reward_scale_rate"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} must be above 0, got {getattr(self, name)!r}")

    @property
    def sees_own_health(self) -> bool:
        """True if either option shows agents their own health."""
        return self.obs_own_health or self.obs_all_health

    def sight_of(self, kind: UnitType) -> float:
        """The sight range of a unit, in cells."""
        return kind.sight if self.use_unit_ranges else SIGHT_RANGE

    def reach_of(self, kind: UnitType) -> float:
        """The range of a unit's attacks or healing, from centre to centre, in cells."""
        return max(kind.reach, self.min_attack_range) if self.use_unit_ranges else SHOOT_RANGE


ZERO_SUM = Rules(reward_only_positive=False, reward_negative_scale=1.0, reward_defeat=-200.0)
"""Rules of a zero-sum duel: damage, deaths and the outcome add to one side's reward and subtract
from the other's."""


def check_rules(rules: object) -> None:
    """Raise `ConfigError` unless these are `Rules`."""
    if not isinstance(rules, Rules):
        raise ConfigError(f"rules must be of type Rules, got {rules!r}")
