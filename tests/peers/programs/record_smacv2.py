"""Plays one battle of SMACv2 with random actions and records it; runs in SMACv2's environment.

    record_smacv2.py MAP SEED STEPS OPTIONS FILE

OPTIONS is a JSON object of keywords for SMACv2's environment, `capability_config` among them. The
file is a numpy archive. It has the same data as the file of record_smac.py, and the teams and
places that were drawn.

SMACv2 remembers which enemies any agent has seen. If an enemy is dead or was not seen yet, SMACv2
blanks all enemies before it in an agent's observation. The result depends on the random order in
which SMACv2 asks its agents, and on the number of calls. `observations` are the observations if all
enemies are known, `own_observations` those that SMACv2 returns by itself. SMACv2's code is not
changed.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from smacv2.env.starcraft2.wrapper import StarCraftCapabilityEnvWrapper


def seen_if_all_are_known(env: Any) -> list[Any]:
    """The agents' observations as if each enemy was seen before; the memory is not changed."""
    memory = env.obs_enemies.copy(), list(env.enemy_tags)
    env.obs_enemies[:] = 1
    env.enemy_tags = [0] * env.n_enemies
    seen = env.get_obs()
    env.obs_enemies, env.enemy_tags = memory
    return seen


def main() -> None:
    map_name, seed, steps, options, file = sys.argv[1:]
    env = StarCraftCapabilityEnvWrapper(map_name=map_name, seed=int(seed), **json.loads(options))
    rng = np.random.default_rng(int(seed))
    env.reset()
    drawn = env.env.episode_config
    known, own, states, masks = [], [], [], []
    taken, rewards, ends = [], [], []
    while True:
        own.append(env.get_obs())
        known.append(seen_if_all_are_known(env.env))
        states.append(env.get_state())
        masks.append(env.get_avail_actions())
        if len(taken) == int(steps) or (ends and ends[-1]):
            break
        # Attacks twice as often as anything else, so that units die.
        weights = [np.array(able) * np.where(np.arange(len(able)) >= 6, 2, 1) for able in masks[-1]]
        actions = [int(rng.choice(len(one), p=one / one.sum())) for one in weights]
        # A copy: the scripted player writes its own actions into the list.
        reward, terminated, _ = env.step(list(actions))
        taken.append(actions)
        rewards.append(float(reward))
        ends.append(bool(terminated))
    info = env.get_env_info()
    env.close()
    np.savez(
        file,
        observations=np.array(known),
        own_observations=np.array(own),
        states=np.array(states),
        masks=np.array(masks, dtype=bool),
        actions=np.array(taken),
        rewards=np.array(rewards),
        ends=np.array(ends),
        sizes=np.array([info["obs_shape"], info["state_shape"], info["n_actions"]]),
        allies=np.array(drawn["team_gen"]["ally_team"]),
        enemies=np.array(drawn["team_gen"]["enemy_team"]),
        ally_places=drawn["ally_start_positions"]["item"],
        enemy_places=drawn["enemy_start_positions"]["item"],
    )


if __name__ == "__main__":
    main()
