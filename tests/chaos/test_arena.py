"""The arena sees a pool that is broken: a suite that cannot fail proves nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from chaos import arena as arenas
from chaos.adapters import ADAPTERS, Adapter, Kind
from chaos.arena import Arena, May

from sc2pool import SubprocSC2VecEnv
from sc2pool.errors import CrashLoopError
from tests.support.audit.audited.env import AuditEnv
from tests.support.audit.checker import Received, Record
from tests.support.audit.faulty import Faulty
from tests.support.programs import run

Play = Callable[..., Arena]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Plays some steps on an adapter of two envs, and closes it."""

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
    """The third step raises an error."""

    error: Exception = CrashLoopError("too many")

    def step(self) -> list[Record]:
        self.steps = getattr(self, "steps", 0) + 1
        if self.steps == 3:
            raise self.error
        return super().step()


class RaisesAnAssertion(RaisesOurs):
    error = AssertionError("the book-keeping is wrong")


class SwapsRewards(Adapter):
    """Two envs' rewards change places."""

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
