"""The table of random and scripted players on SMAC's scenarios."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from studies.smac_scores import PLAYERS, Played, main, played

from sc2pool.tasks.registry import SMAC, SMACV2


def test_the_scripted_player_is_far_better_than_chance(standin_dir: Path) -> None:
    random, free, restricted = (
        played("2s3z", chosen, 3, str(standin_dir)) for chosen in PLAYERS.values()
    )
    assert max(random.returns) < min(free.returns)
    assert max(random.returns) < min(restricted.returns)
    assert (random.win_rate, free.win_rate) == (0, 1)
    assert max(free.returns) <= 20 + 1e-6


def test_how_a_row_reads() -> None:
    assert str(Played([1.0, 3.0], 0.5)) == "2.0 ± 1.0 (1.0–3.0), 0.50"


def test_an_unknown_scenario(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["smac_scores.py", "4m"])
    with pytest.raises(SystemExit):
        main()
    assert f"no scenario '4m'; there are {', '.join((*SMAC, *SMACV2))}" in capsys.readouterr().err
