"""Of two games that are both silent, the one that owes the step is to blame."""

from __future__ import annotations

import pytest

from sc2pool.game.match.blame import Evidence, Side, judge

WAITS = Evidence(cpu_share=0.1)
"""A healthy game that waits for the other player."""


@pytest.mark.parametrize("culprit", list(Side))
@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (Evidence(exited=True), "has ended"),
        (Evidence(stopped=True), "is stopped"),
        (Evidence(stopped=True, unread=True), "is stopped"),
        (Evidence(unread=True), "does not read"),
        (Evidence(unread=True, cpu_share=1.0), "does not read"),
        (Evidence(cpu_share=0.9), "computes"),
        (Evidence(cpu_share=0.0), "uses no CPU time"),
    ],
)
def test_the_one_with_a_sign(culprit, shown, why):
    other = Side.GUEST if culprit is Side.HOST else Side.HOST
    verdict = judge({culprit: shown, other: WAITS})
    assert verdict.sides == (culprit,)
    assert why in verdict.why


@pytest.mark.parametrize("culprit", list(Side))
def test_the_one_that_has_not_answered(culprit):
    """Whatever else there is to see of the other one."""
    other = Side.GUEST if culprit is Side.HOST else Side.HOST
    answered = Evidence(answered=True, stopped=True, unread=True)
    assert judge({culprit: WAITS, other: answered}).sides == (culprit,)


def test_the_graver_sign_counts():
    assert judge({Side.HOST: Evidence(unread=True), Side.GUEST: Evidence(stopped=True)}).sides == (
        Side.GUEST,
    )


@pytest.mark.parametrize(
    "both", [WAITS, Evidence(), Evidence(stopped=True, unread=True), Evidence(cpu_share=1.0)]
)
def test_both_if_nothing_tells_them_apart(both):
    assert judge({Side.HOST: both, Side.GUEST: both}).sides == (Side.HOST, Side.GUEST)


def test_a_game_that_is_idle_in_the_wait_is_not_to_blame():
    """The stand-in uses no CPU time while it waits for the other player."""
    verdict = judge({Side.HOST: Evidence(cpu_share=0.99), Side.GUEST: Evidence()})
    assert verdict.sides == (Side.HOST,)
