"""Envs and models for tests of `AsyncPPO` and similar classes; child processes import them."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import gymnasium
import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn

from sc2pool import AsyncPPO

SMALL = {"net_arch": [8]}


class Counting(gymnasium.Env[Any, int]):
    """An env that observes its number of steps since it was made. Episodes have five steps."""

    observation_space: spaces.Space[Any] = spaces.Box(0, np.inf, (1,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self, fails_at: int | None = None) -> None:
        self._fails_at = fails_at
        self._steps = 0
        self.resets = 0

    def observe(self) -> Any:
        return np.array([self._steps], np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.resets += 1
        return self.observe(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        if self._steps == self._fails_at:
            raise ZeroDivisionError("the env has failed")
        truncated = self._steps % 5 == 0
        return self.observe(), 1.0, False, truncated, {"played": int(action), "at": self._steps}


class Continuous(Counting):
    """`Counting` with a continuous action."""

    action_space = spaces.Box(-2.0, 2.0, (1,), np.float32)  # type: ignore[assignment]

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(0)
        return observation, reward, terminated, truncated, {**info, "played": action}


class CountingDict(Counting):
    """`Counting` with a dict of two observations."""

    observation_space = spaces.Dict(
        count=spaces.Box(0, np.inf, (1,), np.float32), odd=spaces.Discrete(2)
    )

    def observe(self) -> Any:
        return {"count": super().observe(), "odd": self._steps % 2}


class Interrupting(Counting):
    """An env that sends one SIGINT, like Ctrl-C, while the learner waits for a step."""

    pressed = False

    def step(self, action: int) -> Any:
        if self._steps == 30 and not Interrupting.pressed:
            Interrupting.pressed = True
            os.kill(os.getpid(), signal.SIGINT)
        return super().step(action)


class SlowUpdates(AsyncPPO):
    """An algorithm that sleeps before each update."""

    update_s = 0.2

    def train(self) -> None:
        time.sleep(self.update_s)
        super().train()


class VerySlowUpdates(SlowUpdates):
    update_s = 0.6
    """The sleep before an update in seconds, in which a game in real time plays 13 loops."""


class SlowPPO(PPO):
    """SB3's PPO, which sleeps before each update, as `SlowUpdates` does."""

    def train(self) -> None:
        time.sleep(VerySlowUpdates.update_s)
        super().train()


class Obstinate(ActorCriticPolicy):
    """A policy that always chooses the action `always`, if `always` is set."""

    always: int | None = None

    def forward(self, obs: Any, deterministic: bool = False) -> Any:
        actions, values, log_probs = super().forward(obs, deterministic)
        if self.always is not None:
            actions = th.full_like(actions, self.always)
        return actions, values, log_probs


class Linear(nn.Module):
    """A network that replaces a policy's `mlp_extractor`, and multiplies its output by a factor."""

    factor = 1.0

    def __init__(self, policy: ActorCriticPolicy) -> None:
        super().__init__()
        self.latent_dim_pi = self.latent_dim_vf = policy.mlp_extractor.latent_dim_pi
        self.both = nn.Linear(policy.features_dim, self.latent_dim_pi)
        self.register_buffer("calls", th.zeros(()))

    def forward(self, features: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: th.Tensor) -> th.Tensor:
        if self.training:
            self.calls += 1
        return self.both(features) * self.factor

    def forward_critic(self, features: th.Tensor) -> th.Tensor:
        return self.both(features) * self.factor


class Counted(AsyncPPO):
    """Counts its updates; the second update changes the optimizer and freezes fewer layers."""

    def train(self) -> None:
        self.updates = getattr(self, "updates", 0) + 1
        super().train()
        if self.updates == 2:
            for parameter in self.policy.parameters():
                parameter.requires_grad_(True)
            self.policy.optimizer = th.optim.SGD(self.policy.parameters(), lr=0.1)


class Hiding(AsyncPPO):
    """A model whose update removes an attribute, and sets another to an unpicklable object."""

    def train(self) -> None:
        super().train()
        del self.removed
        self.kept = threading.Lock()


class Locking(AsyncPPO):
    """A model that needs one of its attributes, although pickle rejects the attribute."""

    def train(self) -> None:
        with self.lock:
            super().train()


class FailingUpdates(AsyncPPO):
    """A model that raises an error in its second update."""

    def train(self) -> None:
        if self._n_updates:
            raise FloatingPointError("the update has failed")
        super().train()
