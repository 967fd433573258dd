"""`StarCraft2Env`: a scenario of SMAC or SMACv2 under their own method names.

    from sc2pool import StarCraft2Env        # in place of: from smac.env import StarCraft2Env
    env = StarCraft2Env(map_name="8m")
    env.reset()
    reward, terminated, info = env.step(actions)

    # in place of: from smacv2.env.starcraft2.wrapper import StarCraftCapabilityEnvWrapper
    from sc2pool import StarCraft2Env as StarCraftCapabilityEnvWrapper
    env = StarCraftCapabilityEnvWrapper(map_name="10gen_terran", capability_config={...})

SMAC's random agents and code bases such as PyMARL call it unchanged. Rules: the options, the order
of the agents, what each method returns, and that an action which is not available is an
AssertionError, are SMAC's. An option without effect here takes any value, and a value that would
change the game is an error. A game that fails ends the battle with reward 0, as in SMAC, and is
also marked in the info, with `episode_limit`, so that no learner takes it for a defeat. What
differs is said at `reset`; and SMAC's methods that take a unit of pysc2, such as
`unit_max_cooldown`, are not here: the units are in the game's process.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded

from sc2pool.config import Computer, PoolConfig, ReplayPolicy
from sc2pool.envs.specs import Game, make_players, whole_number
from sc2pool.errors import ActionError, ConfigError
from sc2pool.pool import actions as action_checks
from sc2pool.pool.pool import Pool
from sc2pool.pool.queues.layout import Array
from sc2pool.pool.stepping.batch import Batch
from sc2pool.replacing import replacing
from sc2pool.tasks.opponents.results import OPPONENT, RESULT, UNTOLD_END
from sc2pool.tasks.teams.smac.actions import FIRST_TARGET, N_MOVES
from sc2pool.tasks.teams.smac.battle_task import STEP_MUL, BattleTask, smac_task
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.scenarios import SCENARIOS, Scenario
from sc2pool.tasks.teams.smacv2.config import observation_names, state_names
from sc2pool.tasks.teams.smacv2.task import SCENARIOS as RANDOM_TEAMS
from sc2pool.tasks.teams.smacv2.task import smacv2_task

_DIFFICULTIES = {name: number for number, name in enumerate("123456789A", start=1)}
"""SMAC's names of the built-in opponent's levels, as the API's numbers."""
_FIXED: dict[str, tuple[Any, ...]] = {
    "game_version": (None, "latest"),
    "conic_fov": (False,),
    "fully_observable": (False,),
    "obs_starcraft": (True,),
    "prob_obs_enemy": (1.0,),
    "action_mask": (True,),
}
"""Options of SMAC and SMACv2 with only these values here: another one would change the game."""
_WITHOUT_EFFECT = frozenset(
    {"window_size_x", "window_size_y", "debug", "kill_unit_step_mul", "num_fov_actions"}
)
"""Options that take any value: the size of a window that is not opened, log lines of SMAC's, the
loops in which SMACv2's units die between battles, the actions of `conic_fov`."""
_NOT_SMACS = {"sc2pool.synthetic", OPPONENT, RESULT, UNTOLD_END}
"""Keys of an info that learners of SMAC, which add its values up, do not know."""


