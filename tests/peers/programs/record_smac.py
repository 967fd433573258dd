"""Plays one battle of SMAC with random actions and records it; runs in SMAC's environment.

    record_smac.py SCENARIO SEED STEPS OPTIONS FILE

OPTIONS is a JSON object of keywords for SMAC's environment. The file, a numpy archive, has the
results of SMAC before each action and after the last one (observations, states, masks), the
actions, the reward of each step, and whether the step ended the battle. Only SMAC, numpy and the
standard library of Python 3.10 are there.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from smac.env import StarCraft2Env


def main() -> None:
    scenario, seed, steps, options, file = sys.argv[1:]
    env = StarCraft2Env(map_name=scenario, seed=int(seed), **json.loads(options))
    rng = np.random.default_rng(int(seed))
    env.reset()
    seen, states, masks = [env.get_obs()], [env.get_state()], [env.get_avail_actions()]
    taken, rewards, ends = [], [], []
    while len(taken) < int(steps) and not (ends and ends[-1]):
        # Attacks twice as often as anything else, so that units die.
        weights = [np.array(able) * np.where(np.arange(len(able)) >= 6, 2, 1) for able in masks[-1]]
        actions = [int(rng.choice(len(one), p=one / one.sum())) for one in weights]
        # A copy: SMAC's scripted player writes its own actions into the list.
        reward, terminated, _ = env.step(list(actions))
        taken.append(actions)
        rewards.append(float(reward))
        ends.append(bool(terminated))
        seen.append(env.get_obs())
        states.append(env.get_state())
        masks.append(env.get_avail_actions())
    info = env.get_env_info()
    env.close()
    np.savez(
        file,
        observations=np.array(seen),
        states=np.array(states),
        masks=np.array(masks, dtype=bool),
        actions=np.array(taken),
        rewards=np.array(rewards),
        ends=np.array(ends),
        sizes=np.array([info["obs_shape"], info["state_shape"], info["n_actions"]]),
    )


if __name__ == "__main__":
    main()
