"""Runs python-sc2's own test bots, unmodified, on the stand-in.

Usage: `python tests/peers/python_sc2_test_bots.py REPOSITORY [--bots NAME ...]`.

REPOSITORY is a clone of python-sc2 (github.com/BurnySc2/python-sc2), because its package has no
tests. The bots run on the installed package `sc2`. Each bot is a script in the folder `test`, and
asks for maps of ranked play. Under the name of each ranked map, the bot gets the stand-in's melee
map. Empty128, on which no player can lose, is flat. A table says how each bot ended. The exit
status is 1 if a bot failed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sc2standin.install import install
from tests.peers.clients import run_to_end

BOTS = (
    "autotest_bot",
    "upgradestest_bot",
    "battery_overcharge_bot",
    "queries_test_bot",
    "damagetest_bot",
)
MAPS: dict[str, dict[str, object]] = {
    "Acropolis": {},
    "AcropolisLE": {},
    "Empty128": {"endless": True, "ground": None},
}
"""For each map, the fields in which the map differs from the melee map."""
TIMEOUT_S = 900.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("repository", type=Path, help="a clone of python-sc2")
    parser.add_argument("--bots", nargs="+", choices=BOTS, default=list(BOTS))
    options = parser.parse_args()
    failed = False
    print("| bot | seconds | ended |")
    print("|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="python-sc2-") as folder:
        game = Path(folder) / "game"
        install_with_maps(game)
        for bot in options.bots:
            script = options.repository.resolve() / "test" / f"{bot}.py"
            began_s = time.monotonic()
            ran = run_to_end([sys.executable, script], game, TIMEOUT_S)
            problem = ran.problem or failure_in(ran.output)
            failed |= bool(problem)
            took_s = time.monotonic() - began_s
            print(f"| {bot} | {took_s:.0f} | {problem or 'well'} |", flush=True)
    return int(failed)


def install_with_maps(game: Path) -> None:
    """Install the stand-in with its melee map, for all races, under the names of the bots' maps."""
    install(game, ["--any-race"])
    melee = game / "Maps" / "Melee" / "Simple64.SC2Map"
    content = json.loads(melee.read_text())
    for name, changes in MAPS.items():
        changed = content | {"name": name} | changes
        kept = {key: value for key, value in changed.items() if value is not None}
        melee.with_name(f"{name}.SC2Map").write_text(json.dumps(kept))


def failure_in(output: str) -> str:
    """The error in a bot's output, which does not make its script fail; "" if there is none."""
    lines = output.splitlines()
    errors = [line for line in lines if "Error: " in line and not line.startswith(" ")]
    return errors[-1][:200] if "Traceback" in output and errors else ""


if __name__ == "__main__":
    sys.exit(main())
