"""`sc2pool play`: what it says at the end."""

from __future__ import annotations

import pytest

from sc2pool.cli.playing.episodes import Ended
from sc2pool.cli.playing.play import summary


def match(result: str, whole: bool = True) -> Ended:
    return Ended(1.5, 10, result, whole, {"sc2pool.result": result})


ALONE = Ended(1.5, 10, "ended", True, {})


@pytest.mark.parametrize(
    ("episodes", "opponent", "words"),
    [
        ([ALONE], None, "mean return 1.50 ± 0.00 over 1 episode"),
        (
            [match("win"), match("loss"), match("tie"), match("win", whole=False)],
            "zerg",
            "won 1 of 3 matches against zerg, lost 1, 1 undecided; "
            "mean return 1.50 ± 0.00 over 3 episodes",
        ),
    ],
    ids=["alone", "match"],
)
def test_the_summary_counts_results_against_an_opponent(episodes, opponent, words):
    assert summary(episodes, opponent) == words
