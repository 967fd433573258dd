"""PPO whose update can bear data of an older policy.

The same update as SB3's (`stable_baselines3/ppo/ppo.py`, `train`), with the loss of
`sc2pool.realtime.decoupled`. Rules: before the first epoch one pass without gradients tells what
the policy thinks of the buffer's actions now; the buffer's own log-probs are the behaviour
policy's, whoever that was; what SB3 logs is logged under the same names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.type_aliases import RolloutBufferSamples
from stable_baselines3.common.utils import explained_variance
from torch.nn import functional

from sc2pool.realtime.decoupled import importance_weights, policy_loss

_EVALUATED_AT_ONCE = 1024
"""Samples in one forward pass without gradients."""


class Terms(NamedTuple):
    """What is logged of a minibatch."""

    entropy_loss: float
    policy_gradient_loss: float
    value_loss: float
    clip_fraction: float
    loss: float
    approx_kl: float


class DecoupledPPO(PPO):
    """PPO with a decoupled policy loss; on data of its own policy it is PPO.

    Attributes:
        weight_cap: the most that a single action's importance weight counts.
    """

    weight_cap: float = 5.0

    def train(self) -> None:
        """Update the policy with the rollout buffer; PPO's, with the decoupled loss."""
        self._update_learning_rate(self.policy.optimizer)
        progress = self._current_progress_remaining
        clip_range = self.clip_range(progress)  # type: ignore[operator]
        clip_range_vf = None
        if self.clip_range_vf is not None:
            clip_range_vf = self.clip_range_vf(progress)  # type: ignore[operator]
        proximal_log_probs, weights = self._before_the_epochs()
        self.policy.set_training_mode(True)
        computed: list[Terms] = []
        kl_too_large = False
        for epoch in range(self.n_epochs):
            approx_kls = []
            for indices, batch in self._minibatches(shuffled=True, size=self.batch_size):
                loss, terms = self._loss(
                    batch, proximal_log_probs[indices], weights[indices], clip_range, clip_range_vf
                )
                computed.append(terms)
                approx_kls.append(terms.approx_kl)
                kl_too_large = self.target_kl is not None and terms.approx_kl > 1.5 * self.target_kl
                if kl_too_large:
                    if self.verbose >= 1:
                        print(
                            f"Early stopping at step {epoch} due to reaching max kl: "
                            f"{terms.approx_kl:.2f}"
                        )
                    break
                self.policy.optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                th.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
                self.policy.optimizer.step()
            self._n_updates += 1
            if kl_too_large:
                break
        self._record_update(computed, approx_kls, clip_range, clip_range_vf)

    def _loss(
        self,
        batch: RolloutBufferSamples,
        proximal_log_prob: th.Tensor,
        weights: th.Tensor,
        clip_range: float,
        clip_range_vf: float | None,
    ) -> tuple[th.Tensor, Terms]:
        """A minibatch's loss, and what of it is logged."""
        values, log_prob, entropy = self.policy.evaluate_actions(
            batch.observations, self._as_chosen(batch.actions)
        )
        values = values.flatten()
        advantages = batch.advantages
        if self.normalize_advantage and len(advantages) > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        of_policy = policy_loss(advantages, log_prob, proximal_log_prob, weights, clip_range)
        if clip_range_vf is not None:
            moved = th.clamp(values - batch.old_values, -clip_range_vf, clip_range_vf)
            values = batch.old_values + moved
        of_values = functional.mse_loss(batch.returns, values)
        of_entropy = -th.mean(-log_prob if entropy is None else entropy)
        loss = of_policy + self.ent_coef * of_entropy + self.vf_coef * of_values
        with th.no_grad():
            log_ratio = log_prob - proximal_log_prob
            ratio = th.exp(log_ratio)
            approx_kl = th.mean((ratio - 1) - log_ratio)
            clip_fraction = (th.abs(ratio - 1) > clip_range).float().mean()
        logged = (of_entropy, of_policy, of_values, clip_fraction, loss, approx_kl)
        return loss, Terms(*(term.item() for term in logged))

    def _record_update(
        self,
        computed: list[Terms],
        approx_kls: list[float],
        clip_range: float,
        clip_range_vf: float | None,
    ) -> None:
        """What SB3 logs of an update, under the same names."""
        mean = Terms(*np.mean(computed, axis=0).tolist())
        values, returns = self.rollout_buffer.values, self.rollout_buffer.returns
        figures: dict[str, float] = {
            **mean._asdict(),
            "loss": computed[-1].loss,
            "approx_kl": float(np.mean(approx_kls)),  # of the last epoch alone
            "explained_variance": float(explained_variance(values.flatten(), returns.flatten())),
            "clip_range": clip_range,
        }
        if isinstance(log_std := getattr(self.policy, "log_std", None), th.Tensor):
            figures["std"] = th.exp(log_std).mean().item()
        if clip_range_vf is not None:
            figures["clip_range_vf"] = clip_range_vf
        for name, value in figures.items():
            self.logger.record(f"train/{name}", value)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def _before_the_epochs(self) -> tuple[th.Tensor, th.Tensor]:
        """The proximal policy's log-probs, and the importance weights, in the buffer's order."""
        self.policy.set_training_mode(False)
        proximal, behaviour = [], []
        with th.no_grad():
            for _, batch in self._minibatches(shuffled=False, size=_EVALUATED_AT_ONCE):
                actions = self._as_chosen(batch.actions)
                proximal.append(self.policy.evaluate_actions(batch.observations, actions)[1])
                behaviour.append(batch.old_log_prob)
        of_proximal, of_behaviour = th.cat(proximal), th.cat(behaviour)
        weights = importance_weights(of_proximal, of_behaviour, self.weight_cap)
        uncapped = importance_weights(of_proximal, of_behaviour, float("inf"))
        self.logger.record("async/weight_mean", weights.mean().item())
        self.logger.record("async/weight_max", uncapped.max().item())
        self.logger.record("async/weight_capped", (uncapped > weights).float().mean().item())
        return of_proximal, weights

    def _minibatches(
        self, *, shuffled: bool, size: int
    ) -> Iterator[tuple[th.Tensor, RolloutBufferSamples]]:
        """All of the buffer, each batch with the places of its samples in the buffer."""
        buffer = self.rollout_buffer
        total = buffer.buffer_size * buffer.n_envs
        if not buffer.generator_ready:
            next(buffer.get(1))  # lays steps and envs end to end
        order = np.random.permutation(total) if shuffled else np.arange(total)
        for start in range(0, total, size):
            indices = order[start : start + size]
            yield th.as_tensor(indices, device=self.device), buffer._get_samples(indices)

    def _as_chosen(self, actions: th.Tensor) -> th.Tensor:
        """Actions out of the buffer, as the policy's distribution takes them."""
        if isinstance(self.action_space, spaces.Discrete):
            return actions.long().flatten()
        return actions
