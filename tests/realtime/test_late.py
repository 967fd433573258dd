"""Late actions: each step gets an action, and the data stored for a step belongs to this step.

The policies here are late on purpose: every choice except the first waits until the envs have made
three more steps.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch as th
from async_callbacks import Recording
from async_models import SMALL, Continuous, Counting, CountingDict
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy, MultiInputActorCriticPolicy
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from sc2pool import AsyncDQN, AsyncPPO, AsyncSAC
from sc2pool.errors import ConfigError
from sc2pool.realtime.acting import LateActions, check_late_actions

pytestmark = pytest.mark.usefixtures("no_thread_is_left")

N = 2
LATE = 3
EPISODE = 5
"""The number of steps in an episode."""


class Clock:
    """Counts the envs' steps. The late policies wait for this count to rise."""

    steps = 0
    model: Any = None
    """The model whose actor acts. A waiting policy must stop its wait when this actor ends."""
    seen: list[int]
    """The observations for which the policies chose, in order; each observation is a count."""

    @classmethod
    def be_late(cls, observations: Any) -> None:
        count = observations["count"] if isinstance(observations, dict) else observations
        seen = int(count[0, 0])
        cls.seen.append(seen)
        while 0 < seen > cls.steps - LATE and cls.model._actor._exchanged.learning.locked():
            threading.Event().wait(0.001)


class Ticks(Counting):
    def step(self, action: Any) -> Any:
        result = super().step(action)
        Clock.steps = self._steps
        return result


class ContinuousTicks(Ticks, Continuous):
    pass


class DictTicks(Ticks, CountingDict):
    pass


class Late:
    """A mixin that makes the choices of an off-policy algorithm late."""

    def _sample_action(self, *args: Any) -> Any:
        Clock.be_late(self._last_obs)  # type: ignore[attr-defined]
        return super()._sample_action(*args)  # type: ignore[misc]


class LateDQN(Late, AsyncDQN):
    pass


class LateSAC(Late, AsyncSAC):
    pass


class LateForward:
    """A mixin that makes the choices of a policy late."""

    def forward(self, obs: Any, deterministic: bool = False) -> Any:
        Clock.be_late(obs)
        return super().forward(obs, deterministic)  # type: ignore[misc]


class LatePolicy(LateForward, ActorCriticPolicy):
    pass


class LateDictPolicy(LateForward, MultiInputActorCriticPolicy):
    pass


def model_of(kind: Any, policy: Any, make: Any, **options: Any) -> Any:
    Clock.steps, Clock.seen = 0, []
    env = VecMonitor(DummyVecEnv([make] * N))
    defaults = {"policy_kwargs": dict(SMALL), "device": "cpu", "late_after_s": 0.002}
    Clock.model = kind(policy, env, **(defaults | options))
    return Clock.model


OFF_POLICY = {"learning_starts": 10, "batch_size": 8, "train_freq": 4}


def played_by(recording: Recording) -> Any:
    """The action of each step and env, after a check that no step is missing."""
    steps = recording.steps
    assert [step["infos"][0]["at"] for step in steps] == list(range(1, len(steps) + 1))
    return np.array([[info["played"] for info in step["infos"]] for step in steps]).reshape(-1, N)


def test_off_policy_stores_each_period_with_its_own_observation():
    options = OFF_POLICY | {"learning_starts": 10**6}  # all actions are random, so no two are equal
    model, recording = model_of(LateSAC, "MlpPolicy", ContinuousTicks, **options), Recording()
    model.learn(60 * N, callback=recording)
    played, buffer = played_by(recording), model.replay_buffer
    size = buffer.pos
    np.testing.assert_array_equal(buffer.observations[:size, 0, 0], np.arange(size))
    np.testing.assert_array_equal(buffer.next_observations[:size, 0, 0], np.arange(size) + 1)
    stored = model.policy.unscale_action(buffer.actions[: len(played)])[..., 0]
    np.testing.assert_allclose(stored, played, rtol=1e-5, atol=1e-6)
    fresh = np.flatnonzero(np.any(np.diff(played, axis=0, prepend=np.inf) != 0, axis=1))
    # After the first step with a new choice, the policy gets the observation of this step.
    assert Clock.seen[1 : len(fresh)] == (fresh[:-1] + 1).tolist()
    assert np.all(np.diff(fresh) > LATE)


def test_a_function_chooses_late_actions():
    calls: list[tuple[int, int, list[int], list[int]]] = []

    def on_late(chosen: Any, n_late: int) -> Any:
        actions = (chosen + n_late) % 3
        calls.append((Clock.steps, n_late, chosen.tolist(), actions.tolist()))
        return actions

    recording = Recording()
    model = model_of(LateDQN, "MlpPolicy", Ticks, on_late=on_late, **OFF_POLICY)
    model.learn(40 * N, callback=recording)
    played = played_by(recording)
    late = {step: actions for step, _, _, actions in calls if step < len(played)}
    assert all(played[step].tolist() == actions for step, actions in late.items())
    assert [n_late for _, n_late, _, _ in calls][: LATE + 1] >= [1, 2, 3]
    for step, n_late, chosen, _ in calls:
        if step < len(played):
            assert played[step - n_late].tolist() == chosen, "the last actions of the policy"


