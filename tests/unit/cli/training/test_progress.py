"""What is said about the progress."""

import io
import math
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console

from sc2pool.cli.training.progress import Bar, Figures, Lines, open_display


def figures(**changed: float) -> Figures:
    base = {
        "steps": 1000,
        "total_steps": 4000,
        "steps_per_s": 1500.0,
        "mean_return": math.nan,
        "episodes": 0,
        "faults": 0,
    }
    return Figures(**(base | changed))


def test_a_line_says_it_all() -> None:
    assert str(figures()) == (
        "1,000 / 4,000 steps · 2s left · 1,500 steps/s · mean return – (0 episodes)"
    )
    assert "mean return 3.25 (7 episodes)" in str(figures(mean_return=3.25, episodes=7))
    assert "2 cut short by faults" in str(figures(faults=2))


def test_lines_come_at_once_and_then_seldom(capsys: pytest.CaptureFixture[str]) -> None:
    with Lines() as lines:
        lines.show(figures())
        lines.show(figures(steps=2000))
    assert capsys.readouterr().out.count("\n") == 1


@pytest.mark.parametrize(("term", "display"), [("xterm", Bar), ("dumb", Lines)])
def test_a_terminal_that_cannot_redraw_gets_lines(
    monkeypatch: pytest.MonkeyPatch, term: str, display: type[object]
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("TERM", term)
    assert type(open_display()) is display


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_nothing_is_cut_on_a_terminal_of_any_width(width: int) -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=width, force_terminal=True, color_system=None)
    large = figures(steps=1_400_000, total_steps=1_500_000, mean_return=-123.45, episodes=12_345)
    with Bar(console) as bar:
        bar.show(Figures(**(vars(large) | {"faults": 123})))
    shown = " ".join(screen.getvalue().split())
    for part in ("1,400,000 / 1,500,000 steps", "-123.45", "12,345 episodes", "123 cut short", "━"):
        assert part in shown


def test_a_terminal_that_is_gone_ends_no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Path("/dev/full").open("w")  # noqa: SIM115 - closing it raises, too
    with Bar(Console(file=gone, width=80, force_terminal=True)) as bar:
        bar.show(figures())
    monkeypatch.setattr("sys.stdout", gone)
    with Lines() as lines:
        lines.show(figures())
    with suppress(OSError):
        gone.close()
