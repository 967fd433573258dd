"""`StarCraft2Env`: a scenario of SMAC or SMACv2 with SMAC's interface.

    from sc2pool.smac import StarCraft2Env  # in place of: from smac.env import StarCraft2Env
    env = StarCraft2Env(map_name="8m")
    env.reset()
    reward, terminated, info = env.step(actions)

    # in place of: from smacv2.env.starcraft2.wrapper import StarCraftCapabilityEnvWrapper
    from sc2pool.smac import StarCraft2Env as StarCraftCapabilityEnvWrapper
    env = StarCraftCapabilityEnvWrapper(map_name="10gen_terran", capability_config={...})

SMAC's random agents and code bases such as PyMARL can use the class unchanged. The options, the
order of the agents and the methods' results are SMAC's, and an unavailable action raises an
AssertionError, as in SMAC. An option without an effect in this class accepts any value. For an
unsupported option, a value that would change the game is an error. A game that fails ends the
battle with reward 0, as in SMAC. After such a failure the info also has the fault and
`episode_limit`, so that learners do not see a defeat.

Two things differ from SMAC. A battle is a game of its own (see `reset`). SMAC's methods that take a
unit of pysc2, such as `unit_max_cooldown`, are missing, because this process has no units of pysc2.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded

from sc2pool.config import PoolConfig, ReplayPolicy
from sc2pool.errors import ActionError, ConfigError
from sc2pool.integration import (
    GameChoice,
    check_actions,
    make_players,
    observation_names,
    smac_battle,
    state_names,
)
from sc2pool.pool.batch import Batch
from sc2pool.pool.pool import Pool
from sc2pool.smac import Scenario
from sc2pool.utilities import Array, replacing, whole_number

_NOT_SMACS = {"sc2pool.synthetic", "sc2pool.opponent", "sc2pool.result", "sc2pool.untold_end"}
"""Keys that are removed from an info, because SMAC's learners add up all values of an info."""


