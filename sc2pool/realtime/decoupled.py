"""The policy's loss where data was gathered by an older policy than the one that is improved.

Three policies are told apart (Hilton, Cobbe and Schulman 2021, "Batch size-invariance for policy
optimization"): the *behaviour* policy has chosen the actions; the *proximal* one is what the
learner has when its update begins; the *current* one is what the update makes of it. PPO takes the
first two for one. Its clipping keeps the current policy near the proximal one, whatever the age of
the data; that other actions were chosen than the proximal policy would choose is corrected by an
importance weight. Clipping around the behaviour policy instead would pull back to an old policy,
and forgetting it (calling the proximal log-probs the old ones) leaves the data uncorrected.

Rules: pure functions of tensors; where all three are one policy, the loss is PPO's.
"""

from __future__ import annotations

import torch as th


def importance_weights(
    proximal_log_prob: th.Tensor, behaviour_log_prob: th.Tensor, cap: float
) -> th.Tensor:
    """min(π_proximal / π_behaviour, cap) of each action.

    Args:
        proximal_log_prob: float (n,).
        behaviour_log_prob: float (n,).
        cap: bounds what a single action can weigh, and with it the variance.

    Returns:
        float (n,), without a gradient.
    """
    return th.exp(proximal_log_prob - behaviour_log_prob).clamp(max=cap).detach()


def policy_loss(
    advantages: th.Tensor,
    log_prob: th.Tensor,
    proximal_log_prob: th.Tensor,
    weights: th.Tensor,
    clip_range: float,
) -> th.Tensor:
    """The clipped surrogate around the proximal policy, weighted; to be minimised.

    Args:
        advantages: float (n,), normalised or not.
        log_prob: float (n,), of the current policy.
        proximal_log_prob: float (n,).
        weights: float (n,), from `importance_weights`.
        clip_range: how far current over proximal may move from 1 and still gain.

    Returns:
        A scalar.
    """
    ratio = th.exp(log_prob - proximal_log_prob)
    clipped = th.clamp(ratio, 1 - clip_range, 1 + clip_range)
    return -(weights * th.min(advantages * ratio, advantages * clipped)).mean()
