"""PPO's update for data that an older policy has collected.

The loss uses three policies (Hilton, Cobbe and Schulman 2021, "Batch size-invariance for policy
optimization").

The *behaviour* policy chose the actions of the rollout.
The *proximal* policy is the learner's policy when the update begins.
The *current* policy is the policy while the update changes it.

PPO assumes that behaviour and proximal policy are the same. The decoupled loss clips the ratio
current / proximal. The loss also multiplies each action's term by an importance weight: the ratio
proximal / behaviour, up to a cap. Clipping around the behaviour policy would pull the learner back
to an old policy. Without importance weights, the loss would not correct for the older policy.

`update` is the `train` of SB3's PPO (`stable_baselines3/ppo/ppo.py`) with the decoupled loss. If
all three policies are the same, this loss equals PPO's loss. The rollout buffer has the behaviour
policy's log-probs. The proximal log-probs are computed before the first epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.type_aliases import RolloutBufferSamples
from stable_baselines3.common.utils import explained_variance
from torch.nn import functional

_EVALUATION_BATCH: Final = 1024
"""The number of samples in one forward pass without gradients."""


def importance_weights(
    proximal_log_prob: th.Tensor, behaviour_log_prob: th.Tensor, cap: float
) -> th.Tensor:
    """Each action's weight min(π_proximal / π_behaviour, cap), float (n,), without a gradient.

    The log-probs are float (n,). For an action that the policy has not chosen, the behaviour
    policy's log-prob is infinity, so the weight is 0. The cap limits the gradient's variance.
    """
    return th.exp(proximal_log_prob - behaviour_log_prob).clamp(max=cap).detach()


def policy_loss(
    advantages: th.Tensor,
    log_prob: th.Tensor,
    proximal_log_prob: th.Tensor,
    weights: th.Tensor,
    clip_range: float,
) -> th.Tensor:
    """PPO's clipped surrogate loss around the proximal policy, weighted; a scalar to minimise.

    All tensors are float (n,). `log_prob` belongs to the current policy. The advantages may be
    normalised. The ratio current / proximal is clipped to 1 ± `clip_range`.
    """
    ratio = th.exp(log_prob - proximal_log_prob)
    clipped = th.clamp(ratio, 1 - clip_range, 1 + clip_range)
    return -(weights * th.min(advantages * ratio, advantages * clipped)).mean()


def update(model: PPO, weight_cap: float) -> None:
    """Update the policy with the rollout buffer, with importance weights of at most `weight_cap`.

    The buffer is full and has the behaviour policy's log-probs.
    """
    model._update_learning_rate(model.policy.optimizer)
    progress = model._current_progress_remaining
    clip_range = model.clip_range(progress)  # type: ignore[operator]
    clip_range_vf = None
    if model.clip_range_vf is not None:
        clip_range_vf = model.clip_range_vf(progress)  # type: ignore[operator]

    proximal_log_probs, behaviour_log_probs = buffer_log_probs(model)
    weights = importance_weights(proximal_log_probs, behaviour_log_probs, weight_cap)
    uncapped = importance_weights(proximal_log_probs, behaviour_log_probs, float("inf"))
    model.logger.record("async/weight_mean", weights.mean().item())
    model.logger.record("async/weight_max", uncapped.max().item())
    model.logger.record("async/weight_capped", (uncapped > weights).float().mean().item())

    model.policy.set_training_mode(True)
    all_terms: list[dict[str, float]] = []
    kl_too_large = False
    for epoch in range(model.n_epochs):
        approx_kls = []
        for indices, batch in _minibatches(model, shuffled=True, size=model.batch_size):
            loss, terms = _loss(
                model,
                batch,
                proximal_log_probs[indices],
                weights[indices],
                clip_range=clip_range,
                clip_range_vf=clip_range_vf,
            )
            all_terms.append(terms)
            approx_kl = terms["approx_kl"]
            approx_kls.append(approx_kl)
            kl_too_large = model.target_kl is not None and approx_kl > 1.5 * model.target_kl
            if kl_too_large:
                if model.verbose >= 1:
                    print(f"Early stopping at step {epoch} due to reaching max kl: {approx_kl:.2f}")
                break
            model.policy.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            th.nn.utils.clip_grad_norm_(model.policy.parameters(), model.max_grad_norm)
            model.policy.optimizer.step()
        model._n_updates += 1
        if kl_too_large:
            break
    _log_update(model, all_terms, approx_kls, clip_range, clip_range_vf)


def buffer_log_probs(model: PPO) -> tuple[th.Tensor, th.Tensor]:
    """The log-probs, float (n,), of the buffer's actions under current and behaviour policy."""
    model.policy.set_training_mode(False)
    now, behaviour = [], []
    with th.no_grad():
        for _, batch in _minibatches(model, shuffled=False, size=_EVALUATION_BATCH):
            now.append(model.policy.evaluate_actions(batch.observations, _actions(model, batch))[1])
            behaviour.append(batch.old_log_prob)
    return th.cat(now), th.cat(behaviour)


