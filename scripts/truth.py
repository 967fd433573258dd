"""Compares the stand-in with the game's own data, and writes its unit types from this data.

Usage:
    python scripts/truth.py write MODS     # Writes the numbers of unit types.
    python scripts/truth.py check MODS     # Compares unit types, spells, upgrades and cards.
    python scripts/truth.py score          # Measures the stand-in as a client would.
    python scripts/truth.py duels          # Plays battles of equal cost, and computes the winner.
    python scripts/truth.py fields FOLDER  # Lists observation fields that the stand-in never fills.

MODS is the folder with the game's mods as XML. Each mod, such as `core.sc2mod` or `liberty.sc2mod`,
has a folder `base.sc2data/GameData`. SC2Mapster/SC2GameData publishes MODS for every build.
The stand-in reports build 81433. The written files hold facts about the types that they already
list. To add a type, copy the line of another type and change the copied name.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from truth import cards, catalog, duels, experiments, fields, spells, units, upgrades

from sc2pool.cli.bench.measuring import markdown
from sc2standin.data import jsonc, tables
from sc2standin.data.unit_types import files
from sc2standin.install import install

FILES = {
    files.NUMBERS: (catalog.MELEE, units.in_melee),
    files.LIBERTY: (catalog.LIBERTY, units.elsewhere),
}
"""For each file of facts: the mods with the facts, and the function for the facts of a type."""
FIRST_LINE = "// Written by scripts/truth.py; the fields are those of `UnitType` in `kinds.py`."
HEAD = ("fact", "real", "ours", "deviation", "source")
HEAD_OF_DUELS = ("groups", "reckoned", "played")


def written(path: Path, folder: Path) -> str:
    """The content that a file of facts should have."""
    mods, facts_of = FILES[path]
    game = catalog.GameData(folder, mods)
    rows = {row.name: row for row in tables.kept().units}
    facts = {name: facts_of(game, rows[name]) for name, _ in jsonc.read(path)}
    lines = (f"{json.dumps(name)}: {json.dumps(fields)}" for name, fields in facts.items())
    return f"{FIRST_LINE}\n{{\n" + ",\n".join(lines) + "\n}\n"


def differing(folder: Path) -> Iterator[str]:
    """A diff of the hand-written facts (spells, upgrades, cards) that the data contradict."""
    game = catalog.GameData(folder, catalog.MELEE)
    for part in (spells, upgrades):
        ours, theirs = part.ours(), part.in_catalogs(game)
        for name in ours | theirs:
            if ours.get(name) != theirs.get(name):
                for sign, facts in (("-", ours), ("+", theirs)):
                    yield f"{sign} {name}: {json.dumps(facts.get(name), sort_keys=True)}"
    yield from cards.missing(game)


def compare(folder: Path, *, write: bool) -> int:
    """Print the facts that differ from the game's data; returns the exit status."""
    wrong = False
    for path in FILES:
        before, after = path.read_text(), written(path, folder)
        wrong |= before != after
        for ours, theirs in zip(before.splitlines(), after.splitlines(), strict=False):
            if ours != theirs:
                print(f"- {ours}\n+ {theirs}")
        if write:
            path.write_text(after)
    by_hand = list(differing(folder))
    print(*by_hand, sep="\n", end="\n" if by_hand else "")
    return int(bool(by_hand) or (wrong and not write))


def score() -> int:
    """Print the table of facts, and how many facts agree with the game; returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="sc2pool-truth-") as folder:
        install(Path(folder) / "game")
        found = list(experiments.measured(Path(folder) / "game"))
    print(markdown(HEAD, [experiments.row(fact, ours) for fact, ours in found]))
    agree = sum(fact.agrees(ours) for fact, ours in found)
    print(f"\n{agree} of {len(found)} agree: within 2 %, or as far as a client can tell.")
    return 0


def fight(battles: int) -> int:
    """Print how often the first of two groups of equal cost wins; returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="sc2pool-truth-") as folder:
        install(Path(folder) / "game")
        print(markdown(HEAD_OF_DUELS, list(duels.rates(Path(folder) / "game", battles))))
    return 0


def compare_fields(folder: Path) -> int:
    """Print the table of the fields that the stand-in never fills; returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="sc2pool-truth-") as data_dir:
        install(Path(data_dir) / "game")
        ours = fields.count(fields.tour(Path(data_dir) / "game"))
    print(markdown(fields.HEAD, list(fields.rows(fields.count(fields.recorded(folder)), ours))))
    return 0


def main() -> int:
    """Run the command that the user gave; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("write", "check"):
        commands.add_parser(name).add_argument("mods", type=Path)
    commands.add_parser("score")
    commands.add_parser("fields").add_argument("folder", type=Path)
    commands.add_parser("duels").add_argument("--battles", type=int, default=200)
    options = parser.parse_args()
    if options.command == "score":
        return score()
    if options.command == "duels":
        return fight(options.battles)
    if options.command == "fields":
        return compare_fields(options.folder)
    try:
        return compare(options.mods, write=options.command == "write")
    except (OSError, ElementTree.ParseError) as error:
        parser.error(f"{options.mods} does not hold the game's mods as XML: {error}")


if __name__ == "__main__":
    sys.exit(main())
