"""Acting while learning: the parts of every algorithm whose actor steps the env during updates.

`ActsWhileLearning` is the base class of these algorithms.
`Actor` is a thread that steps all envs of a `VecEnv` with its own copy of the policy.
`LateActions` makes actions for games whose policy is late.
`Weights` and `Gaps` carry data, beside the steps, between the actor's and the learner's thread.
`frozen` stops changes of `VecNormalize`'s statistics between two commits.

These rules hold for the actor.
* Between an observation and its action, the actor does the same work as SB3's `collect_rollouts`.
  The actor runs no callback, and waits for the learner only if the `Exchange` makes it wait.
* While the actor's thread runs, no other thread uses the env.
* An error of the env ends the actor's thread, and the learner raises this error.
* The actor's thread ends, and cleans up, when the learner releases `exchange.learning`. The learner
  does not clean up for the actor, because Ctrl-C may interrupt the main thread at any line.
* With `LateActions` a second thread chooses actions while the actor's thread plays late actions.
* `VecNormalize`'s statistics change only after a step for which `_exchange` returns True.

A game gets late actions in the periods in which the policy is still computing. In this diagram,
`env.step` plays an action in every period, and a thread of its own calls the policy.

    `env.step` ──a0──│──a0──│──a1──│──a1──│──a1──│──a2──│
    policy     ─────choose a1─────►  ─────choose a2──────►.

A step of an env in real time lasts until the period's end, so no period is lost if the next step
begins in time. The actor waits `late_after_s` seconds for the policy. After this time it plays a
*late action* in each period until the policy's action is ready. A late action is the policy's last
action again, a given action, or the result of a function.

Each late period is stored as a step of its own.
* Off-policy algorithms learn from any action. Each transition has the observation at its period's
  beginning, the action that was played, and the reward of that period. The Q-value assumes that
  later actions are chosen without a delay. Late periods must not be merged into the transition of
  the action that the policy was choosing. An action that is not chosen yet affects neither the
  late periods' rewards nor the next observation, so the Q-value would not depend on the action.
* `AsyncPPO` learns the value of late observations, but not the probability of late actions, because
  the policy has not chosen them. The importance weight of a late action is 0. The policy's next
  action is stored with the observation that the policy saw, because the action's log-prob is for
  this observation. The advantage of an action counts the rewards of the late periods after it. So a
  repeated action gets the credit for all periods in which it was played.

Beside the steps, the actor's and the learner's thread exchange weights and gaps.

    Actor ◄─ WeightVersion ◄─ Weights ◄── learner.
    Actor ── gap ──► Gaps ──► learner's log.

A gap is the time from an observation to its action. Every gap is recorded, even if its step is
dropped. Published weights are never modified, so the actor never mixes two versions.

SB3 updates `VecNormalize`'s statistics in every step. Here the actor's thread steps the env, and at
the same time a callback in the learner's thread may copy or save the statistics. So the statistics
change only in `commit`, and all observations between two commits are normalised alike. A reader
gets mean, variance and count from the same moment. Copies and pickles of the statistics have SB3's
own class.
"""

from __future__ import annotations

import copy
import gc
import math
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, Final, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
import torch as th
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BaseModel, BasePolicy
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from sc2pool.errors import ConfigError
from sc2pool.pool.measures import Durations


class Exchange:
    """The base class of the object to which an actor passes its steps."""

    def __init__(self, *, game_waits: bool) -> None:
        self.learning = threading.Lock()
        """The learner holds this lock while the actor acts. The lock's release ends the actor. At
        the end of a lock's `with` block, no interrupt can prevent the release."""
        self._game_waits = game_waits
        self._added = Signal()
        self._taken = Signal()
        self._error: BaseException | None = None

    def wake_actor(self) -> None:
        """Wake an actor that waits for the learner, so that the actor checks `learning` now."""
        self._taken.give()

    def fail(self, error: BaseException) -> None:
        """Record the actor's error, which the learner raises after all earlier steps."""
        self._error = error
        self._added.give()

    def _wait_for_step(self, error: BaseException | None) -> None:
        """Raise `error`; if `error` is None, wait briefly for the actor's next step."""
        if error is not None:
            raise error
        self._added.wait_briefly()


class Choice(Protocol):
    """The policy's choice for all n envs. Each algorithm adds the data that its learner needs."""

    @property
    def played(self) -> NDArray[Any]:
        """The actions in the form that the envs receive."""