class StarCraft2Env:
    """One scenario of SMAC or SMACv2, with SMAC's interface.

    Args:
        map_name: the scenario: SMAC's, such as "8m", or SMACv2's, such as "terran_5_vs_5"; with a
            `capability_config` SMACv2's map, such as "10gen_terran"; or a scenario of your own
            map, from `sc2pool.smac.own_scenario`.
        capability_config: how SMACv2's teams and places are drawn, as SMACv2 takes it; see
            `sc2pool.tasks.teams.smacv2.config`.
        step_mul: game loops per env step.
        episode_limit: env steps after which a battle is over; None for the scenario's own number.
        difficulty: of the built-in opponent, "1" to "9" or "A".
        seed: repeats all battles; None for the game's own choice.
        continuing_episode: whether the info of a battle that reached its time limit says
            `episode_limit`.
        replay_dir: the folder for replays, which `save_replay` needs.
        replay_prefix: of the files' names; "" for the map's name.
        game: as in `SubprocSC2VecEnv`; so is config.
        rules: SMAC's and SMACv2's other options, such as `obs_last_action` or `heuristic_ai`, by
            name; see `sc2pool.tasks.teams.smac.rules.Rules`. Those that are not given have SMAC's
            defaults; in a scenario of SMACv2 that is given by its name alone, those of its example
            config. `window_size_x`, `window_size_y`, `debug`, `kill_unit_step_mul` and
            `num_fov_actions` have no effect; `game_version` may be None or "latest".

    Attributes:
        map_name: the scenario's name.
        n_agents: the number of agents; `n_enemies` of enemies; `n_actions` of each agent's actions.
        n_actions_no_attack: the number of the first actions, which have no target;
            `n_actions_move` of those of them that are moves.
        unit_type_bits: how many numbers tell a unit's type.
        shield_bits_ally: 1 if the team's units have shields, else 0; `shield_bits_enemy` likewise.

    Raises:
        ConfigError: an unknown map or option, a wrong value, no installation, or no such map in it.
    """

    n_actions_no_attack = FIRST_TARGET
    n_actions_move = N_MOVES

    def __init__(
        self,
        map_name: str | Scenario = "8m",
        *,
        capability_config: Mapping[str, Any] | None = None,
        step_mul: int = STEP_MUL,
        episode_limit: int | None = None,
        difficulty: str = "7",
        seed: int | None = None,
        continuing_episode: bool = False,
        replay_dir: str = "",
        replay_prefix: str = "",
        game: Game = "auto",
        config: PoolConfig | None = None,
        **rules: Any,
    ) -> None:
        if difficulty not in _DIFFICULTIES:
            raise ConfigError(
                f"difficulty must be one of {', '.join(_DIFFICULTIES)}, got {difficulty!r}"
            )
        if seed is not None:
            seed = whole_number("seed", seed, 0)
        if episode_limit is not None:
            episode_limit = whole_number("episode_limit", episode_limit, 1)
        self._task = task = _battle_of(
            map_name, capability_config, rules, difficulty, episode_limit
        )
        scenario, sizes = task.scenario, task.sizes
        self.map_name = task.__name__
        self.n_agents = scenario.n_agents
        self.n_enemies = scenario.n_enemies
        self.n_actions = sizes.n_actions
        self.unit_type_bits = scenario.n_types
        self.shield_bits_ally = sizes.shield_of_allies
        self.shield_bits_enemy = sizes.shield_of_enemies
        self.continuing_episode = continuing_episode
        self.replay_dir = replay_dir
        self.replay_prefix = replay_prefix
        self.battles_won = self.battles_game = self.timeouts = self.force_restarts = 0
        self._episode_steps = 0
        """Steps of the running battle; learners read it by this name."""
        self._seed = seed
        if replay_dir:
            newest = ReplayPolicy(Path(replay_dir), every=1, best=False, faulty=False, keep=1)
            config = replace(config or PoolConfig(), replays=newest)
        self._replay: Path | None = None
        self._players = make_players(
            n=1,
            task=task,
            game=game,
            config=config,
            step_mul=step_mul,
            max_loops=scenario.limit * step_mul,
        )
        self._pool: Pool | None = None
        self._observations: list[Array] = []
        self._state: Array = np.zeros(0, np.float32)
        self._masks: list[list[int]] = []
        self._capabilities: Array = np.zeros((self.n_agents, scenario.n_types), np.float32)
        self._max_reward: float | None = None
        """The best return of the first battle of random teams, by which all rewards are scaled."""

    @property
    def episode_limit(self) -> int:
        """Env steps after which a battle is over; the constructor's keyword sets it."""
        return self._task.scenario.limit

    # Episodes.

    def reset(self) -> tuple[list[Array], Array]:
        """Begin a battle; the first one launches the game.

        SMAC begins the next battle by killing all units of the last, in one long game. Here each
        battle is a game; its seed follows from the env's seed and the battle's number, as in
        `SubprocSC2VecEnv`.

        Returns:
            The observation of each agent, and the state.

        Raises:
            ConfigError, CrashLoopError, UserCodeError, ClosedError: see their docstrings.
        """
        if self._pool is None:
            self._pool = self._players.make_pool(autoreset=False)
            if self._seed is not None:
                self._pool.seed(self._seed)
        self._take(self._pool.reset())
        self._episode_steps = 0
        n_types = self._task.scenario.n_types
        last = self.get_obs_size() - self._task.rules.obs_timestep_number
        # All agents live, and each sees its own type.
        self._capabilities = np.stack(self._observations)[:, last - n_types : last]
        return self.get_obs(), self.get_state()

    def step(self, actions: Sequence[Any]) -> tuple[float, bool, dict[str, Any]]:
        """Play one step.

        Args:
            actions: the number of an action for each agent, in any shape of one element, such as
                an array of (n_agents, 1).

        Returns:
            The team's reward, whether the battle is over, and `battle_won`, `dead_allies` and
            `dead_enemies`, with `episode_limit` at the time limit if `continuing_episode` is set.
            After a fault of the game: 0, True, and the fault in `sc2pool.fault`.

        Raises:
            AssertionError: an action is not available to its agent.
            ActionError: there are too few actions, or too many, or one is not a number.
            ResetNeeded: no battle is running.
        """
        action_checks.count(actions, self.n_agents, "agent")
        taken = [_number(agent, action) for agent, action in enumerate(actions)]
        # The scripted player acts in their place.
        checked = [] if self._task.rules.heuristic_ai else taken
        for agent, (action, mask) in enumerate(zip(checked, self._masks, strict=False)):
            available = 0 <= action < len(mask) and mask[action] == 1
            assert available, f"Agent {agent} cannot perform action {action}"
        pool = self._launched()
        pool.send(np.array(taken, dtype=np.int64))
        batch = pool.recv()
        self._take(batch)
        self._episode_steps += 1
        info = {key: value for key, value in batch.infos[0].items() if key not in _NOT_SMACS}
        reward = float(batch.rewards[0]) * self._to_first_battle(info.pop("max_reward", None))
        terminated, truncated = bool(batch.terminated[0]), bool(batch.truncated[0])
        if "sc2pool.fault" in info:
            self.force_restarts += 1
            return 0.0, True, info | {"episode_limit": True}
        if "sc2pool.replay" in info:
            self._replay = Path(info["sc2pool.replay"])
        if terminated or truncated:
            self.battles_game += 1
            self.battles_won += info.get("battle_won", False)  # if the game ended it, none was won
            if not terminated:
                self.timeouts += 1
                if self.continuing_episode:
                    info["episode_limit"] = True
        return reward, terminated or truncated, info

    def _to_first_battle(self, max_reward: float | None) -> float:
        """The factor of this battle's rewards: SMACv2 scales by its first battle."""
        if max_reward is None or not self._task.rules.reward_scale:
            return 1.0
        if self._max_reward is None:
            self._max_reward = max_reward
        return max_reward / self._max_reward

    def _take(self, batch: Batch) -> None:
        """Keep what a batch shows of the battle."""
        pool = self._launched()
        seen = [pool.row(batch, row) for row in range(self.n_agents)]
        self._observations = [one["observation"] for one in seen]
        self._state = seen[0]["state"]
        masks = [pool.action_mask(row) for row in range(self.n_agents)]
        self._masks = [mask.astype(int).tolist() for mask in masks if mask is not None]

    def _launched(self) -> Pool:
        if self._pool is None:
            raise ResetNeeded("call reset() first: no game is launched")
        return self._pool

    # What there is to see.

    def get_obs(self) -> list[Array]:
        """Each agent's observation, float32."""
        return [observation.copy() for observation in self._observations]

    def get_obs_agent(self, agent_id: int) -> Array:
        """One agent's observation."""
        return self._observations[agent_id].copy()

    def get_obs_size(self) -> int:
        """How many numbers an agent sees."""
        return self._task.sizes.observation

    def get_obs_move_feats_size(self) -> int:
        """How many numbers of an agent's observation tell its moves; they come first."""
        return self._task.sizes.move

    def get_obs_enemy_feats_size(self) -> tuple[int, int]:
        """The enemies that an agent's observation has next, and the numbers of each."""
        return self.n_enemies, self._task.sizes.enemy

    def get_obs_ally_feats_size(self) -> tuple[int, int]:
        """The allies after them, and the numbers of each."""
        return self.n_agents - 1, self._task.sizes.ally

    def get_obs_own_feats_size(self) -> int:
        """How many numbers tell of the agent itself; they come last."""
        return self._task.sizes.own

    def get_state(self) -> Array:
        """The whole battle, float32."""
        return self._state.copy()

    def get_state_size(self) -> int:
        """How many numbers the state has."""
        return self._task.sizes.state

    def get_avail_actions(self) -> list[list[int]]:
        """For each agent and action 1 if it is available, else 0."""
        return [list(mask) for mask in self._masks]

    def get_avail_agent_actions(self, agent_id: int) -> list[int]:
        """The same of one agent."""
        return list(self._masks[agent_id])

    def get_capabilities(self) -> Array:
        """The types of all agents, one after the other, each one-hot."""
        return self._capabilities.flatten()

    def get_capabilities_agent(self, agent_id: int) -> Array:
        """The type of one agent."""
        of_one: Array = self._capabilities[agent_id]
        return of_one.copy()

    def get_cap_size(self) -> int:
        """How many numbers tell an agent's type."""
        return self._task.scenario.n_types

    def get_obs_feature_names(self) -> list[str]:
        """The name of each number that an agent sees, as SMACv2 names them."""
        return observation_names(self._task.sizes)

    def get_state_feature_names(self) -> list[str]:
        """The name of each number of the state.

        Raises:
            NotImplementedError: the state is all agents' observations.
        """
        return state_names(self._task.sizes)

    def get_total_actions(self) -> int:
        """How many actions an agent has."""
        return self.n_actions

    def get_env_info(self) -> dict[str, Any]:
        """The sizes of everything, and the names of the state's numbers of each unit."""
        scenario, sizes = self._task.scenario, self._task.sizes
        types = [f"type_{i}" for i in range(scenario.n_types)]
        return {
            "state_shape": self.get_state_size(),
            "obs_shape": self.get_obs_size(),
            "cap_shape": self.get_cap_size(),
            "n_actions": self.get_total_actions(),
            "n_agents": self.n_agents,
            "episode_limit": self.episode_limit,
            "agent_features": [
                "health",
                "energy/cooldown",
                "rel_x",
                "rel_y",
                *["shield"] * sizes.shield_of_allies,
                *types,
            ],
            "enemy_features": [
                "health",
                "rel_x",
                "rel_y",
                *["shield"] * sizes.shield_of_enemies,
                *types,
            ],
        }

    # The rest.

    def get_stats(self) -> dict[str, float]:
        """Battles won, played and ended by the time limit, and games that were replaced."""
        return {
            "battles_won": self.battles_won,
            "battles_game": self.battles_game,
            "battles_draw": self.timeouts,
            "win_rate": self.battles_won / max(self.battles_game, 1),
            "timeouts": self.timeouts,
            "restarts": self.force_restarts,
        }

    @property
    def env(self) -> StarCraft2Env:
        """The env itself: SMACv2's wrapper has the env that it wraps under this name."""
        return self

    def seed(self) -> int | None:
        """The env's seed."""
        return self._seed

    def save_replay(self) -> Path:
        """Keep the replay of the newest battle that is over.

        Returns:
            The file, which SMAC does not return.

        Raises:
            ConfigError: no `replay_dir` was given, or no battle is over yet.
        """
        if self._replay is None:
            raise ConfigError(
                "no replay to save: replay_dir must be given to StarCraft2Env, and a battle be over"
                f"; got replay_dir={self.replay_dir!r}, {self.battles_game} battles over"
            )
        name = f"{self.replay_prefix or self.map_name}_{self.battles_game:05}.SC2Replay"
        path = Path(self.replay_dir) / name
        with replacing(path) as unfinished:
            shutil.copyfile(self._replay, unfinished)
        return path

    def render(self, mode: str = "human") -> Any:  # noqa: ARG002 - SMAC's signature
        """A frame of the battle as it is now, uint8 (480, 640, 3), in either mode."""
        return self._launched().render([0])[0]

    def close(self) -> None:
        """End the game and its worker; may be called again."""
        if self._pool is not None:
            self._pool.close()


