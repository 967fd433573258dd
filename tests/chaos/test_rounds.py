"""What is drawn from a seed."""

from __future__ import annotations

import json

from chaos.adapters import ADAPTERS
from chaos.attacks import ATTACKS
from chaos.play import attacks_by_adapter, possible
from chaos.rounds import Round, draw

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
