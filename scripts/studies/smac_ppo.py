"""One policy for all agents of a scenario of SMAC or SMACv2, by MaskablePPO: win rate over steps.

    python scripts/studies/smac_ppo.py 3m --steps 200000 --out 3m.json

Each agent is a row of `SubprocSC2VecEnv`, so PPO learns from all of them with the same network; it
sees what SMAC's agents see, not the state. As in SMAC's papers a step is one of the env, whatever
the number of agents, and the win rate is that of the policy's likeliest actions, in 32 battles. The
table and the file have it over the steps, with the return and the seconds so far.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

from sc2pool import SubprocSC2VecEnv
from sc2pool.tasks.registry import SMAC, SMACV2, resolve
from sc2pool.tasks.teams.team_task import agents_of

BATTLES = 32
"""Of each evaluation, as in SMAC's papers."""


def main() -> None:
    options = parse_arguments()
    th.set_num_threads(1)
    agents = agents_of(resolve(options.scenario))
    env = SubprocSC2VecEnv(task=options.scenario, n=options.n, seed=options.seed)
    # Returns of up to 20 are brought near 1, for the value's sake.
    scaled = VecNormalize(env, norm_obs=False, gamma=0.99)
    model = MaskablePPO(
        "MlpPolicy",
        scaled,
        n_steps=128,
        batch_size=8 * agents * options.n,
        n_epochs=5,
        learning_rate=5e-4,
        gamma=0.99,
        ent_coef=0.01,
        policy_kwargs={"net_arch": [128, 128]},
        seed=options.seed,
        device="cpu",
    )
    curve = Curve(options, agents)
    try:
        model.learn(options.steps * agents, callback=curve)
        if options.model is not None:
            model.save(options.model)
    finally:
        env.close()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("scenario", choices=[*SMAC, *SMACV2])
    parser.add_argument("--steps", type=int, default=200_000, help="of the env, not of each agent")
    parser.add_argument("--every", type=int, default=20_000, help="steps between evaluations")
    parser.add_argument("--n", type=int, default=8, help="games")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a file for the figures")
    parser.add_argument("--model", type=Path, help="a file for the model")
    return parser.parse_args()


class Curve(BaseCallback):
    """Evaluates the policy at the start and every so many steps, and prints a row for each."""

    def __init__(self, options: argparse.Namespace, agents: int) -> None:
        super().__init__()
        self._options = options
        self._agents = agents
        self._due = 0
        self._began_s = time.monotonic()
        self._rows: list[dict[str, float]] = []
        print("| steps | win rate | return | seconds |\n|---|---|---|---|", flush=True)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self.num_timesteps // self._agents >= self._due:
            self._evaluate()
            self._due += self._options.every

    def _on_training_end(self) -> None:
        self._evaluate()

    def _evaluate(self) -> None:
        assert isinstance(self.model, MaskablePPO)
        steps = self.num_timesteps // self._agents
        seconds = time.monotonic() - self._began_s
        won, returns = evaluated(self.model, self._options.scenario, seed=self._options.seed + 1)
        row = {"steps": steps, "win_rate": won, "return": returns, "seconds": round(seconds)}
        self._rows.append(row)
        print(f"| {steps} | {won:.2f} | {returns:.1f} | {seconds:.0f} |", flush=True)
        if self._options.out is not None:
            self._options.out.write_text(json.dumps(self._rows, indent=1))


def evaluated(model: MaskablePPO, scenario: str, *, seed: int, n: int = 4) -> tuple[float, float]:
    """The share of battles that the likeliest actions win, and their mean return."""
    agents = agents_of(resolve(scenario))
    env = SubprocSC2VecEnv(task=scenario, n=n, seed=seed)
    won: list[bool] = []
    returns: list[float] = []
    so_far = np.zeros(n)
    try:
        observations: Any = env.reset()
        while len(won) < BATTLES:
            masks = np.stack(env.env_method("action_masks"))
            actions, _ = model.predict(observations, action_masks=masks, deterministic=True)
            observations, rewards, dones, infos = env.step(actions)
            so_far += rewards[::agents]
            for one in finished(dones, agents):
                won.append(infos[one * agents]["battle_won"])
                returns.append(so_far[one])
                so_far[one] = 0.0
    finally:
        env.close()
    return float(np.mean(won[:BATTLES])), float(np.mean(returns[:BATTLES]))


def finished(dones: np.ndarray[Any, np.dtype[np.bool_]], agents: int) -> Sequence[int]:
    """The envs whose battle is over."""
    envs: list[int] = np.flatnonzero(dones[::agents]).tolist()
    return envs


if __name__ == "__main__":
    main()