def _number(agent: int, action: Any) -> int:
    """The action's number.

    Raises:
        ActionError: it is not one number; nothing was sent.
    """
    try:
        # Tensors have `item` too, and numpy cannot read those of a GPU.
        element = action if hasattr(action, "item") else np.asarray(action)
        return int(element.item())
    except (TypeError, ValueError, RuntimeError, OverflowError):
        shape = getattr(action, "shape", None)
        given = repr(action) if shape is None else f"an array of shape {tuple(shape)}"
        raise ActionError(f"agent {agent}: an action must be one number, got {given}") from None


def _battle_of(
    map_name: str | Scenario,
    capability_config: Mapping[str, Any] | None,
    options: Mapping[str, Any],
    difficulty: str,
    limit: int | None,
) -> type[BattleTask]:
    """The scenario's task, with what SMAC's interface shows of each step."""
    rules = _rules_of(options)
    members: dict[str, Any] = {"shares_state": True, "tells_deaths": True}
    parent: type[BattleTask]
    if isinstance(map_name, Scenario):
        if capability_config is not None:
            raise ConfigError("a scenario of your own has no capability_config, which is SMACv2's")
        parent = smac_task(map_name)
    elif capability_config is None and map_name in SCENARIOS:
        parent = smac_task(map_name)
    elif capability_config is None and map_name not in RANDOM_TEAMS:
        raise ConfigError(
            f"no scenario {map_name!r}; SMAC has {', '.join(SCENARIOS)}; SMACv2 has "
            f"{', '.join(RANDOM_TEAMS)}; sc2pool.smac.own_scenario makes one of your own map"
        )
    else:
        parent = smacv2_task(map_name, capability_config)
        members["tells_best_return"] = True
        if capability_config is None:
            known = [field.name for field in fields(Rules)]
            values = {name: getattr(rules, name) for name in options if name in known}
            rules = replace(parent.rules, **values)
    scenario = parent.scenario
    if limit is not None:
        scenario = replace(scenario, limit=limit)
    opponent = Computer(scenario.enemy_kinds[0].race, _DIFFICULTIES[difficulty])
    members |= {
        "__module__": parent.__module__,
        "__doc__": parent.__doc__,
        "scenario": scenario,
        "rules": rules,
        "opponents": (opponent,),
    }
    return type(parent.__name__, (parent,), members)


def _rules_of(options: Mapping[str, Any]) -> Rules:
    """The options given by name, over SMAC's defaults.

    Raises:
        ConfigError: there is no such option, or it cannot have this value.
    """
    known = [field.name for field in fields(Rules)]
    for name, value in options.items():
        if name in _FIXED and value not in _FIXED[name]:
            possible = " or ".join(map(repr, _FIXED[name]))
            raise ConfigError(f"{name} can only be {possible} here, got {value!r}")
        if name not in _FIXED and name not in _WITHOUT_EFFECT and name not in known:
            raise ConfigError(f"no option {name!r}; SMAC's are {', '.join(known)}")
    return Rules(**{name: value for name, value in options.items() if name in known})
