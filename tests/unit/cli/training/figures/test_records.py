"""Rows are read as they were written, without what was cut off."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from sc2pool.cli.training.figures.records import read_rows, write_rows
from sc2pool.errors import ConfigError


class Record(NamedTuple):
    steps: int
    mean: float
    name: str
    games: int


RECORDS = [Record(64, 1.5, "first, of two", 2), Record(128, -1.0, "", 10)]


def test_rows_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "records.csv"
    assert read_rows(path, Record) == []
    write_rows(path, Record, RECORDS)
    assert read_rows(path, Record) == RECORDS
    write_rows(path, Record, RECORDS[:1])
    assert read_rows(path, Record) == RECORDS[:1]


@pytest.mark.parametrize(
    "row",
    ["64,1.5,a", "64,1.5,a,2,3", "x,1.5,a,2", "1.5,1.5,a,2", "64,nan,a,2", "64,1e999,a,2", ""],
)
def test_a_row_of_something_else(tmp_path, row):
    path = tmp_path / "records.csv"
    path.write_text(f"steps,mean,name,games\n{row}\n")
    with pytest.raises(ConfigError, match=r"records\.csv: expected a row of steps, mean, name, g"):
        read_rows(path, Record)


def test_a_last_line_that_was_cut_off_anywhere_is_left_out(tmp_path):
    path = tmp_path / "records.csv"
    write_rows(path, Record, RECORDS)
    whole = path.read_bytes()
    begin = whole.rindex(b"128")
    for end in range(begin, len(whole)):
        path.write_bytes(whole[:end])
        assert read_rows(path, Record) == RECORDS[:1], whole[begin:end]
