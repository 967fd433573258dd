"""Events that a game reports only once, kept for the next observation that is used.

Deaths, alerts, errors of actions, chat and results are only in the first observation after they
happened. Some observations are not used: those around a pause, and the one before the result is
known. Rule: their events are delivered with the next observation that is used, the earlier first.
Without such events nothing is decoded.
"""

from __future__ import annotations

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.protocol.observed import Observed


class PendingEvents:
    """The events of observations that were not used."""

    def __init__(self) -> None:
        self._events: sc_pb.ResponseObservation | None = None

    def clear(self) -> None:
        """Forget the events: another episode begins."""
        self._events = None

    def keep(self, observed: Observed) -> None:
        """Keep the events of this observation, which is not used."""
        events = events_of(observed.response)
        if events is not None:
            self._events = events if self._events is None else merged(self._events, events)

    def deliver(self, observed: Observed) -> Observed:
        """This observation, which is used, with all kept events."""
        if self._events is None:
            return observed
        events, self._events = self._events, None
        return Observed.of(merged(events, observed.response))


def events_of(response: sc_pb.ResponseObservation) -> sc_pb.ResponseObservation | None:
    """The events of a response, which are reported only once; None without events."""
    events = sc_pb.ResponseObservation(
        actions=response.actions,
        action_errors=response.action_errors,
        chat=response.chat,
        player_result=response.player_result,
    )
    if response.observation.alerts:
        events.observation.alerts.extend(response.observation.alerts)
    dead = response.observation.raw_data.event.dead_units
    if dead:
        events.observation.raw_data.event.dead_units.extend(dead)
    return events if events.ListFields() else None


def merged(
    earlier: sc_pb.ResponseObservation, newest: sc_pb.ResponseObservation
) -> sc_pb.ResponseObservation:
    """The newest response, with the earlier response's events before its own."""
    whole = sc_pb.ResponseObservation()
    whole.CopyFrom(earlier)
    if newest.player_result:
        whole.ClearField("player_result")  # the same result, reported twice
    whole.MergeFrom(newest)
    return whole
