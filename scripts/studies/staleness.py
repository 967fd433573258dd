"""How PPO learns from data that is some rollouts old, with three losses.

    python scripts/studies/staleness.py                       # CartPole, 4 rollouts old
    python scripts/studies/staleness.py --lag 0 --seeds 1

plain       PPO's own: it clips around the policy that has gathered the data.
recomputed  The old log-probs are computed anew before the epochs, and nothing else, as if the
            learner's own policy had gathered the data.
decoupled   The loss of `AsyncPPO`.

Actor and learner take turns here, so all data has exactly this age and a run is repeatable. The
table shows the mean return of the last hundred episodes, for each loss and seed.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import VecEnv, VecMonitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from sc2pool import AsyncPPO
from sc2pool.cli.bench.output import markdown, tell
from sc2pool.realtime.async_ppo.actor import Actor
from sc2pool.realtime.async_ppo.decoupled import buffer_log_probs
from sc2pool.realtime.async_ppo.exchange import Exchange, Gaps, Rollout, RolloutStore, Weights


class Delaying(Weights):
    """Weights that reach the actor `lag` versions late."""

    def __init__(self, policy: ActorCriticPolicy, lag: int) -> None:
        super().__init__(policy)
        self.delayed = Weights(policy)
        self._held = deque([self.newest] * lag)

    def publish(self, policy: ActorCriticPolicy) -> None:
        super().publish(policy)
        self._held.append(self.newest)
        self.delayed.newest = self._held.popleft()


class Lockstep(RolloutStore):
    """Plays a rollout when the learner asks for it."""

    def __init__(self, n_steps: int, actor: Actor) -> None:
        super().__init__(n_steps)
        self._actor = actor

    def take(self, oldest_version: int) -> Rollout:
        while not self.add(self._actor.step()):
            pass
        return super().take(oldest_version)


class Decoupled(AsyncPPO):
    """`AsyncPPO` without its thread, and with data that is exactly `max_lag` rollouts old."""

    @contextmanager
    def _running_actor(self, env: VecEnv, policy: ActorCriticPolicy) -> Iterator[Exchange]:
        weights, gaps = Delaying(self.policy, self.max_lag), Gaps()
        actor = self._new_actor(env, policy, weights.delayed, gaps)
        self._exchange = Exchange(weights, Lockstep(self.n_steps, actor), gaps)
        yield self._exchange
        self._exchange = None


class Plain(Decoupled):
    """Clips around the behaviour policy."""

    def train(self) -> None:
        PPO.train(self)


class Recomputed(Decoupled):
    """Treats the data as the learner's own."""

    def train(self) -> None:
        proximal_log_probs, _ = buffer_log_probs(self)
        self.rollout_buffer.log_probs[:, 0] = proximal_log_probs.numpy()
        PPO.train(self)


LOSSES: dict[str, type[Decoupled]] = {
    "plain": Plain,
    "recomputed": Recomputed,
    "decoupled": Decoupled,
}


class CartPoles(VecEnv):
    """Gymnasium's vectorised CartPole, with SB3's reset in the step that ends an episode."""

    def __init__(self, n: int) -> None:
        self._poles = CartPoleVectorEnv(n)
        self.render_mode = None
        poles = self._poles
        super().__init__(n, poles.single_observation_space, poles.single_action_space)

    def reset(self) -> np.ndarray:
        return self._poles.reset(seed=self._seeds[0])[0]

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        poles = self._poles
        observations, rewards, terminated, truncated, _ = poles.step(self._actions)
        dones = poles.prev_done
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for env in np.flatnonzero(dones):
            infos[env]["terminal_observation"] = observations[env].copy()
            infos[env]["TimeLimit.truncated"] = bool(truncated[env] and not terminated[env])
        poles.state[:, dones] = poles.np_random.uniform(-0.05, 0.05, (4, int(dones.sum())))
        poles.steps[dones] = 0
        poles.prev_done = np.zeros_like(dones)
        return poles.state.T.astype(np.float32), rewards, dones, infos

    def close(self) -> None:
        self._poles.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:  # noqa: ARG002
        return [False] * self.num_envs


def mean_return(loss: str, *, lag: int, seed: int, steps: int) -> float:
    """Mean return of the last hundred episodes of a training on CartPole.

    Many epochs at a high learning rate make the policy change much in four updates, so that the
    losses differ.
    """
    env = VecMonitor(CartPoles(32))
    model = LOSSES[loss](
        "MlpPolicy",
        env,
        n_steps=32,
        batch_size=1024,
        n_epochs=20,
        learning_rate=1e-3,
        policy_kwargs={"net_arch": [64]},
        seed=seed,
        max_lag=lag,
        device="cpu",
    )
    model.learn(steps)
    env.close()
    assert model.ep_info_buffer is not None
    return float(np.mean([episode["r"] for episode in model.ep_info_buffer]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lag", type=int, default=4, help="how many rollouts old the data is")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100_000)
    options = parser.parse_args()
    rows = []
    for loss in LOSSES:
        means = [
            mean_return(loss, lag=options.lag, seed=seed, steps=options.steps)
            for seed in range(options.seeds)
        ]
        rows.append((loss, f"{np.mean(means):.0f}", ", ".join(f"{mean:.0f}" for mean in means)))
        tell(f"{loss}: {rows[-1][1]}")
    print(markdown((f"loss, {options.lag} rollouts old", "mean", "of each seed"), rows))


if __name__ == "__main__":
    main()
