"""Write the stand-in's numbers of unit types from the game's own data, or check them against it.

    python scripts/truth.py MODS            # writes them
    python scripts/truth.py --check MODS    # compares them

MODS is the folder with the game's mods as XML (`core.sc2mod`, `liberty.sc2mod` and so on, each with
`base.sc2data/GameData`), as SC2Mapster/SC2GameData publishes them for every build; the stand-in
reports build 81433. What is written holds facts alone, of the types that the files list: a new
type begins as another one's line.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from truth import catalog, units

from sc2standin.data import jsonc, tables
from sc2standin.data.unit_types import files

FILES = {files.NUMBERS: catalog.MELEE, files.LIBERTY: catalog.LIBERTY}
"""The files, and the mods that each has the facts of."""
FIRST_LINE = "// Written by scripts/truth.py; the fields are those of `UnitType` in `kinds.py`."


def written(path: Path, folder: Path) -> str:
    """What the file should say."""
    game = catalog.GameData(folder, FILES[path])
    rows = {row.name: row for row in tables.kept().units}
    facts = {name: units.facts_of(game, rows[name]) for name, _ in jsonc.read(path)}
    lines = (f"{json.dumps(name)}: {json.dumps(fields)}" for name, fields in facts.items())
    return f"{FIRST_LINE}\n{{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    """Write the files, or check them; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("mods", type=Path)
    options = parser.parse_args()
    wrong = 0
    for path in FILES:
        before, after = path.read_text(), written(path, options.mods)
        wrong += before != after
        for ours, theirs in zip(before.splitlines(), after.splitlines(), strict=False):
            if ours != theirs:
                print(f"- {ours}\n+ {theirs}")
        if not options.check:
            path.write_text(after)
    return int(bool(wrong and options.check))


if __name__ == "__main__":
    sys.exit(main())
