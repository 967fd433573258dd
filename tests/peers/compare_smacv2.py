"""Plays SMACv2 and our task of a scenario with the same teams and actions, and compares results.

Usage: `python tests/peers/compare_smacv2.py [SCENARIO ...] [--steps 200] [--options]`.

SMACv2 draws battles and plays random actions until `--steps` steps are played; our task plays each
battle again. The observations, states, available actions, rewards and ends must differ by at most
1e-5. `record_smac.py` says how SMACv2's own observations differ from those that are compared. If
you name no scenario, six are played. With `--options`, each scenario is also played under options
that SMACv2's examples do not use. SMACv2 is installed like SMAC (see run_smac.py), with the same
packages, into .venv/smacv2. `--source` says where SMACv2 comes from (default: its repository).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sc2pool.tasks.teams.scenarios import Rules
from sc2pool.tasks.teams.smacv2 import (
    EXAMPLE_RULES,
    MAPS,
    SCENARIOS,
    Drawn,
    RandomTeamsTask,
    example_config,
    smacv2_task,
)
from tests.peers.clients import ENVIRONMENTS
from tests.peers.compare_smac import (
    Compared,
    Record,
    compared,
    parse_arguments,
    print_table,
    recorded,
)

ENVIRONMENT = ENVIRONMENTS / "smacv2"
SOURCE = "git+https://github.com/oxwhirl/smacv2.git@577ab5a2cff2391f8df582da5731ea9cd6adf3c6"
USUAL = (
    "terran_5_vs_5",
    "protoss_5_vs_5",
    "zerg_5_vs_5",
    "terran_10_vs_11",
    "protoss_10_vs_10",
    "zerg_20_vs_23",
)
OPTIONS: tuple[Mapping[str, Any], ...] = (
    {
        "obs_last_action": True,
        "obs_pathing_grid": True,
        "obs_terrain_height": True,
        "obs_timestep_number": True,
        "state_timestep_number": True,
        "reward_only_positive": False,
    },
    {"obs_all_health": False, "obs_own_health": False, "obs_own_pos": False},
    {"use_unit_ranges": False, "state_last_action": False, "reward_sparse": True},
    {"min_attack_range": 5, "move_amount": 4, "reward_scale": False, "reward_defeat": -50},
    {"heuristic_ai": True},
    {"heuristic_ai": True, "heuristic_rest": True},
    {"observe": False, "obs_last_action": True},
    {"dist_type": "reflect_position"},
    {"dist_type": "surrounded"},
    {"n_units": 7, "n_enemies": 4},
)
"""Options that SMACv2's examples do not use; some of them belong to its capability config."""


def main() -> int:
    options = parse_arguments(__doc__, SCENARIOS, ENVIRONMENT, SOURCE)
    return print_table(options, USUAL, OPTIONS, compare, "the example's")


def compare(
    python: Path, game: Path, scenario: str, chosen: Mapping[str, Any], *, steps: int, seed: int
) -> Compared:
    """Let SMACv2 and our task play battles of one scenario until this many steps are played."""
    map_name, n_units, n_enemies = SCENARIOS[scenario]
    left = dict(chosen)
    config = example_config(
        map_name, left.pop("n_units", n_units), left.pop("n_enemies", n_enemies)
    )
    for key, part in (("observe", "team_gen"), ("dist_type", "start_positions")):
        if key in left:
            config[part][key] = left.pop(key)
    rules = Rules(**asdict(EXAMPLE_RULES) | left)
    task = smacv2_task(map_name, config, rules)
    options = asdict(rules) | {"capability_config": config}
    battle = partial(recorded, python, game, map_name, options)
    return compared(battle, partial(with_draw, task), game, steps=steps, seed=seed)


def with_draw(task: type[RandomTeamsTask], theirs: Record) -> type[RandomTeamsTask]:
    """The task of a scenario, with the teams and places that SMACv2 drew."""
    kinds = {kind.name: kind for one in MAPS.values() for kind in one}
    drawn = Drawn(
        allies=tuple(kinds[name] for name in theirs["allies"].tolist()),
        enemies=tuple(kinds[name] for name in theirs["enemies"].tolist()),
        ally_places=theirs["ally_places"],
        enemy_places=theirs["enemy_places"],
    )

    class Again(task):  # type: ignore[misc, valid-type]  # mypy takes no variable as a base
        def draw(self) -> Drawn:
            return drawn

    return Again


if __name__ == "__main__":
    sys.exit(main())