class Played(NamedTuple):
    """The values that `VecEnv.step` returned, copied, because an env may reuse the memory."""

    new_observations: Any
    rewards: NDArray[Any]
    dones: NDArray[np.bool_]
    infos: list[dict[str, Any]]


C = TypeVar("C", bound=Choice)


class Actor(ABC, Generic[C]):
    """Steps all envs with the newest weights while `exchange.learning` is held.

    `model` is the learner's model after `_setup_learn`, so its envs are already reset. `policy` is
    the actor's own copy of the module that chooses actions. `weights` holds the module's newest
    weights. `exchange` receives the steps. `observations` has the newest observations of the n
    envs, along its first axis. `gaps` has the time from each observation to its action.
    `late_steps` counts the steps with late actions; one step of all n envs counts as one.
    """

    def __init__(
        self,
        model: ActsWhileLearning[Any],
        policy: BaseModel,
        weights: Weights,
        exchange: Exchange,
    ) -> None:
        assert model.env is not None
        policy.set_training_mode(False)
        self.observations = copied_observations(model._last_obs)
        self.weights = weights
        self.gaps = Gaps()
        self.late_steps = 0
        self._env: VecEnv = model.env
        self._policy = policy
        self._exchanged = exchange
        self._normalize: VecNormalize | None = model._vec_normalize_env
        self._late: LateActions | None = None
        if model.late_after_s is not None:
            self._late = LateActions(model.late_after_s, model.on_late)
        self._chosen: C | None = None
        self._n_late = 0
        self._stream: th.cuda.Stream | None = None
        if policy.device.type == "cuda":  # in the updates' stream, actions would wait for updates
            self._stream = th.cuda.Stream(policy.device)  # type: ignore[no-untyped-call]
        self._loaded = COPIED
        self._observed_at_s: float | None = None
        self._update_ran = False
        self._thread = threading.Thread(target=self._run, name="sc2pool-actor", daemon=True)

    def start(self) -> None:
        """Start the actor's thread. The caller must hold `exchange.learning`."""
        self._thread.start()

    def finish(self) -> None:
        """Wait until the thread has ended. The caller must have released `exchange.learning`."""
        self._exchanged.wake_actor()
        with suppress(RuntimeError):  # raised if an interrupt prevented the thread's start
            self._thread.join()

    @abstractmethod
    def _choose(self, observations: Any) -> C:
        """Choose actions. `_exchange` and this method may run in different threads."""

    @abstractmethod
    def _choose_late(self, chosen: C, played: NDArray[Any]) -> C:
        """Return a choice with the late actions `played`; `chosen` is the policy's last choice."""

    @abstractmethod
    def _exchange(self, choice: C, played: Played) -> bool:
        """Pass a step to the learner; return True if `VecNormalize`'s statistics may change now.

        `self.observations` still has the observations before the step.
        """

    def _run(self) -> None:
        with nullcontext() if self._late is None else Chooser() as chooser:
            try:
                with frozen(self._normalize) as commit:
                    while self._exchanged.learning.locked():
                        if self._step(chooser):
                            commit()
            except BaseException as error:
                self._exchanged.fail(error)

    def _step(self, chooser: Chooser | None) -> bool:
        choice = self._next_choice(chooser)
        self._record_gap()
        observations, rewards, dones, infos = self._env.step(choice.played)
        self._observed_at_s = time.monotonic()
        self._update_ran = self.gaps.updating
        observations = copied_observations(observations)
        return self._exchange(
            choice, Played(observations, np.array(rewards), np.array(dones), infos)
        )

    def _next_choice(self, chooser: Chooser | None) -> C:
        observations = self.observations
        if self._late is None or chooser is None:
            return self._choose_with_newest_weights(observations)
        timeout_s = None if self._chosen is None else self._late.after_s
        choice = chooser.chosen_within(
            timeout_s, lambda: self._choose_with_newest_weights(observations)
        )
        if choice is None:
            assert self._chosen is not None, "the first choice is awaited"
            self._n_late += 1
            self.late_steps += 1
            actions = self._late.actions(self._chosen.played, self._n_late)
            return self._choose_late(self._chosen, actions)
        self._chosen, self._n_late = choice, 0
        return choice

    def _choose_with_newest_weights(self, observations: Any) -> C:
        with nullcontext() if self._stream is None else th.cuda.stream(self._stream):
            if self.weights.newest is not self._loaded:
                self._load_newest_weights()
            return self._choose(observations)

    def _load_newest_weights(self) -> None:
        # This reference keeps the version's memory alive during the copy to the device.
        self._loaded = self.weights.newest
        self._policy.load_state_dict(self._loaded.state)

    def _record_gap(self) -> None:
        if self._observed_at_s is not None:
            gap_s = time.monotonic() - self._observed_at_s
            self.gaps.record(gap_s, self._update_ran or self.gaps.updating)


