"""Plays SMAC, as it is published, on the stand-in: with random agents and with its own heuristic.

`python tests/peers/run_smac.py play [SCENARIO ...] [--episodes 12]` plays on the stand-in's maps.
`python tests/peers/run_smac.py play --maps FOLDER` plays on the real maps in a folder.
`python tests/peers/run_smac.py maps FOLDER` compares our files with the real maps.

If no scenario is named, seven are played. `play` takes `--environment DIR`, the virtual environment
of SMAC (default: .venv/smac), because SMAC needs packages that sc2pool does not work with. If the
environment does not exist, it is made with `--python`, by default Python 3.10 if installed. SMAC is
not in the package index; `--source` says where SMAC comes from (default: its repository, which also
has the real maps in smac/env/starcraft2/maps/SMAC_Maps). SMAC's code is not changed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sc2standin.install import install
from sc2standin.map_reader.real_map import read_scenario
from sc2standin.map_reader.scenario import Scenario
from tests.peers.clients import ENVIRONMENTS, default_python, prepare, run_to_end

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ENVIRONMENTS / "smac"
PACKAGES = Path(__file__).with_name("smac-requirements.txt")
PLAY = Path(__file__).parent / "programs" / "play_smac.py"
SOURCE = "git+https://github.com/oxwhirl/smac.git@d6aab33f76abc3849c50463a8592a84f59a5ef84"
MAPS = ROOT / "sc2standin" / "maps" / "smac"
"""The folder of the stand-in's maps for SMAC's scenarios."""
OF_SMACV2 = MAPS.with_name("smacv2")
SCENARIOS = ("3m", "8m", "5m_vs_6m", "2s3z", "3s_vs_3z", "corridor", "MMM")
PLAYERS = ("random", "heuristic")
LAUNCH_S = 60
EPISODE_S = 60
"""Limit in seconds for the launch of a game, and for each episode."""
HEAD = (
    "| scenario | player | episodes | return | win rate | forced restarts | ms/step |\n"
    "|---|---|---|---|---|---|---|"
)


class SmacError(Exception):
    """SMAC failed, or did not end in time; the message has the last lines of SMAC's output."""


@dataclass(frozen=True)
class Played:
    """The figures that SMAC reports for one player's episodes on one scenario."""

    returns: list[float]
    wins: int
    steps: int
    forced_restarts: int
    seconds: float

    def row(self, scenario: str, player: str) -> str:
        """The line of the table for these figures."""
        returns, n = self.returns, len(self.returns)
        spread = stdev(returns) if n > 1 else 0.0
        cells = (
            scenario,
            player,
            n,
            f"{mean(returns):.1f} ± {spread:.1f} ({min(returns):.1f} to {max(returns):.1f})",
            f"{self.wins / n:.2f}",
            self.forced_restarts,
            f"{1000 * self.seconds / self.steps:.1f}",
        )
        return f"| {' | '.join(map(str, cells))} |"


def main() -> int:
    options = parse_arguments()
    if options.what == "maps":
        return compare(options.folder)
    python = prepare(options.environment, options.python, PACKAGES, options.source)
    print(HEAD, flush=True)
    with installation(options.maps) as game:
        for scenario in options.scenarios or SCENARIOS:
            for player in options.players:
                much = {"episodes": options.episodes, "seed": options.seed}
                played = play(python, game, scenario, player, **much)
                print(played.row(scenario, player), flush=True)
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="what", required=True)
    playing = commands.add_parser("play")
    names = sorted(path.stem for path in MAPS.iterdir())
    playing.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(names))
    playing.add_argument("--players", nargs="+", choices=PLAYERS, default=PLAYERS)
    playing.add_argument("--episodes", type=int, default=12, help="per player and scenario")
    playing.add_argument("--seed", type=int, default=1)
    playing.add_argument("--maps", type=Path, help="a folder with the real maps")
    playing.add_argument("--environment", type=Path, default=ENVIRONMENT)
    playing.add_argument("--python", default=default_python(), help="makes the environment")
    playing.add_argument("--source", default=SOURCE, help="SMAC, as pip names it")
    commands.add_parser("maps").add_argument("folder", type=Path)
    return parser.parse_args()


@contextlib.contextmanager
def installation(maps: Path | None = None) -> Iterator[Path]:
    """A folder that SMAC uses as the game's installation, with the maps of `maps` if given."""
    with tempfile.TemporaryDirectory(prefix="sc2pool-smac-") as folder:
        game = Path(folder) / "game"
        install(game)
        if maps is not None:
            shutil.copytree(maps, game / "Maps" / "SMAC_Maps", dirs_exist_ok=True)
        yield game


def smac_output(words: Sequence[str | Path], game: Path, limit_s: float, what: str) -> str:
    """Run a program that uses SMAC, and return its output.

    Args:
        words: the command line.
        game: the installation that SMAC plays.
        limit_s: how long the program may take.
        what: what the program does, for the message.

    Raises:
        SmacError: the program failed, or did not end in time.
    """
    ran = run_to_end(words, game, limit_s)
    if ran.problem:
        raise SmacError(f"{what}: {ran.problem}: {ran.output[-2000:]}")
    return ran.output


def play(
    python: Path, game: Path, scenario: str, player: str, *, episodes: int, seed: int
) -> Played:
    """Let one of SMAC's players play, and end all of its games afterwards."""
    words = [python, PLAY, scenario, player, str(episodes), str(seed)]
    limit_s = LAUNCH_S + EPISODE_S * episodes
    output = smac_output(words, game, limit_s, f"{scenario}, {player}")
    return Played(**json.loads(output.splitlines()[-1]))


def compare(folder: Path) -> int:
    """Print how our files differ from the real maps; returns the number of files that differ."""
    different = 0
    for path in sorted([*MAPS.iterdir(), *OF_SMACV2.iterdir()]):
        real = folder / path.name
        found = [f"there is no {real}"]
        if real.is_file():
            ours = read_scenario(path.read_bytes())
            found = differences(read_scenario(real.read_bytes()), ours)
        print(f"{path.stem}: {'; '.join(found) or 'as the real map'}")
        different += bool(found)
    return different


def differences(real: Scenario, ours: Scenario) -> list[str]:
    """How one of our files differs from the real map: units, places, rules, ground."""
    found = [
        f"{what}: {theirs} in the real map, {own} in ours"
        for what, theirs, own in (
            ("units", units_of(real), units_of(ours)),
            ("rules", real.rules, ours.rules),
            ("area", real.playable_area, ours.playable_area),
        )
        if theirs != own
    ]
    for grid in ("walkable", "buildable", "height"):
        if not np.array_equal(getattr(real.ground, grid), getattr(ours.ground, grid)):
            found.append(f"the grid {grid} differs")
    return found


def units_of(scenario: Scenario) -> dict[tuple[str, int, object], int]:
    """The number of units of each type, owner and place."""
    counts: dict[tuple[str, int, object], int] = {}
    for group in scenario.units:
        key = group.type.name, group.owner, group.place
        counts[key] = counts.get(key, 0) + group.count
    return counts


if __name__ == "__main__":
    sys.exit(main())
