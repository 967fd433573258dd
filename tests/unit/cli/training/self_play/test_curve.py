"""The picture of win rates."""

from __future__ import annotations

import pytest
from PIL import Image

from sc2pool.cli.training.self_play.curve import draw_win_rates
from sc2pool.cli.training.self_play.results import ResultRow

ROWS = [
    ResultRow(steps, opponent, 20, wins, 20 - wins)
    for steps, opponent, wins in (
        (0, "first", 10),
        (0, "scripted", 2),
        (500, "first", 19),
        (500, "scripted", 19),
    )
]


@pytest.mark.parametrize("rows", [[], ROWS[:1], ROWS])
def test_it_is_drawn_with_any_number_of_rows(tmp_path, rows):
    draw_win_rates(tmp_path / "curve.png", rows, "MarineDuel · 4 matches")
    with Image.open(tmp_path / "curve.png") as picture:
        assert picture.size == (1080, 624)
    assert [path.name for path in tmp_path.iterdir()] == ["curve.png"]