def copied_observations(observations: Any) -> Any:
    """A copy of a batch of observations, because an env may reuse the memory."""
    if isinstance(observations, dict):
        return {key: np.array(value) for key, value in observations.items()}
    return np.array(observations)


A = TypeVar("A", bound=Actor[Any])


@contextmanager
def short_collections() -> Iterator[None]:
    """In the block, exempt all objects that exist now from garbage collection.

    Torch and SB3 alone create 200,000 objects. A garbage collection that checks all of them stops
    every thread for 0.1 s or longer, which is more than a decision period of most games.
    """
    theirs = gc.get_freeze_count()  # not 0 if the program has frozen objects itself
    if not theirs:
        gc.collect()
        gc.freeze()
    try:
        yield
    finally:
        if not theirs:
            gc.unfreeze()


class ActsWhileLearning(BaseAlgorithm, Generic[A]):
    """Holds the actor of a running `learn`. Put this class before SB3's class among the bases.

    Args:
        args: The arguments of SB3's class.
        late_after_s: How long the envs wait for the policy's actions, in seconds. After this time
            the envs get late actions, until the policy's actions are ready. Choose less than a
            decision period; the env's `step` must last until the period's end. With None the envs
            wait for the policy without a limit.
        on_late: The kind of late actions. `"repeat"` plays the last actions of the policy again.
            An action of the action space, for example a no-op, is played by all envs. A function
            gets the last actions of the policy, in the form that the n envs received, as an array
            whose first axis is n. It also gets the number of late steps since these actions,
            counted from 1. The function returns late actions in the same shape.
        kwargs: The keyword arguments of SB3's class.

    Raises:
        ConfigError: The value of `late_after_s` or of `on_late` is invalid.
    """

    def __init__(
        self,
        *args: Any,
        late_after_s: float | None = None,
        on_late: OnLate = "repeat",
        **kwargs: Any,
    ) -> None:
        self.late_after_s = late_after_s
        self.on_late = on_late
        self._actor: A | None = None
        check_late_actions(late_after_s, on_late, None)
        super().__init__(*args, **kwargs)
        check_late_actions(late_after_s, on_late, getattr(self, "action_space", None))

    def _warm_up(self, policy: BasePolicy) -> None:
        """Choose an action, compute a gradient and make an optimizer step, all for the first time.

        Without this warm-up, the first gradient and optimizer step would block the interpreter for
        30 ms during play, so the actor would be late. Call this method before the envs are reset,
        because a game in real time does not wait after its reset.
        """
        policy.predict(
            batch_space(self.observation_space, self.n_envs).sample(), deterministic=True
        )
        parameter = th.nn.Parameter(th.zeros(1, device=self.device))
        parameter.sum().backward()  # type: ignore[no-untyped-call]
        th.optim.Adam([parameter]).step()

    def _end_actor(self) -> None:
        """If there is an actor, wait until it has ended.

        Afterwards model and env are in the state in which SB3's `learn` leaves them. If an
        interrupt ends the wait, the next call of `learn` waits again.
        """
        actor = self._actor
        if actor is None:
            return
        actor.finish()
        self._adopt(actor)
        self._actor = None

    def _adopt(self, actor: A) -> None:
        """Give the model the observations of an actor that has ended."""
        if self._last_obs is not None:  # None if `set_env` has given the model another env
            self._last_obs = actor.observations

    def _log_acting(self, actor: A, lags: Sequence[int], figures: Mapping[str, float]) -> None:
        """Log these figures, and the figures that every algorithm has, under `async/…`."""
        figures = {
            **figures,
            "late_steps": actor.late_steps * self.n_envs,
            **actor.gaps.drain(),
        }
        if lags:
            figures |= {"lag_mean": float(np.mean(lags)), "lag_max": max(lags)}
        for name, value in figures.items():
            self.logger.record(f"async/{name}", value)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_actor"]


OnLate = Literal["repeat"] | int | NDArray[Any] | Callable[[NDArray[Any], int], NDArray[Any]]
"""The kind of late actions; see `ActsWhileLearning`."""
T = TypeVar("T")


