"""`sc2pool bench` on the stand-in: what it measures, writes and says."""

from __future__ import annotations

import json

import pytest


@pytest.fixture(scope="module")
def benched(command, standin_dir, tmp_path_factory):
    out = tmp_path_factory.mktemp("bench")
    options = ["--n", "1,2", "--seconds", "0.6", "--game", standin_dir]
    options += ["--json", "--png", out / "deeper" / "bench.png"]
    done = command("bench", *options, timeout_s=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), out


def test_every_number_of_games_is_measured(benched):
    result, _ = benched
    assert [one["n"] for one in result["sizes"]] == [1, 2]
    for one in result["sizes"]:
        rates = sorted(single["steps"] / single["seconds"] for single in one["rounds"])
        assert one["steps_per_s"] == pytest.approx(rates[1])
        assert all(used_us > 0 for used_us in one["cpu_us_per_step"].values())
        assert 0 < one["cores_busy"] <= result["machine"]["cores"] * 1.2
        assert 5e6 < one["worker_bytes"] < 500e6
        assert 5e6 < one["game_bytes"] < 500e6
    assert result["game_version"].startswith("standin")


def test_both_rungs_with_and_without_spares(benched):
    result, _ = benched
    assert [one["spares"] for one in result["resets"]] == [0, 1]
    for one in result["resets"]:
        assert set(one["cost_percent"]) == {"restart_game", "create_game"}
        assert "create_game" in one["reset_ms"]  # a spare's restart may end after the measurement
        assert all(0 < taken_ms < 10_000 for taken_ms in one["reset_ms"].values())


def test_advice_and_picture(benched):
    result, out = benched
    assert "looks best" in result["advice"][0]
    assert (out / "deeper" / "bench.png").stat().st_size > 10_000
