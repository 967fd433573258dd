"""Rows are read as they were written, without what was cut off."""

from __future__ import annotations

from typing import NamedTuple

from sc2pool.cli.training.figures.records import read_rows, write_rows


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


def test_a_last_line_that_was_cut_off_anywhere_is_left_out(tmp_path):
    path = tmp_path / "records.csv"
    write_rows(path, Record, RECORDS)
    whole = path.read_bytes()
    begin = whole.rindex(b"128")
    for end in range(begin, len(whole)):
        path.write_bytes(whole[:end])
        assert read_rows(path, Record) == RECORDS[:1], whole[begin:end]
