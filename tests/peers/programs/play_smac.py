"""Plays one scenario with SMAC and prints a line of JSON; runs in SMAC's environment.

Usage: `play_smac.py SCENARIO random|heuristic EPISODES SEED`.

Only SMAC, numpy and the standard library of Python 3.10 may be imported.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from smac.env import StarCraft2Env


def main() -> None:
    scenario, player, episodes, seed = sys.argv[1:]
    env = StarCraft2Env(map_name=scenario, seed=int(seed), heuristic_ai=player == "heuristic")
    rng = np.random.default_rng(int(seed))
    returns, steps, began_s = [], 0, time.monotonic()
    for _ in range(int(episodes)):
        env.reset()
        total, terminated = 0.0, False
        while not terminated:
            env.get_obs()
            env.get_state()
            # If SMAC's heuristic plays, it replaces these actions.
            actions = [int(rng.choice(np.flatnonzero(able))) for able in env.get_avail_actions()]
            reward, terminated, _ = env.step(actions)
            total += float(reward)
            steps += 1
        returns.append(round(total, 3))
    stats, seconds = env.get_stats(), time.monotonic() - began_s
    env.close()
    said = {
        "returns": returns,
        "wins": int(stats["battles_won"]),
        "steps": steps,
        "forced_restarts": int(stats["restarts"]),
        "seconds": round(seconds, 3),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main()
