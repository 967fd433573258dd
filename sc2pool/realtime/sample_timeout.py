"""Checks that games in real time play a fragment within RLlib's `sample_timeout_s`.

RLlib's synchronous algorithms wait `sample_timeout_s` (60 s by default) for their env runners.
The algorithms discard late samples, and the training continues without data and without an error.
Two checks find a training without data. `check_fragment` computes the minimum duration of a
fragment, in which each step takes `step_mul` loops at 22.4 loops a second. `Discards` reads RLlib's
count of discarded samples. This module does not import RLlib; `sc2pool.realtime.rllib` calls it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from math import ceil
from typing import Final

from sc2pool.errors import SampleTimeoutError
from sc2pool.protocol import LOOPS_PER_S

log = logging.getLogger("sc2pool")

_REMEDY: Final = (
    "set env_runners(rollout_fragment_length=…) to fewer steps (an update then takes more "
    "fragments), or env_runners(sample_timeout_s=None) to wait without limit"
)


@dataclass(frozen=True)
class Fragment:
    """A fragment: the steps that the envs of an env runner play, in parallel, for one sample.

    `steps` is the number of steps in each env, or 1 for whole episodes of unknown length.
    """

    steps: int
    envs: int
    step_mul: int

    @property
    def minimum_s(self) -> float:
        """The duration of the fragment without resets and without the policy's time, in seconds."""
        return self.steps * self.step_mul / LOOPS_PER_S

    def __str__(self) -> str:
        return (
            f"{self.steps} steps in each of {self.envs} envs, with step_mul {self.step_mul} at "
            f"{LOOPS_PER_S} game loops a second, take at least {self.minimum_s:.1f} s"
        )


def check_fragment(fragment: Fragment, timeout_s: float | None) -> None:
    """Raise `SampleTimeoutError` if a fragment takes `timeout_s` or longer. None means no limit."""
    if timeout_s is None or fragment.minimum_s < timeout_s:
        return
    longest = ceil(timeout_s * LOOPS_PER_S / fragment.step_mul) - 1
    raise SampleTimeoutError(
        f"{fragment}, but RLlib discards samples that are not complete after sample_timeout_s="
        f"{timeout_s}; expected at most {longest} steps: {_REMEDY}"
    )


class Discards:
    """Watches the number of samples that RLlib discards because they arrive too late.

    One training step without data is only logged, because replacing a game takes longer than a
    fragment. Two training steps without data in a row mean that the timeout is too short.
    """

    def __init__(self) -> None:
        self._discarded = 0
        self._steps = 0
        self._empty_in_a_row = 0

    def after_training_step(self, discarded: int, steps: int, timeout_s: float | None) -> None:
        """Check RLlib's counters after a training step, which samples and then updates the policy.

        `discarded` is the total of discarded samples, and `steps` the total of env steps learned
        from. Raises `SampleTimeoutError` if two training steps in a row discard all samples.
        """
        newly_discarded, self._discarded = discarded - self._discarded, discarded
        empty, self._steps = steps == self._steps, steps
        if newly_discarded <= 0:
            self._empty_in_a_row = 0
            return
        message = (
            f"RLlib has discarded {newly_discarded} samples that came after "
            f"sample_timeout_s={timeout_s}"
        )
        self._empty_in_a_row = self._empty_in_a_row + 1 if empty else 0
        if self._empty_in_a_row > 1:
            raise SampleTimeoutError(
                f"{message}, and had nothing to learn from, for the second training step in a row: "
                f"{_REMEDY}"
            )
        log.warning("%s", message)