class KeepsRollouts(Recording):
    """Stores each rollout buffer with the learner's values, and the mean weight of each update."""

    def __init__(self) -> None:
        super().__init__()
        self.rollouts: list[tuple[Any, Any, Any, Any]] = []
        self.mean_weights: list[float] = []

    def _on_rollout_start(self) -> None:
        self.mean_weights.append(self.logger.name_to_value["async/weight_mean"])

    def _on_rollout_end(self) -> None:
        buffer, policy = self.model.rollout_buffer, self.model.policy
        counts = buffer.observations
        if isinstance(counts, dict):
            batch = {key: value.reshape(-1, value.shape[-1]) for key, value in counts.items()}
            counts = counts["count"]
        else:
            batch = counts.reshape(-1, 1)
        with th.no_grad():
            values = policy.predict_values(policy.obs_to_tensor(batch)[0]).numpy()
        shape = buffer.values.shape
        self.rollouts.append(
            (
                counts[..., 0].copy(),
                buffer.log_probs.copy(),
                buffer.values.copy(),
                values.reshape(shape),
            )
        )


@pytest.mark.parametrize(
    ("policy", "make", "options"),
    [
        (LatePolicy, Ticks, {}),
        (LateDictPolicy, DictTicks, {"on_late": 1}),
        (LatePolicy, ContinuousTicks, {"on_late": np.array([2.0], np.float32)}),
    ],
)
def test_ppo_learns_probabilities_only_of_actions_that_the_policy_has_chosen(policy, make, options):
    n_steps, rollouts = 16, 4
    settings = {"n_steps": n_steps, "batch_size": n_steps, "n_epochs": 2, "game_waits": True}
    settings["max_lag"] = rollouts
    model, keeps = model_of(AsyncPPO, policy, make, **settings, **options), KeepsRollouts()
    model.learn(rollouts * n_steps * N, callback=keeps, log_interval=rollouts + 1)
    played_by(keeps)
    counts, log_probs, values, expected = (
        np.concatenate(part) for part in zip(*keeps.rollouts, strict=True)
    )
    index = np.arange(len(counts), dtype=np.float32)[:, None]
    chosen = np.isfinite(log_probs)
    assert np.all(log_probs[~chosen] == np.inf)
    assert np.all(np.broadcast_to(counts == index, chosen.shape)[~chosen])
    # A late action is stored with the observation for which it was chosen, in the same episode.
    is_delayed = chosen & (index > 0)
    assert np.all((index - counts)[is_delayed] >= LATE)
    assert np.all((index // EPISODE == counts // EPISODE)[is_delayed])
    assert set(counts[chosen]) <= set(map(float, Clock.seen))
    assert 0 < is_delayed.sum() < chosen.size / LATE
    np.testing.assert_allclose(values[~chosen], expected[~chosen], rtol=1e-3, atol=1e-4)
    assert all(th.isfinite(value).all() for value in model.policy.state_dict().values())
    # On a busy machine, all actions of a rollout may be late.
    assert 0 < max(keeps.mean_weights) < 0.5
    assert model.logger.name_to_value["async/late_steps"] >= len(counts) / 2 * N


def test_an_error_of_a_choice_is_raised_by_learn():
    class Fails(LateDQN):
        def _sample_action(self, *args: Any) -> Any:
            if Clock.steps > 3:
                raise ArithmeticError("the choice has failed")
            return super()._sample_action(*args)

    with pytest.raises(ArithmeticError, match="the choice has failed"):
        model_of(Fails, "MlpPolicy", Ticks, **OFF_POLICY).learn(10**6)


def test_a_function_that_returns_another_shape_is_a_config_error():
    model = model_of(LateDQN, "MlpPolicy", Ticks, on_late=lambda chosen, n: 1, **OFF_POLICY)
    with pytest.raises(ConfigError, match=r"shape \(2,\), got \(\)"):
        model.learn(10**6)


@pytest.mark.parametrize(
    ("on_late", "chosen", "expected"),
    [
        ("repeat", [1, 2], [1, 2]),
        (0, [1, 2], [0, 0]),
        (np.array([0.5, 1.0]), [[1.0, 2.0], [3.0, 4.0]], [[0.5, 1.0], [0.5, 1.0]]),
        (lambda chosen, n: chosen * n, [1, 2], [3, 6]),
    ],
)
def test_late_actions(on_late, chosen, expected):
    actions = LateActions(0.1, on_late).actions(np.array(chosen), 3)
    assert actions.tolist() == expected
    assert actions.flags.writeable


@pytest.mark.parametrize(
    ("after_s", "on_late", "message"),
    [
        (0.0, "repeat", "above 0, got 0.0"),
        (float("inf"), "repeat", "got inf"),
        ("soon", "repeat", "got 'soon'"),
        (0.1, "noop", "an action of Discrete.* got 'noop'"),
        (0.1, 3, "got 3"),
        (0.1, np.zeros(2), "got array"),
        (None, 0, "on_late=0 needs late_after_s"),
    ],
)
def test_invalid_settings_are_config_errors(after_s, on_late, message):
    with pytest.raises(ConfigError, match=message):
        model_of(AsyncDQN, "MlpPolicy", Ticks, late_after_s=after_s, on_late=on_late)


def test_valid_settings():
    check_late_actions(0.1, 2, spaces.Discrete(3))
    check_late_actions(0.1, np.array([0, 1]), spaces.MultiDiscrete([2, 2]))
    check_late_actions(0.1, np.zeros(1), spaces.Box(-1.0, 1.0, (1,)))
    check_late_actions(0.1, lambda chosen, n: chosen, spaces.Discrete(3))