class StarCraft2Env:
    """One scenario of SMAC or SMACv2, with SMAC's interface.

    Args:
        map_name: A scenario of SMAC, such as "8m", or of SMACv2, such as "terran_5_vs_5". If
            `capability_config` is given, `map_name` is a map of SMACv2, such as "10gen_terran".
            A scenario of your own map, from `sc2pool.smac.own_scenario`, is also possible.
        capability_config: The rules by which SMACv2's teams and places are drawn, in SMACv2's
            format; see `sc2pool.tasks.teams.smacv2`.
        step_mul: The number of game loops per env step.
        episode_limit: A battle's time limit in env steps; None for the scenario's own limit.
        difficulty: The built-in opponent's level, "1" to "9" or "A".
        seed: A number; envs with equal seeds play the same battles. None lets the game choose.
        continuing_episode: True if the info of a battle that reached its time limit has
            `episode_limit`.
        replay_dir: The folder for replays, which `save_replay` needs.
        replay_prefix: The first part of the replays' file names; "" for the map's name.
        game: see `SubprocSC2VecEnv`.
        config: see `SubprocSC2VecEnv`.
        rules: The other options of SMAC and SMACv2, such as `obs_last_action` or `heuristic_ai`, by
            name; see `sc2pool.tasks.teams.scenarios.Rules`. The defaults are SMAC's. If only the
            name of a scenario of SMACv2 is given, the scenario's example config has the defaults.
            The options `window_size_x`, `window_size_y`, `debug`, `kill_unit_step_mul` and
            `num_fov_actions` have no effect. `game_version` must be None or "latest".

    Attributes:
        map_name: The scenario's name.
        n_agents: The number of agents.
        n_enemies: The number of enemies.
        n_actions: The number of each agent's actions.
        n_actions_no_attack: The number of actions without a target, which come first.
        n_actions_move: The number of moves among the actions without a target.
        unit_type_bits: The number of values that encode a unit's type.
        shield_bits_ally: 1 if the team's units have shields, else 0.
        shield_bits_enemy: 1 if the enemies have shields, else 0.

    Raises:
        ConfigError: A map or an option is unknown, a value is wrong, or the game or the map is
            missing.
    """

    n_actions_no_attack = 6
    n_actions_move = 4

    def __init__(
        self,
        map_name: str | Scenario = "8m",
        *,
        capability_config: Mapping[str, Any] | None = None,
        step_mul: int = 8,
        episode_limit: int | None = None,
        difficulty: str = "7",
        seed: int | None = None,
        continuing_episode: bool = False,
        replay_dir: str = "",
        replay_prefix: str = "",
        game: GameChoice = "auto",
        config: PoolConfig | None = None,
        **rules: Any,
    ) -> None:
        if seed is not None:
            seed = whole_number("seed", seed, 0)
        if episode_limit is not None:
            episode_limit = whole_number("episode_limit", episode_limit, 1)
        self._task = task = smac_battle(
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
        """The number of steps in this battle. Learners read this attribute by its name."""
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
        """The first battle's best possible return, which scales the rewards of random teams."""

    @property
    def episode_limit(self) -> int:
        """A battle's time limit in env steps, from the constructor's keyword."""
        return self._task.scenario.limit

    # Episodes.

    def reset(self) -> tuple[list[Array], Array]:
        """Begin a battle. The first call also launches the game.

        SMAC plays one long game, and kills all units to begin the next battle. In this class each
        battle is a game of its own. The battle's seed is derived from the env's seed and the
        battle's number, as in `SubprocSC2VecEnv`.

        Returns:
            The observation of each agent, and the state.

        Raises:
            ConfigError, CrashLoopError, UserCodeError, ClosedError: See the errors' docstrings.
        """
        if self._pool is None:
            self._pool = self._players.make_pool(autoreset=False)
            if self._seed is not None:
                self._pool.seed(self._seed)
        self._take(self._pool.reset())
        self._episode_steps = 0
        n_types = self._task.scenario.n_types
        last = self.get_obs_size() - self._task.rules.obs_timestep_number
        # At the first observation all agents live, and each sees its own type.
        self._capabilities = np.stack(self._observations)[:, last - n_types : last]
        return self.get_obs(), self.get_state()

    def step(self, actions: Sequence[Any]) -> tuple[float, bool, dict[str, Any]]:
        """Play one step.

        Args:
            actions: The number of an action for each agent. Each number may be an array of one
                element, so `actions` may have the shape (n_agents, 1).

        Returns:
            The team's reward, whether the battle is over, and an info with `battle_won`,
            `dead_allies` and `dead_enemies`. At the time limit the info has `episode_limit` if
            `continuing_episode` is set. After a fault of the game the reward is 0, the battle is
            over, and the info has `sc2pool.fault` and `episode_limit`.

        Raises:
            AssertionError: An action is not available to its agent.
            ActionError: The number of actions is wrong, or an action is not a number.
            ResetNeeded: No battle is running.
        """
        check_actions(None, actions, range(self.n_agents), "agent")
        taken = [_number(agent, action) for agent, action in enumerate(actions)]
        # With `heuristic_ai` the scripted player acts, so the given actions are not checked.
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
            self.battles_won += info.get("battle_won", False)  # no key if the game ended by itself
            if not terminated:
                self.timeouts += 1
                if self.continuing_episode:
                    info["episode_limit"] = True
        return reward, terminated or truncated, info

    def _to_first_battle(self, max_reward: float | None) -> float:
        """The factor that gives this battle's rewards the first battle's scale, as in SMACv2."""
        if max_reward is None or not self._task.rules.reward_scale:
            return 1.0
        if self._max_reward is None:
            self._max_reward = max_reward
        return max_reward / self._max_reward

    def _take(self, batch: Batch) -> None:
        """Store the batch's observations, state and masks for the methods that return them."""
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

    # The following methods return observations, state and masks.

    def get_obs(self) -> list[Array]:
        """Each agent's observation, float32."""
        return [observation.copy() for observation in self._observations]

    def get_obs_agent(self, agent_id: int) -> Array:
        """One agent's observation."""
        return self._observations[agent_id].copy()

    def get_obs_size(self) -> int:
        """The number of values in an agent's observation."""
        return self._task.sizes.observation

    def get_obs_move_feats_size(self) -> int:
        """The number of an observation's values that encode possible moves, which come first."""
        return self._task.sizes.move

    def get_obs_enemy_feats_size(self) -> tuple[int, int]:
        """The number of enemies in an observation's second part, and of features of each enemy."""
        return self.n_enemies, self._task.sizes.enemy

    def get_obs_ally_feats_size(self) -> tuple[int, int]:
        """The number of allies in an observation's third part, and of features of each ally."""
        return self.n_agents - 1, self._task.sizes.ally

    def get_obs_own_feats_size(self) -> int:
        """The number of an observation's values that describe the agent itself, which come last."""
        return self._task.sizes.own

    def get_state(self) -> Array:
        """The state of the whole battle, float32."""
        return self._state.copy()

    def get_state_size(self) -> int:
        """The number of values in the state."""
        return self._task.sizes.state

    def get_avail_actions(self) -> list[list[int]]:
        """For each agent, a list with 1 for each available action, and 0 for each other action."""
        return [list(mask) for mask in self._masks]

    def get_avail_agent_actions(self, agent_id: int) -> list[int]:
        """One agent's list of available actions; see `get_avail_actions`."""
        return list(self._masks[agent_id])

    def get_capabilities(self) -> Array:
        """The one-hot types of all agents, concatenated."""
        return self._capabilities.flatten()

    def get_capabilities_agent(self, agent_id: int) -> Array:
        """The one-hot type of one agent."""
        of_one: Array = self._capabilities[agent_id]
        return of_one.copy()

    def get_cap_size(self) -> int:
        """The number of values that encode an agent's type."""
        return self._task.scenario.n_types

    def get_obs_feature_names(self) -> list[str]:
        """The name of each value of an observation, as in SMACv2."""
        return observation_names(self._task.sizes)

    def get_state_feature_names(self) -> list[str]:
        """The name of each value of the state.

        Raises:
            NotImplementedError: The state consists of all agents' observations.
        """
        return state_names(self._task.sizes)

    def get_total_actions(self) -> int:
        """The number of actions of an agent."""
        return self.n_actions

    def get_env_info(self) -> dict[str, Any]:
        """The sizes of observations, state and actions, and the names of each unit's features."""
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
        """How many battles were won, played or timed out, and how many games were replaced."""
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
        """The env itself, because in SMACv2's wrapper this attribute is the wrapped env."""
        return self

    def seed(self) -> int | None:
        """The env's seed."""
        return self._seed

    def save_replay(self) -> Path:
        """Keep the replay of the last battle that has ended.

        Returns:
            The path of the file, whereas SMAC returns nothing.

        Raises:
            ConfigError: `replay_dir` was not given, or no battle has ended yet.
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
        """A frame of the battle at this moment, uint8 (480, 640, 3), in either render mode."""
        return self._launched().render([0])[0]

    def close(self) -> None:
        """End the game and its worker. May be called again."""
        if self._pool is not None:
            self._pool.close()


def _number(agent: int, action: Any) -> int:
    """The number of an agent's action.

    If the action is not one number, raises `ActionError` before any action is sent to the game.
    """
    try:
        # Call `item` if the action has it, because numpy cannot read a tensor on a GPU.
        element = action if hasattr(action, "item") else np.asarray(action)
        return int(element.item())
    except (TypeError, ValueError, RuntimeError, OverflowError):
        shape = getattr(action, "shape", None)
        given = repr(action) if shape is None else f"an array of shape {tuple(shape)}"
        raise ActionError(f"agent {agent}: an action must be one number, got {given}") from None
