"""Whether games in real time can play a fragment in the time that RLlib waits for it.

RLlib's algorithms that sample in sync give their env runners `sample_timeout_s`, 60 seconds unless
told otherwise, and throw away what comes later; the training then goes on without data, in
silence. Two things tell of it: a fragment takes `step_mul` loops per step, at 22.4 loops a second,
so some fragments cannot be in time (`check_fragment`); and RLlib counts what it threw away
(`Discards`). Rule: neither needs RLlib; `sc2pool.realtime.rllib` asks both.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from math import ceil

from sc2pool.errors import SampleTimeoutError
from sc2pool.protocol.game_time import LOOPS_PER_S

log = logging.getLogger("sc2pool")

REMEDY = (
    "set env_runners(rollout_fragment_length=…) to fewer steps, of which an update takes as many "
    "fragments as it needs, or env_runners(sample_timeout_s=None) to wait for as long as it takes"
)


@dataclass(frozen=True)
class Fragment:
    """What one env runner plays in one call.

    Attributes:
        steps: env steps in each of its envs; 1 where it plays whole episodes, whose length nobody
            knows before.
        envs: how many envs it has; their games run side by side.
        step_mul: game loops per env step.
    """

    steps: int
    envs: int
    step_mul: int

    @property
    def seconds(self) -> float:
        """How long it takes at least: without resets, and with a policy that takes no time."""
        return self.steps * self.step_mul / LOOPS_PER_S

    def __str__(self) -> str:
        return (
            f"{self.steps} steps in each of {self.envs} envs, with step_mul {self.step_mul} at "
            f"{LOOPS_PER_S} game loops a second, take at least {self.seconds:.1f} s"
        )


def check_fragment(fragment: Fragment, timeout_s: float | None) -> None:
    """Raise where a fragment cannot be there in time.

    Args:
        timeout_s: how long RLlib waits; None for as long as it takes.

    Raises:
        SampleTimeoutError: it waits no longer than the fragment takes at least.
    """
    if timeout_s is None or fragment.seconds < timeout_s:
        return
    longest = ceil(timeout_s * LOOPS_PER_S / fragment.step_mul) - 1
    raise SampleTimeoutError(
        f"{fragment}, but RLlib discards what it does not have after sample_timeout_s="
        f"{timeout_s}; expected at most {longest} steps: {REMEDY}"
    )


class Discards:
    """What RLlib has thrown away because it came too late.

    Rule: one training step without data may be a game that was replaced meanwhile, which takes
    longer than any fragment should; two in a row mean that the time is too short.
    """

    def __init__(self) -> None:
        self._discarded = 0
        self._steps = 0
        self._empty_in_a_row = 0

    def after_training_step(self, discarded: int, steps: int, timeout_s: float | None) -> None:
        """Take note of what RLlib calls a training step: samples, and an update.

        Args:
            discarded: samples thrown away since the training began.
            steps: env steps learned from since then.
            timeout_s: how long RLlib waits.

        Raises:
            SampleTimeoutError: for the second time in a row there was nothing else.
        """
        new, self._discarded = discarded - self._discarded, discarded
        empty, self._steps = steps == self._steps, steps
        if new <= 0:
            self._empty_in_a_row = 0
            return
        told = f"RLlib has discarded {new} samples that came after sample_timeout_s={timeout_s}"
        self._empty_in_a_row = self._empty_in_a_row + 1 if empty else 0
        if self._empty_in_a_row > 1:
            raise SampleTimeoutError(
                f"{told}, and had nothing to learn from, for the second training step in a row: "
                f"{REMEDY}"
            )
        log.warning("%s", told)
