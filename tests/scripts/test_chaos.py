"""`scripts/chaos.py` runs, finds a broken pool, and draws and shrinks attacks.

The tests' short forms end after some attacks, not after a time, so they pass on a busy machine.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chaos import arena as arenas
from chaos.adapters import ADAPTERS, Adapter, Kind
from chaos.arena import Arena, May
from chaos.attacks import ATTACKS
from chaos.play import attacks_by_adapter, possible
from chaos.rounds import Round, draw, shrink

from sc2pool import SubprocSC2VecEnv
from sc2pool.errors import CrashLoopError
from tests.support.audit.audited.env import AuditEnv
from tests.support.audit.checker import Received, Record
from tests.support.audit.faulty import Faulty
from tests.support.programs import run

SCRIPT = Path(__file__).parents[2] / "scripts" / "chaos.py"
Chaos = Callable[..., dict[str, Any]]
TAKES_S = 1800.0
"""The time limit of a run, in seconds; a run takes much less time on an idle machine."""


@pytest.fixture
def chaos(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Runs the script, which must pass, and returns its report."""

    def run_script(*arguments: str, python: str = sys.executable) -> dict[str, Any]:
        report = tmp_path / "chaos.json"
        words = (python, SCRIPT, *arguments, "--report", report)
        finished = run(*words, timeout_s=TAKES_S - 10.0)
        assert finished.returncode == 0, finished.stdout + finished.stderr
        figures: dict[str, Any] = json.loads(report.read_text())
        return figures

    return run_script


@pytest.mark.timeout(1800.0)
def test_attacks_of_all_kinds(chaos: Chaos) -> None:
    figures = chaos("run", "--n", "2", "--rounds", "7", "--strikes", "4", "--seed", "1")
    assert (figures["wrong"], figures["stuck"], figures["left"]) == (0, 0, 0)
    assert sum(figures["attacks"].values()) >= 7
    assert figures["transitions"] > 100


@pytest.mark.timeout(1800.0)
def test_games_on_a_cluster_of_two_nodes(chaos: Chaos, python_with_ray: str) -> None:
    on_nodes = ("--ray", "--n", "2", "--rounds", "2", "--strikes", "4", "--seed", "1")
    figures = chaos("run", *on_nodes, python=python_with_ray)
    assert (figures["wrong"], figures["stuck"], figures["left"]) == (0, 0, 0)
    assert figures["transitions"] > 20


@pytest.mark.timeout(1800.0)
def test_a_session_that_is_interrupted_often(chaos: Chaos) -> None:
    figures = chaos("interrupts", "--count", "20", "--n", "1", "--spares", "0")
    assert figures["problems"] == []
    assert figures["counts"]["interrupts"] >= 20


@pytest.mark.timeout(1800.0)
def test_trainers_killed_at_random_instants(chaos: Chaos) -> None:
    figures = chaos("kills", "--count", "5", "--n", "1")
    assert figures["left"] == []
    assert sum(figures["killed"].values()) == 5


