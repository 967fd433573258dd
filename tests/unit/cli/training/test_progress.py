"""What is said about the progress."""

import math

import pytest

from sc2pool.cli.training.progress import Figures, Lines


def figures(**changed: float) -> Figures:
    base = {
        "steps": 1000,
        "total_steps": 4000,
        "steps_per_s": 1500.0,
        "mean_return": math.nan,
        "episodes": 0,
        "faults": 0,
    }
    return Figures(**(base | changed))  # type: ignore[arg-type]


def test_a_line_says_it_all() -> None:
    assert str(figures()) == (
        "1,000 / 4,000 steps · 1,500 steps/s · mean return – (0 episodes) · 2s left"
    )
    assert "mean return 3.25 (7 episodes)" in str(figures(mean_return=3.25, episodes=7))
    assert "2 cut short by faults" in str(figures(faults=2))


def test_lines_come_at_once_and_then_seldom(capsys: pytest.CaptureFixture[str]) -> None:
    with Lines() as lines:
        lines.show(figures())
        lines.show(figures(steps=2000))
    assert capsys.readouterr().out.count("\n") == 1
