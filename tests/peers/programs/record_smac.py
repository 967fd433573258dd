"""Plays one battle with random actions and records it; runs in SMAC's or SMACv2's environment.

Usage: `record_smac.py MAP SEED STEPS OPTIONS FILE`.

OPTIONS is a JSON object. If OPTIONS has a `capability_config`, the keywords are for SMACv2's
environment, else for SMAC's. FILE, a numpy archive, has the observations, states and masks before
each action and after the last one, the actions, the reward of each step, and whether the step ended
the battle. For SMACv2, the file also has the teams and places that were drawn. Only SMAC
or SMACv2, numpy and the standard library of Python 3.10 may be imported.

SMACv2 remembers which enemies any agent has seen. If an enemy is dead or was not seen yet, SMACv2
blanks all enemies before it in an agent's observation. The blanks depend on the random order in
which SMACv2 asks its agents, and on the number of calls. So `observations` are recorded as if all
enemies had been seen. SMACv2's code is not changed.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np


def seen_if_all_are_known(env: Any) -> list[Any]:
    """The agents' observations as if each enemy had been seen; SMACv2's memory stays the same."""
    memory = env.obs_enemies.copy(), list(env.enemy_tags)
    env.obs_enemies[:] = 1
    env.enemy_tags = [0] * env.n_enemies
    seen = env.get_obs()
    env.obs_enemies, env.enemy_tags = memory
    return seen


def main() -> None:
    map_name, seed, steps, words, file = sys.argv[1:]
    options = json.loads(words)
    is_v2 = "capability_config" in options
    if is_v2:
        from smacv2.env.starcraft2.wrapper import StarCraftCapabilityEnvWrapper as StarCraft2Env
    else:
        from smac.env import StarCraft2Env
    env = StarCraft2Env(map_name=map_name, seed=int(seed), **options)
    rng = np.random.default_rng(int(seed))
    env.reset()
    drawn = {}
    if is_v2:
        config = env.env.episode_config
        drawn = {
            "allies": config["team_gen"]["ally_team"],
            "enemies": config["team_gen"]["enemy_team"],
            "ally_places": config["ally_start_positions"]["item"],
            "enemy_places": config["enemy_start_positions"]["item"],
        }
    seen, states, masks = [], [], []
    taken, rewards, ends = [], [], []
    while True:
        seen.append(env.get_obs())
        if is_v2:
            seen[-1] = seen_if_all_are_known(env.env)
        states.append(env.get_state())
        masks.append(env.get_avail_actions())
        if len(taken) == int(steps) or (ends and ends[-1]):
            break
        # Attacks are twice as likely as other actions, so that units die.
        weights = [np.array(able) * np.where(np.arange(len(able)) >= 6, 2, 1) for able in masks[-1]]
        actions = [int(rng.choice(len(one), p=one / one.sum())) for one in weights]
        # The list is copied, because SMAC's scripted player writes its own actions into the list.
        reward, terminated, _ = env.step(list(actions))
        taken.append(actions)
        rewards.append(float(reward))
        ends.append(bool(terminated))
    env.close()
    np.savez(
        file,
        observations=np.array(seen),
        states=np.array(states),
        masks=np.array(masks, dtype=bool),
        actions=np.array(taken),
        rewards=np.array(rewards),
        ends=np.array(ends),
        **{name: np.array(value) for name, value in drawn.items()},
    )


if __name__ == "__main__":
    main()
