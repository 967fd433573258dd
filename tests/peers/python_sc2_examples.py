"""Plays python-sc2's own example bots, unmodified, on the stand-in's melee.

Usage: `python tests/peers/python_sc2_examples.py REPOSITORY [--bots NAME ...] [--seeds 3]`.

REPOSITORY is a clone of python-sc2 (github.com/BurnySc2/python-sc2), because its package has no
examples. The bots run on the installed package `sc2`. Each bot plays each seed in a process of its
own, and a line of the table says how the game ended. The exit status is 1 if a bot raised an
error, or did not do its job.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

Figures = dict[str, Any]
TIMEOUT_S = 1800
"""Limit for a game in seconds. It is long, because ramp_wall draws the whole map at each step."""


@dataclass(frozen=True)
class Example:
    """A bot of the repository's examples, and the figures that the bot must reach."""

    module: str
    bot: str
    minutes: float
    """A game of this length is ended as a tie, as in the repository's own tests."""
    did_its_job: Callable[[Figures], bool]
    race: str = "Terran"
    difficulty: str = "VeryEasy"


def _is_refused(figures: Figures) -> bool:
    """True if the stand-in lacks the towns of the bot's race."""
    return "--any-race" in figures["result"]


EXAMPLES = {
    "worker_rush": Example(  # the example names the race Zerg, whose towns the stand-in lacks
        "worker_rush",
        "WorkerRushBot",
        10,
        lambda it: it["killed"] > 0 or it["lost"] > 0,
        difficulty="Medium",
    ),
    "distributed_workers": Example(
        "distributed_workers",
        "TerranBot",
        8,
        # The bot always trains SCVs. A surplus at a hall is wrong only if another hall lacks SCVs.
        lambda it: it["town_halls"] >= 2 and (it["most_surplus"] <= 4 or it["least_surplus"] >= -4),
    ),
    "proxy_rax": Example(
        "terran.proxy_rax", "ProxyRaxBot", 20, lambda it: it["result"] == "Victory"
    ),
    "ramp_wall": Example(
        "terran.ramp_wall",
        "RampWallBot",
        1,
        lambda it: it["wall_depots"] == 2 and it["barracks"] == 1,
    ),
    "cyclone_push": Example(
        "terran.cyclone_push",
        "CyclonePush",
        10,
        # The bot is for patch 4.7, so it builds no tech lab, which a factory of this patch needs
        # for cyclones.
        lambda it: it["made"].get("FACTORY", 0) >= 3 and it["made"].get("REFINERY", 0) >= 2,
    ),
    "mass_reaper": Example(
        "terran.mass_reaper",
        "MassReaperBot",
        15,
        lambda it: (
            it["made"].get("ORBITALCOMMAND", 0) >= 1
            and it["made"].get("MULE", 0) >= 2
            and it["made"].get("REAPER", 0) >= 10
            and (it["result"] == "Victory" or it["killed"] >= 500)
        ),
    ),
    "onebase_battlecruiser": Example(
        "terran.onebase_battlecruiser",
        "BCRushBot",
        15,
        lambda it: (
            it["made"].get("STARPORTTECHLAB", 0) >= 1
            and it["made"].get("BATTLECRUISER", 0) >= 1
            and it["killed"] > 0
        ),
    ),
    "worker_stack_bot": Example(  # the example names the race Protoss
        "worker_stack_bot",
        "WorkerStackBot",
        3,
        lambda it: it["collected"] > 2000,
        difficulty="Medium",
    ),
    "zerg_rush": Example("zerg.zerg_rush", "ZergRushBot", 2, _is_refused, "Zerg"),
    "warpgate_push": Example("protoss.warpgate_push", "WarpGateBot", 2, _is_refused, "Protoss"),
}


