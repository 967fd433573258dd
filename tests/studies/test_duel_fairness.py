"""The study of whether a side of a duel has an advantage."""

from __future__ import annotations

import sys
from collections import Counter

import pytest
from studies.duel_fairness import USUAL, chance_of, main, played, row_of

from sc2pool.tasks.registry import resolve


@pytest.mark.parametrize("name", ["MarineDuel", "3m_duel"])
def test_it_plays_matches_to_their_end(name: str) -> None:
    found = played(resolve(name), 3, n=2, seed=1)
    assert found.total() == 3
    assert set(found) <= {"win", "loss", "tie", "undecided"}


def test_how_a_row_reads() -> None:
    found = Counter(win=5, loss=3, tie=1, undecided=1)
    assert row_of("3m_duel", found) == ("3m_duel", "10", "5", "3", "2", "0.73")


def test_how_probable_a_split_is() -> None:
    assert chance_of(0, 0) == chance_of(10, 10) == 1
    assert chance_of(10, 0) == chance_of(0, 10) == pytest.approx(2 / 2**10)
    assert chance_of(593, 652) == pytest.approx(0.10, abs=0.005)


def test_an_unknown_duel(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["duel_fairness.py", "5m_vs_6m_duel"])
    with pytest.raises(SystemExit):
        main()
    assert f"no duel '5m_vs_6m_duel'; there is {', '.join(USUAL)}" in capsys.readouterr().err