class LateActions:
    """Makes the late actions during a training; `ActsWhileLearning` explains the arguments."""

    def __init__(self, after_s: float, on_late: OnLate) -> None:
        self.after_s = after_s
        self._on_late = on_late

    def actions(self, chosen: NDArray[Any], n_late: int) -> NDArray[Any]:
        """The actions for all envs in the `n_late`-th late step after the policy's actions.

        Raises `ConfigError` if the user's function returned actions in another shape than `chosen`.
        """
        if isinstance(self._on_late, str):
            return chosen
        if not callable(self._on_late):
            return np.broadcast_to(np.asarray(self._on_late, chosen.dtype), chosen.shape).copy()
        actions = np.asarray(self._on_late(chosen, n_late))
        if actions.shape != chosen.shape:
            raise ConfigError(
                f"on_late must return actions of shape {chosen.shape}, got {actions.shape}"
            )
        return actions


def check_late_actions(
    after_s: float | None, on_late: OnLate, action_space: spaces.Space[Any] | None
) -> None:
    """Raise `ConfigError` if late actions cannot be made from these settings.

    `action_space` is the space of one env's actions; None if the space is not known yet.
    """
    if after_s is None:
        if not isinstance(on_late, str) or on_late != "repeat":
            raise ConfigError(f"on_late={on_late!r} needs late_after_s, which is None")
        return
    if not (isinstance(after_s, int | float) and 0 < after_s < math.inf):
        raise ConfigError(f"late_after_s is a number of seconds above 0, got {after_s!r}")
    if callable(on_late) or action_space is None:
        return
    if isinstance(on_late, str):
        is_valid = on_late == "repeat"
    else:
        is_valid = action_space.contains(np.asarray(on_late, action_space.dtype))
    if not is_valid:
        raise ConfigError(
            f'on_late is "repeat", an action of {action_space}, or a function; got {on_late!r}'
        )


class Chooser:
    """Makes the policy's choices in a thread of its own, which ends with the `with` block."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, "sc2pool-chooser")
        self._pending: Future[Any] | None = None

    def chosen_within(self, timeout_s: float | None, choose: Callable[[], T]) -> T | None:
        """The result of the pending call of `choose`, or None if the call takes too long.

        If no call is pending, begin a call in the other thread. If `timeout_s` is None, wait for
        the result without a limit. This method also raises an error that `choose` has raised.
        """
        if self._pending is None:
            self._pending = self._executor.submit(choose)
        pending: Future[T] = self._pending
        wait([pending], timeout_s)
        if not pending.done():
            return None
        self._pending = None
        return pending.result(0)

    def __enter__(self) -> Chooser:
        return self

    def __exit__(self, *error: object) -> None:
        self._executor.shutdown()


_WAKE_UP_S: Final = 1.0
"""Time limit of a single wait. On some systems Ctrl-C does not interrupt an unlimited wait."""
_MAX_GAPS: Final = 1 << 16
"""The maximum number of gaps that are kept between two log records; older gaps are dropped."""


class Signal:
    """Wakes a thread that waits now or will wait later. Another thread gives the signal.

    The signal is a lock that the other thread releases. A `threading.Condition` is written in
    Python, so an interrupt inside it could leave the waiting thread blocked for ever.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire(timeout=0)

    def give(self) -> None:
        if self._lock.locked():
            self._lock.release()

    def wait_briefly(self) -> None:
        """Wait for the signal, for at most `_WAKE_UP_S` seconds."""
        self._lock.acquire(timeout=_WAKE_UP_S)


class WeightVersion(NamedTuple):
    """A copy, after `number` updates, of the parameters and buffers of the module that acts."""

    number: int
    state: dict[str, th.Tensor]


COPIED: Final = WeightVersion(0, {})
"""The version of the weights with which the actor's module is made."""


