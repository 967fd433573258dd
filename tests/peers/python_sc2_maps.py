"""Writes the messages of python-sc2's recorded games as files that our tests read.

Usage: `python tests/peers/python_sc2_maps.py REPOSITORY FOLDER`. The tests read the files
if you run `SC2POOL_RECORDED=FOLDER pytest tests/unit tests/standin`.

REPOSITORY is a clone of python-sc2 (github.com/BurnySc2/python-sc2), whose tests have the first
messages of a real game on each of 96 ladder maps, of several patches. The messages are pickled, and
unpickling can run any code, so use a clone that you trust. FOLDER gets files `MAP.KIND.pb.xz`: each
map's `game_info` and `observation`, and the tables of `data` for the only patch that the stand-in
has. `scripts/data_tables.py` says what differs in a table of another patch.
"""

from __future__ import annotations

import argparse
import lzma
import pickle
import sys
from pathlib import Path

from google.protobuf.message import Message

PICKLES = Path("test", "pickle_data")
OF_OUR_PATCH = "BerlingradAIE"
"""A map that was recorded with base build 81433, the one that the stand-in's tables describe."""


def main() -> int:
    options = parse_arguments()
    files = sorted((options.repository / PICKLES).glob("*.xz"))
    if not files:
        print(f"no recorded games in {options.repository / PICKLES}", file=sys.stderr)
        return 1
    options.folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        data, game_info, observation = pickle.loads(lzma.decompress(file.read_bytes()))
        messages: dict[str, Message] = {
            "game_info": game_info.game_info,
            "observation": observation,
        }
        if file.stem == OF_OUR_PATCH:
            messages["data"] = data.data
        for kind, message in messages.items():
            target = options.folder / f"{file.stem}.{kind}.pb.xz"
            target.write_bytes(lzma.compress(message.SerializeToString(), preset=1))
    print(f"{len(files)} maps, in {options.folder}")
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("repository", type=Path, help="a clone of python-sc2")
    parser.add_argument("folder", type=Path, help="where the messages are written")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
