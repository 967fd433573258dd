"""Tables in a narrow terminal."""

from __future__ import annotations

import io

from rich.console import Console

from sc2pool.cli.table import make_table


def test_a_name_stays_in_one_piece_while_other_columns_are_folded() -> None:
    out = io.StringIO()
    name, space = "DefeatZerglingsAndBanelingsImage", "Box(0, 255, (4, 64, 64), uint8)"
    Console(file=out, width=60).print(make_table(("task", "observation"), [(name, space)]))
    assert name in out.getvalue()
    assert space not in out.getvalue()
    assert "".join(out.getvalue().split()).endswith("uint8)")


def test_a_cell_is_no_command_to_the_terminal() -> None:
    out = io.StringIO()
    Console(file=out, width=60).print(make_table(("task",), [("\x1b[2Jname\n",)]))
    assert r"\x1b[2Jname\n" in out.getvalue()
    assert "\x1b" not in out.getvalue()