class Weights:
    """Holds the newest version of the policy's weights; the learner writes it, the actor reads it.

    If a callback has changed the policy after the actor's copy was made, the constructor publishes
    the changed weights.
    """

    def __init__(self, policy: BaseModel, copied: BaseModel) -> None:
        self.newest = COPIED
        pairs = zip(policy.state_dict().values(), copied.state_dict().values(), strict=True)
        if not all(isinstance(a, th.Tensor) and th.equal(a, b) for a, b in pairs):
            self.publish(policy)

    def publish(self, policy: BaseModel) -> None:
        """Copy the policy's weights, and make the copy the newest version."""
        state = copy.deepcopy(
            {
                # A module's own `get_extra_state` may return an object that is no tensor.
                name: value.detach() if isinstance(value, th.Tensor) else value
                for name, value in policy.state_dict().items()
            }
        )
        if policy.device.type == "cuda":
            # The actor reads the copy in its own CUDA stream, which does not wait for this stream.
            th.cuda.current_stream(policy.device).synchronize()
        self.newest = WeightVersion(self.newest.number + 1, state)


class Gaps:
    """Records gaps, the times from observations to actions. The learner reads the actor's gaps."""

    def __init__(self) -> None:
        self.updating = False
        """True while the learner updates the policy."""
        self._recorded: deque[tuple[float, bool]] = deque(maxlen=_MAX_GAPS)

    @contextmanager
    def update(self) -> Iterator[None]:
        """In the block, mark that the learner updates the policy."""
        self.updating = True
        try:
            yield
        finally:
            self.updating = False

    def record(self, gap_s: float, during_update: bool) -> None:
        """Record one gap, and whether an update ran at the gap's beginning or end."""
        self._recorded.append((gap_s, during_update))

    def drain(self) -> dict[str, float]:
        """The gaps' p50 (median), p99 and maximum since the last call, in seconds, by log name."""
        recorded = [self._recorded.popleft() for _ in range(len(self._recorded))]
        return {
            **_percentiles("gap_s", [gap_s for gap_s, _ in recorded]),
            **_percentiles("update_gap_s", [gap_s for gap_s, in_update in recorded if in_update]),
        }


def _percentiles(name: str, seconds: Sequence[float]) -> dict[str, float]:
    if not seconds:
        return {}
    took = Durations.of(seconds)
    return {f"{name}_p50": took.p50, f"{name}_p99": took.p99, f"{name}_max": took.max}


class FrozenStatistics(RunningMeanStd):
    """Running statistics that collect new samples, and change only in `commit`."""

    def __init__(self, running: RunningMeanStd) -> None:
        self._lock = threading.Lock()
        self._collected = running.copy()
        self.mean, self.var, self.count = running.mean, running.var, running.count

    def update(self, arr: NDArray[Any]) -> None:
        """Collect a batch of samples, which lie along the first axis."""
        self._collected.update(arr)

    def commit(self) -> None:
        """Update the statistics with all samples collected so far."""
        collected = self._collected.copy()
        with self._lock:
            self.mean, self.var, self.count = collected.mean, collected.var, collected.count

    def __reduce__(self) -> tuple[Callable[..., RunningMeanStd], tuple[Any, ...]]:
        with self._lock:
            return _running_statistics, (self.mean, self.var, self.count)

    @property
    def running(self) -> RunningMeanStd:
        """A copy of these statistics as an object of SB3's class."""
        function, arguments = self.__reduce__()
        return function(*arguments)


def _running_statistics(mean: Any, var: Any, count: float) -> RunningMeanStd:
    running = RunningMeanStd(shape=np.shape(mean))
    running.mean, running.var, running.count = np.array(mean), np.array(var), count
    return running


@contextmanager
def frozen(normalize: VecNormalize | None) -> Iterator[Callable[[], None]]:
    """Freeze the statistics of `normalize` in the block; yield a function that commits the samples.

    At the block's end all samples are committed, and the statistics get SB3's class again.
    """
    statistics: list[FrozenStatistics] = []

    def freeze(running: RunningMeanStd) -> FrozenStatistics:
        statistics.append(FrozenStatistics(running))
        return statistics[-1]

    def commit() -> None:
        for each in statistics:
            each.commit()

    if normalize is None:
        yield commit
        return
    _replace_statistics(normalize, freeze)
    try:
        yield commit
    finally:
        commit()
        _replace_statistics(normalize, lambda each: each.running)


def _replace_statistics(
    normalize: VecNormalize, replacement: Callable[[Any], RunningMeanStd]
) -> None:
    """Replace each statistics object of `normalize` by the result of `replacement` for it."""
    if normalize.norm_obs:
        obs_rms = normalize.obs_rms
        if isinstance(obs_rms, dict):
            normalize.obs_rms = {key: replacement(value) for key, value in obs_rms.items()}
        else:
            normalize.obs_rms = replacement(obs_rms)
    normalize.ret_rms = replacement(normalize.ret_rms)
