"""A dead instance is replaced, or the pool gives up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sc2pool.config import RestartPolicy
from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.pool.instances.restart import (
    Housemate,
    backoff_s,
    charged,
    exceeded,
    hopeless,
    unplayable,
)

POLICY = RestartPolicy(per_env=2, per_env_window_s=60, per_pool_per_env=3, per_pool_window_s=600)
NOW_S = 10_000.0


@pytest.mark.parametrize(
    ("ages_of_env_s", "ages_in_pool_s", "told"),
    [
        ([0], [0], None),
        ([0, 10], [0, 10], None),
        ([0, 10, 59], [0, 10, 59], "3 recycles of one env in 60 s"),
        ([0, 10, 60], [0, 10, 60], None),
        ([0], [1] * 6, None),
        ([0], [1] * 7, "7 recycles of the pool in 600 s"),
        ([0], [1] * 6 + [600], None),
    ],
)
def test_intensity(ages_of_env_s, ages_in_pool_s, told):
    env, pool = ([NOW_S - age for age in ages] for ages in (ages_of_env_s, ages_in_pool_s))
    assert exceeded(POLICY, 2, env, pool, NOW_S) == told


def failed(detail: str, kind: FaultKind = FaultKind.LAUNCH_FAILED) -> Fault:
    return Fault(kind, Phase.LAUNCHING, detail)


@pytest.mark.parametrize(
    ("causes", "any_was_ready", "is_hopeless"),
    [
        ([], False, False),
        ([failed("no library")], False, False),
        ([failed("no library"), failed("no library")], False, True),
        ([failed("port"), failed("no library"), failed("no library")], False, True),
        ([failed("no library"), failed("port")], False, False),
        ([failed("no library"), failed("no library")], True, False),
        ([failed("SIGKILL", FaultKind.GAME_EXITED)] * 2, False, False),
        ([replace(failed("no descriptors"), refused=True)] * 2, False, False),
    ],
)
def test_the_same_failure_twice_before_any_observation_is_hopeless(
    causes, any_was_ready, is_hopeless
):
    assert bool(hopeless(causes, any_was_ready=any_was_ready)) is is_hopeless


def test_backoff_grows_to_eight_seconds_and_is_forgotten_with_the_window():
    waits = [backoff_s(POLICY, [NOW_S] * number, NOW_S) for number in range(9)]
    assert waits == [0, 0, 0.5, 1, 2, 4, 8, 8, 8]
    assert backoff_s(POLICY, [NOW_S - 60] * 5 + [NOW_S], NOW_S) == 0


def test_a_refusal_of_the_system_is_never_tried_again_at_once():
    waits = [backoff_s(POLICY, [NOW_S] * number, NOW_S, refused=True) for number in range(1, 4)]
    assert waits == [0.25, 0.5, 1]


@pytest.mark.parametrize(
    ("housemates", "killed", "expected"),
    [
        ([Housemate(5, 2, False, True), Housemate(6, 1, False, True)], True, 6),
        ([Housemate(5, 2, False, True), Housemate(6, 1, False, True)], False, 5),
        ([Housemate(5, 2, False, False), Housemate(6, 1, False, True)], False, 6),
        ([Housemate(5, 2, False, True), Housemate(6, 1, True, True)], False, 6),
        ([Housemate(5, 0, False, False), Housemate(6, 0, False, False)], False, 5),
    ],
)
def test_a_workers_death_counts_as_the_recycle_of_one_instance(housemates, killed, expected):
    assert charged(housemates, killed=killed) == expected


NOTE = "map Odd; game version 4.10"
REFUSED = Fault(FaultKind.SETUP_FAILED, Phase.RESETTING, "no such map", map_note=NOTE)
CRASHED = Fault(FaultKind.GAME_EXITED, Phase.RESETTING, "signal SIGSEGV", map_note=NOTE)


@pytest.mark.parametrize(
    ("failed_in_a_row", "fault", "any_was_ready", "is_final"),
    [
        (1, REFUSED, False, False),
        (2, REFUSED, False, True),
        (2, REFUSED, True, True),
        (2, CRASHED, False, True),
        (2, CRASHED, True, False),
        (2, replace(CRASHED, map_note=""), False, False),
    ],
)
def test_a_map_is_unplayable_if_two_processes_in_a_row_fail_on_it(
    failed_in_a_row, fault, any_was_ready, is_final
):
    why = unplayable(failed_in_a_row, fault, any_was_ready)
    assert (why is not None) == is_final
    assert not is_final or (fault.detail in why and NOTE in why)
