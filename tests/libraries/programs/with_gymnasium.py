"""`with_gymnasium.py REPORT` steps two games of `make_vec`, one of which is killed."""

from __future__ import annotations

import gymnasium
import numpy as np
from killing import kill_a_game, write_report


def main() -> None:
    envs = gymnasium.make_vec("sc2pool:sc2pool/MoveToBeacon-v0", num_envs=2)
    envs.reset(seed=7)
    steps = truncated = marked = 0
    over = np.zeros(2, np.bool_)
    while steps < 500:
        _, _, terminations, truncations, infos = envs.step(envs.action_space.sample())
        steps += int((~over).sum())  # in NEXT_STEP, the step after an end is only a reset
        truncated += int(truncations.sum())
        marked += int(infos.get("sc2pool.synthetic", over & ~over).sum())
        over = terminations | truncations
        if steps == 250:
            kill_a_game()
    envs.close()
    write_report(envs.unwrapped.pool, steps=steps, truncated=truncated, marked=marked)


if __name__ == "__main__":
    main()
