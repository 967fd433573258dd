"""The results of a pool's matches, by opponent."""

from __future__ import annotations

from sc2pool.pool.statistics.matches import (
    MOST_OPPONENTS,
    OTHERS,
    MatchCounter,
    MatchResults,
    summed,
)


def counted(*matches: tuple[str, str]) -> dict[str, MatchResults]:
    counter = MatchCounter()
    for opponent, result in matches:
        counter.count(opponent, result)
    return counter.results()


def test_results_are_counted_by_opponent():
    results = counted(("a", "win"), ("b", "loss"), ("a", "tie"), ("a", "win"), ("b", "undecided"))
    assert results == {"a": MatchResults(win=2, tie=1), "b": MatchResults(loss=1, undecided=1)}
    assert (results["a"].played, results["b"].played) == (3, 2)
    assert (results["a"].win_rate, results["b"].win_rate) == (2 / 3, 0.0)
    assert MatchResults().win_rate == 0.0


def test_the_opponent_met_last_is_first():
    assert list(counted(("a", "win"), ("b", "win"), ("a", "win"))) == ["a", "b"]


def test_those_not_met_for_longest_are_summed_up():
    matches = [(f"step-{n}", "win") for n in range(MOST_OPPONENTS)]
    results = counted(*matches, ("step-0", "loss"), ("new", "tie"), ("newer", "tie"))
    assert len(results) == MOST_OPPONENTS + 1
    assert list(results)[-1] == OTHERS
    assert results[OTHERS] == MatchResults(win=2), "step-1 and step-2"
    assert results["step-0"] == MatchResults(win=1, loss=1), "met again in between"
    assert not {"step-1", "step-2"} & set(results)


def test_no_match_is_lost_or_counted_twice():
    """Also not if an opponent comes back, or has the name of the sum."""
    names = [OTHERS, *(f"step-{n}" for n in range(2 * MOST_OPPONENTS))]
    matches = [(name, "win") for name in names * 3]
    results = counted(*matches)
    assert sum(one.played for one in results.values()) == len(matches)


def test_several_pools_are_one():
    parts = [counted(("a", "win"), ("b", "tie")), {}, counted(("a", "loss"))]
    assert summed(parts) == {"a": MatchResults(win=1, loss=1), "b": MatchResults(tie=1)}