Play = Callable[..., Arena]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Plays some steps on an adapter of two envs, and closes the adapter."""

    def run(adapter: type[Adapter], may: May = May.NOTHING) -> Arena:
        kind = Kind(
            lambda given: adapter(SubprocSC2VecEnv([AuditEnv] * given.n, config=given.config)),
            games=False,
        )
        monkeypatch.setitem(ADAPTERS, "under test", kind)
        arena = Arena("under test", 2, 0, Faulty(tmp_path, tmp_path / "orders"), tmp_path)
        arena.may = may
        arena.open()
        for _ in range(5):
            arena.step()
        arena.close()
        return arena

    return run


class RaisesOurs(Adapter):
    """An adapter whose third step raises an error of the package."""

    error: Exception = CrashLoopError("too many")

    def step(self) -> list[Record]:
        self.steps = getattr(self, "steps", 0) + 1
        if self.steps == 3:
            raise self.error
        return super().step()


class RaisesAnAssertion(RaisesOurs):
    error = AssertionError("the book-keeping is wrong")


class SwapsRewards(Adapter):
    """An adapter that exchanges the rewards of two envs."""

    def step(self) -> list[Record]:
        *records, first, second = super().step()
        assert isinstance(first, Received)
        assert isinstance(second, Received)
        swapped = replace(first, reward=second.reward), replace(second, reward=first.reward)
        return [*records, *swapped]


def test_a_sound_pool_has_no_problems(play: Play) -> None:
    arena = play(Adapter)
    assert arena.problems == []
    assert arena.transitions == 10


def test_a_wrong_transition(play: Play) -> None:
    assert "the reward is" in play(SwapsRewards).problems[0]


def test_an_error_that_is_not_ours(play: Play) -> None:
    (problem,) = play(RaisesAnAssertion, May.ENDED).problems
    assert "no error of sc2pool" in problem


def test_an_error_that_no_attack_allows(play: Play) -> None:
    (problem,) = play(RaisesOurs).problems
    assert "which no attack allows" in problem


def test_an_error_after_which_processes_live(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arenas, "GONE_WITHIN_S", 0.1)
    problems = play(RaisesOurs, May.ENDED).problems
    assert len(problems) == 2, "a worker for each env"
    assert all("lives" in problem for problem in problems)


def test_a_truncation_that_no_attack_allows(play: Play) -> None:
    class HarmsItself(Adapter):
        def reset(self) -> list[Record]:
            self.harm = 3
            return super().reset()

    (problem,) = play(HarmsItself).problems
    assert "nothing may follow" in problem


def test_a_call_that_does_not_end(tmp_path: Path) -> None:
    program = (
        "from tests.support.audit.measures import bounded\n"
        "import time\n"
        "with bounded(0.2):\n"
        "    time.sleep(600)\n"
    )
    environment = {"PYTHONPATH": str(Path(arenas.__file__).parents[2])}
    ended = run(sys.executable, "-c", program, env=environment)
    assert ended.returncode == 1
    assert "Timeout" in ended.stderr


ALL = attacks_by_adapter({"mount", "pids", "clock"})
WEIGHTS = {name: attack.weight for name, attack in ATTACKS.items()}


def drawn(seed: int, number: int) -> Round:
    return draw(seed, number, 8, adapters=ALL, weights=WEIGHTS)


def test_a_seed_draws_the_same_and_another_does_not() -> None:
    rounds = [drawn(1, number) for number in range(20)]
    assert rounds == [drawn(1, number) for number in range(20)]
    assert rounds != [drawn(2, number) for number in range(20)]
    assert len(set(rounds)) == 20


def test_every_adapter_and_every_attack_is_drawn() -> None:
    rounds = [drawn(3, number) for number in range(20 * len(ADAPTERS))]
    assert {one.adapter for one in rounds[: len(ADAPTERS)]} == set(ALL)
    local = {name for name, attack in ATTACKS.items() if "nodes" not in attack.needs}
    assert {strike.attack for one in rounds for strike in one.strikes} == local
    assert {one.spares for one in rounds} == {0, 1, 2, 3}


def test_nodes_are_attacked_where_there_is_a_cluster() -> None:
    on_nodes = attacks_by_adapter({"mount", "pids", "clock", "nodes"})
    assert on_nodes.keys() == set(ADAPTERS) - set(ALL)
    for attacks in on_nodes.values():
        assert attacks >= {"node lost", "actor KILL", "game KILL", "interrupt: step"}
        assert not attacks & {"full disk", "fork: steps", "deletes: run_folder"}


def test_a_round_survives_json_and_keeps_the_seeds_of_what_is_left_in() -> None:
    one = max((drawn(4, number) for number in range(10)), key=lambda round: len(round.strikes))
    assert Round.of(json.loads(json.dumps(one.as_dict()))) == one
    part = one.with_strikes(one.strikes[::2])
    assert (part.adapter, part.steps) == (one.adapter, one.steps)
    assert set(part.strikes) < set(one.strikes)


def test_attacks_need_their_target() -> None:
    assert "game KILL" not in possible(ADAPTERS["sb3, envs"], set())
    assert "worker KILL" in possible(ADAPTERS["sb3, envs"], set())
    assert "full disk" not in possible(ADAPTERS["sb3"], set())
    assert "full disk" in possible(ADAPTERS["sb3"], {"mount"})


@pytest.mark.parametrize("culprits", [{7}, {0, 31}, {3, 4, 5}, {1, 9, 17, 25}, set(range(32))])
def test_only_needed_attacks_are_kept(culprits: set[int]) -> None:
    tried: list[Sequence[int]] = []

    def fails(part: Sequence[int]) -> bool:
        tried.append(part)
        return culprits <= set(part)

    assert shrink(range(32), fails) == sorted(culprits)
    assert len(tried) < 32 * 32


def test_a_part_that_fails_seldom_is_tried_again() -> None:
    tries = 0

    def fails(part: Sequence[int]) -> bool:
        nonlocal tries
        tries += 1
        return 5 in part and tries % 3 == 0

    assert shrink(range(8), fails, repeat=3) == [5]


def test_any_of_two_is_enough() -> None:
    assert len(shrink(range(20), lambda part: 4 in part or 15 in part)) == 1