def main() -> int:
    options = parse_arguments()
    if options.play:
        print(json.dumps(play(EXAMPLES[options.play], options.seeds)))
        return 0
    failed = False
    print("| bot | seed | result | loops | killed | lost | job done |")
    print("|---|---|---|---|---|---|---|")
    for name in options.bots:
        for seed in range(1, options.seeds + 1):
            figures, error = play_apart(options.repository, name, seed)
            done = figures is not None and EXAMPLES[name].did_its_job(figures)
            failed |= not done
            if figures is None:
                print(f"| {name} | {seed} | error: {error} | | | | no |", flush=True)
                continue
            cells = (figures[key] for key in ("result", "loops", "killed", "lost"))
            words = " | ".join(map(str, cells))
            print(f"| {name} | {seed} | {words} | {'yes' if done else 'no'} |", flush=True)
            if not done:
                print(figures, file=sys.stderr)
    return int(failed)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("repository", type=Path, help="a clone of python-sc2")
    parser.add_argument("--bots", nargs="+", choices=list(EXAMPLES), default=list(EXAMPLES))
    parser.add_argument("--seeds", type=int, default=1, help="games of each bot")
    parser.add_argument("--play", choices=list(EXAMPLES), help=argparse.SUPPRESS)
    return parser.parse_args()


def play_apart(repository: Path, name: str, seed: int) -> tuple[Figures | None, str]:
    """Play one game in another process; returns its figures, or None and the error."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # only this process needs the path
    from sc2standin.install import install
    from tests.peers.clients import run_to_end

    with tempfile.TemporaryDirectory(prefix="python-sc2-") as folder:
        game = Path(folder) / "game"
        install(game)
        words = [sys.executable, __file__, repository, "--play", name, "--seeds", str(seed)]
        ran = run_to_end(words, game, TIMEOUT_S)
    last = (ran.output.strip().splitlines() or ["no output"])[-1]
    if ran.problem or not last.startswith("{") or "Traceback" in ran.output:
        return None, f"{ran.problem} {last[:200]}".strip()
    figures: Figures = json.loads(last)
    return figures, ""


def play(example: Example, seed: int) -> Figures:
    """Play one game in this process."""
    from sc2 import maps
    from sc2.data import Difficulty, Race
    from sc2.main import run_game
    from sc2.player import Bot, Computer
    from sc2.protocol import ProtocolError

    sys.path.append(str(parse_arguments().repository))  # the installed sc2 precedes this path
    bot_class = getattr(import_module(f"examples.{example.module}"), example.bot)
    figures: Figures = {}

    class Watched(bot_class):  # type: ignore[misc]
        """The bot's class with an addition: it notes the bot's state before each step."""

        wall_places: tuple[Any, ...] = ()
        had: frozenset[tuple[str, int]] = frozenset()

        async def on_step(self, iteration: int) -> None:
            # The set is copied, because a bot may remove places from python-sc2's own set.
            self.wall_places = self.wall_places or tuple(self.main_base_ramp.corner_depots)
            self.had |= {(one.type_id.name, one.tag) for one in self.all_own_units.ready}
            figures.update(figures_of(self))
            await super().on_step(iteration)

    computer = Computer(Race.Terran, Difficulty[example.difficulty])
    try:
        result = run_game(
            maps.get("Simple64"),
            [Bot(Race[example.race], Watched()), computer],
            realtime=False,
            random_seed=seed,
            game_time_limit=int(example.minutes * 60),
        )
    except ProtocolError as error:
        return dict.fromkeys(("loops", "killed", "lost"), 0) | {"result": str(error)}
    return figures | {"result": getattr(result, "name", str(result))}


def figures_of(bot: Any) -> Figures:
    """A bot's figures at a step; `made` counts all units that the bot ever had, by type."""
    score = bot.state.score
    surplus = [hall.surplus_harvesters for hall in bot.townhalls.ready]
    return {
        "loops": bot.state.game_loop,
        "killed": score.killed_value_units + score.killed_value_structures,
        "lost": score.lost_minerals_army + score.lost_minerals_economy,
        "collected": score.collected_minerals,
        "made": Counter(name for name, _tag in bot.had),
        "town_halls": bot.townhalls.ready.amount,
        "most_surplus": max(surplus, default=0),
        "least_surplus": min(surplus, default=0),
        "barracks": sum(one.type_id.name == "BARRACKS" for one in bot.structures),
        "wall_depots": sum(
            one.type_id.name.startswith("SUPPLYDEPOT")
            and any(one.distance_to(place) < 1 for place in bot.wall_places)
            for one in bot.structures
        ),
    }


if __name__ == "__main__":
    sys.exit(main())
