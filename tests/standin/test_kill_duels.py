"""Kills and stops of one side of a game of two clients; `scripts/kill_duels.py` plays more."""

from __future__ import annotations

import signal

import pytest

from tests.support.duels import kills


def test_a_few_rounds(installation, tmp_path):
    played = kills.play(6, 2, installation, tmp_path)
    assert sum(played.values()) == 6
    assert {harm.name for harm in kills.HARMS} <= {what.split(" ")[0] for what in played}


def test_what_goes_wrong_is_a_failure_with_its_round(installation, tmp_path, monkeypatch):
    """A harm that does nothing: the other side has not won."""
    monkeypatch.setattr(kills, "PHASES", ("one waits",))
    monkeypatch.setattr(kills, "HARMS", (signal.SIGCONT,))
    monkeypatch.setattr(kills, "TIMEOUT_S", 0.2)
    with pytest.raises(kills.DuelFailure, match=r"seed 5, round 0, SIGCONT to player \d while"):
        kills.play(1, 5, installation, tmp_path)