def _minibatches(
    model: PPO, *, shuffled: bool, size: int
) -> Iterator[tuple[th.Tensor, RolloutBufferSamples]]:
    """Yield the whole buffer in batches, each batch with the indices of its samples."""
    buffer = model.rollout_buffer
    total = buffer.buffer_size * buffer.n_envs
    if not buffer.generator_ready:
        next(buffer.get(1))  # this call flattens steps and envs to one axis
    order = np.random.permutation(total) if shuffled else np.arange(total)
    for start in range(0, total, size):
        indices = order[start : start + size]
        yield th.as_tensor(indices, device=model.device), buffer._get_samples(indices)


def _actions(model: PPO, batch: RolloutBufferSamples) -> th.Tensor:
    """The batch's actions in the shape and type of the policy's distribution."""
    if isinstance(model.action_space, spaces.Discrete):
        return batch.actions.long().flatten()
    return batch.actions


def _loss(
    model: PPO,
    batch: RolloutBufferSamples,
    proximal_log_prob: th.Tensor,
    weights: th.Tensor,
    *,
    clip_range: float,
    clip_range_vf: float | None,
) -> tuple[th.Tensor, dict[str, float]]:
    """The loss of a minibatch, and its terms by log name."""
    values, log_prob, entropy = model.policy.evaluate_actions(
        batch.observations, _actions(model, batch)
    )
    values = values.flatten()
    # If the policy has not chosen an action, its ratio may be infinite, and 0 * inf is nan.
    log_prob = th.where(weights > 0, log_prob, proximal_log_prob)
    advantages = batch.advantages
    if model.normalize_advantage and len(advantages) > 1:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    policy_gradient_loss = policy_loss(advantages, log_prob, proximal_log_prob, weights, clip_range)
    if clip_range_vf is not None:
        change = th.clamp(values - batch.old_values, -clip_range_vf, clip_range_vf)
        values = batch.old_values + change
    value_loss = functional.mse_loss(batch.returns, values)
    entropy_loss = -th.mean(-log_prob if entropy is None else entropy)
    loss = policy_gradient_loss + model.ent_coef * entropy_loss + model.vf_coef * value_loss
    with th.no_grad():
        log_ratio = log_prob - proximal_log_prob
        ratio = th.exp(log_ratio)
        # The estimator k3 of http://joschu.net/blog/kl-approx.html, as in SB3.
        approx_kl = th.mean((ratio - 1) - log_ratio)
        clip_fraction = (th.abs(ratio - 1) > clip_range).float().mean()
    terms = {
        "entropy_loss": entropy_loss,
        "policy_gradient_loss": policy_gradient_loss,
        "value_loss": value_loss,
        "clip_fraction": clip_fraction,
        "loss": loss,
        "approx_kl": approx_kl,
    }
    return loss, {name: term.item() for name, term in terms.items()}


def _log_update(
    model: PPO,
    all_terms: list[dict[str, float]],
    approx_kls: list[float],
    clip_range: float,
    clip_range_vf: float | None,
) -> None:
    """Log the figures that SB3 logs after an update, under SB3's names."""
    values, returns = model.rollout_buffer.values, model.rollout_buffer.returns
    figures: dict[str, float] = {
        **{name: float(np.mean([each[name] for each in all_terms])) for name in all_terms[-1]},
        "loss": all_terms[-1]["loss"],
        "approx_kl": float(np.mean(approx_kls)),  # the mean over the last epoch only
        "explained_variance": float(explained_variance(values.flatten(), returns.flatten())),
        "clip_range": clip_range,
    }
    if isinstance(log_std := getattr(model.policy, "log_std", None), th.Tensor):
        figures["std"] = th.exp(log_std).mean().item()
    if clip_range_vf is not None:
        figures["clip_range_vf"] = clip_range_vf
    for name, value in figures.items():
        model.logger.record(f"train/{name}", value)
    model.logger.record("train/n_updates", model._n_updates, exclude="tensorboard")
