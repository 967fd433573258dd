"""`SelectivePool`: a pool whose envs go on to their next episodes when they are told to.

    send(actions, envs)  ─┐
    send_next(envs)       ├─► recv(): one batch of the steps' transitions and the first observations
    send_resets(envs, …) ─┘

For the face of gymnasium's vector envs, where an env that is over is reset by the next step, or by
the trainer, while others step. Rules: what an env was sent last is what its row answers; a row that
is a first observation has reward 0, no flags, and its info in the batch's `reset_infos`; episodes
are dealt where episodes begin, ties by env index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sc2pool.deadline import Deadline
from sc2pool.pool.batch import Batch
from sc2pool.pool.episode_book import episode_seed
from sc2pool.pool.ipc.messages import Raised
from sc2pool.pool.pool import Pool


class SelectivePool(Pool):
    """See `Pool`; with `autoreset=True` it differs only in what can be reset."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self._resetting: set[int] = set()
        super().__init__(*args, **keywords)

    def send_next(self, envs: Iterable[int]) -> None:
        """Let these envs go on to their next episodes, as an autoreset would."""
        self._transitions.deal_to(self._expect_reset(envs))

    def send_resets(
        self, envs: Iterable[int], seeds: Sequence[int | None], options: Mapping[str, Any]
    ) -> None:
        """Begin episodes in these envs as the trainer wants them, whatever they are doing.

        Args:
            envs: indices of envs with no step pending.
            seeds: one for each env of the pool; for tasks, of its first episode only (the later
                ones' are from `seed`).
            options: the same for all of these envs.
        """
        numbers = self._expect_reset(envs)
        self._dealer.take_back()
        for env in numbers:
            seat, seed = self._supervisor.seats[env], seeds[env]
            episode = replace(self._dealer.episode(seat, seed, options), both_keywords=True)
            if self._is_task and seed is not None:
                episode = replace(episode, seed=episode_seed(seed, 0))
            self._supervisor.play(seat, episode)
        self._dealer.prepare_spares()

    def _expect_reset(self, envs: Iterable[int]) -> list[int]:
        """What these envs answer next is a first observation."""
        self._check_open()
        numbers = sorted(int(env) for env in envs)
        if self._pauses:
            self._pauses.wake(numbers)
        self._transitions.expect_resets(numbers)
        self._resetting.update(numbers)
        self._began = True
        if len(numbers) == self.n:
            for seat in self._supervisor.seats:
                seat.waits = True  # in real time they begin together
        return numbers

    def recv(self, min_ready: int | None = None, timeout_s: float | None = None) -> Batch:
        """As a pool's; games that wait for each other go on once all have arrived."""
        self._check_open()
        self._begun_together(Deadline.after(timeout_s))
        return super().recv(min_ready, timeout_s)

    def wait(self, deadline: Deadline, ready: int | None = None) -> bool:
        """Wait as `recv` does, and receive nothing yet.

        Args:
            deadline: until when.
            ready: how many envs must be; None for all that are pending.

        Returns:
            Whether they are.
        """
        self._check_open()
        if not self._begun_together(deadline):
            return False
        wanted = len(self._transitions.pending) if ready is None else ready
        self._transitions.wait_for(wanted, deadline)
        return len(self._transitions.settled) >= wanted

    def wait_for_one_more(self, deadline: Deadline) -> bool:
        """Wait until another of the pending envs is ready; False where the deadline passed."""
        return self.wait(deadline, len(self._transitions.settled) + 1)

    def _hand_out(self) -> Batch:
        batch = super()._hand_out()
        if self._resetting:
            resets = self._resetting.intersection(batch.envs.tolist())
            self._supervisor.stats.env_steps -= len(resets)  # they are rows, but no steps
            self._resetting -= resets
        return batch

    def newest_observations(self) -> Any:
        """The newest observation of every env, in the structure of a batch of all of them."""
        return self._gatherer.newest(self._supervisor.seats)

    def raised(self) -> list[tuple[int, Raised]]:
        """What code of the user's raised, with its env: all that ended the pool."""
        return [(seat.index, raised) for seat, raised in self._supervisor.raised]
