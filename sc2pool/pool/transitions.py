"""The envs that were asked for something, and how far each has come.

    pending ─► reply, or fault ─► over? ─ no ──────────────────────────────► settled ─► taken
                                    └ yes ─► dealt a episode ─► first observation ─► settled

Rules: every pending env settles exactly once, with a real outcome or, after a fault, a synthetic
one; episodes are dealt once as many replies are in as were asked for, in the order of env indices,
so a seeded run that is stepped in sync does not depend on timing.
"""

from __future__ import annotations

from collections.abc import Iterable

from gymnasium.error import AlreadyPendingCallError

from sc2pool.deadline import Deadline
from sc2pool.pool.batch import (
    Gatherer,
    Outcome,
    begin_episode,
    outcome_of,
    synthetic_outcome,
)
from sc2pool.pool.episodes import Episodes
from sc2pool.pool.instances.event_loop import EventLoop
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.states import Event, State
from sc2pool.pool.ipc.layout import SpaceLayout


class Transitions:
    """What is awaited of a pool's envs.

    Args:
        supervisor: of the instances.
        dealer: of episodes.
        layout: of the observations.
        gatherer: knows what each env was last shown with.
        autoreset: whether envs that are over are dealt their next episode, or stay over until
            somebody resets them.

    Attributes:
        pending: envs whose outcome has not been taken.
        settled: those of them that are ready to be taken.
    """

    def __init__(
        self,
        supervisor: EventLoop,
        dealer: Episodes,
        layout: SpaceLayout,
        gatherer: Gatherer,
        autoreset: bool,
    ) -> None:
        self._supervisor = supervisor
        self._dealer = dealer
        self._seats = supervisor.seats
        self._layout = layout
        self._gatherer = gatherer
        self._autoreset = autoreset
        self._outcomes: dict[int, Outcome | None] = {}
        self._undealt: set[int] = set()
        self.pending: set[int] = set()
        self.settled: set[int] = set()

    def require_idle(self, envs: Iterable[int], call: str, then: str) -> None:
        """Raise where one of these envs is pending.

        Args:
            call: the pending one's name for the error.
            then: what was to come after it.

        Raises:
            AlreadyPendingCallError: an env's step before has not been received.
        """
        busy = self.pending and self.pending.intersection(envs)
        if busy:
            raise AlreadyPendingCallError(
                f"receive the pending step of envs {sorted(busy)} before {then}", call
            )

    def expect_steps(self, envs: Iterable[int]) -> None:
        """These envs are being sent actions."""
        self.pending.update(envs)

    def expect_resets(self, envs: Iterable[int]) -> None:
        """What these envs answer next is a first observation."""
        self.pending.update(envs)
        self._outcomes.update((env, Outcome()) for env in envs)

    def deal_to(self, envs: Iterable[int]) -> None:
        """Deal these envs the next episodes, although nothing ended their episodes."""
        self._undealt.update(envs)
        self._deal_tickets()

    def wait_for(self, wanted: int, deadline: Deadline) -> None:
        """Wait until so many envs are ready, or the deadline has passed."""

        def enough() -> bool:
            news, self._supervisor.news = self._supervisor.news, []
            for seat in news:
                self._look_at(seat)
            if len(self._outcomes) < wanted:
                return False
            self._deal_tickets()
            return len(self.settled) >= wanted

        self._supervisor.wait_until(enough, deadline)

    def take_plain(self) -> list[Seat] | None:
        """Wait for all pending envs and take them, where each has a plain reply to its step.

        The way of nearly all batches, and therefore short; None, and nothing is taken, where
        anything else has happened.
        """
        if self._outcomes:
            return None
        seats = [self._seats[env] for env in sorted(self.pending)]
        if not self._supervisor.await_plain_replies(seats):
            return None
        self.pending.clear()
        return seats

    def _look_at(self, seat: Seat) -> None:
        """Take note of an env's reply, its fault, or its next episode's first observation."""
        env = seat.index
        if env not in self.pending or env in self.settled:
            return
        if env not in self._outcomes:
            if seat.instance.state is State.STEPPING:
                return
            if seat.answered:
                outcome = outcome_of(seat, self._layout)
                if outcome is not None and outcome.tick is not None:
                    self._supervisor.stats.ticks.note(env, outcome.tick)
            else:
                outcome = synthetic_outcome(seat, self._gatherer.last_observation(env))
            self._outcomes[env] = outcome
            if outcome is not None and outcome.over and self._autoreset:
                self._undealt.add(env)
            else:
                self.settled.add(env)
        elif env not in self._undealt and seat.ready:
            begun = self._outcomes[env]
            assert begun is not None, "only what is over waits for a first observation"
            bind(seat, begun)
            self.settled.add(env)

    def _deal_tickets(self) -> None:
        if not self._undealt:
            return
        dealt = [self._seats[env] for env in sorted(self._undealt)]
        self._undealt.clear()
        self._dealer.deal(dealt)
        for seat in dealt:
            self._look_at(seat)

    def take(self) -> tuple[list[Seat], list[Outcome | None]]:
        """What has settled, in the order of the envs; they are no longer pending."""
        envs = sorted(self.settled)
        outcomes = [self._outcomes.pop(env) for env in envs]
        self.pending -= self.settled
        self.settled.clear()
        return [self._seats[env] for env in envs], outcomes

    def drop(self) -> None:
        """Await the replies of steps that will not be taken, and drop them."""
        seats = [self._seats[env] for env in self.pending]
        self._supervisor.wait_until(
            lambda: all(seat.instance.state is not State.STEPPING for seat in seats)
        )
        for container in (self.pending, self._outcomes, self._undealt, self.settled):
            container.clear()
        self._supervisor.news.clear()


def bind(seat: Seat, outcome: Outcome) -> None:
    """The env takes the episode that its seat's instance has ready."""
    seat.instance.on(Event.BOUND)
    seat.episode = None
    seat.waits = False
    begin_episode(seat, outcome)
