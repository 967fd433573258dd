"""An earlier commit of sc2pool as one more side: the same case, in the same rounds.

    benchmark ─ prepare, run ─► python -m bench.revision: this benchmark, on the other sc2pool
              ◄─ steps, time ──

Rules: the commit is unpacked beside the checkout, which is not touched; its pool plays its own
stand-in. Its trainer is a child of the benchmark, so the CPU time of the trainer counts among the
workers', and only their sum can be compared.

    python -m bench.revision MAKER ARGUMENTS    a side; a maker of `bench.sides`, its arguments
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

from bench import child

CHECKOUT = Path(__file__).parents[2]


class NoSuchRevisionError(Exception):
    """The commit cannot be unpacked, for the reason in the message."""


def unpack(revision: str, folder: Path) -> None:
    """Unpack a commit of this checkout.

    Args:
        revision: as git knows it, such as `HEAD~1`.
        folder: where to; it is made.

    Raises:
        NoSuchRevisionError: git does not know it, or this is no checkout.
    """
    command = ["git", "-C", str(CHECKOUT), "archive", revision, "sc2pool"]
    try:
        packed = subprocess.run(command, capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise NoSuchRevisionError("--against needs git") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode().strip()
        raise NoSuchRevisionError(f"--against {revision}: {said}") from None
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")


class RevisionSide:
    """A side that is played by the other commit, which was unpacked into `folder`."""

    def __init__(self, folder: Path, maker: str, *arguments: Any) -> None:
        self._programs = [
            child.start_asked("bench.revision", maker, json.dumps(arguments), import_from=[folder])
        ]

    def prepare(self) -> None:
        child.ask(self._programs, "prepare")

    def run(self, seconds: float) -> tuple[int, float]:
        ((steps, took_s),) = child.ask(self._programs, "run", seconds)
        return steps, took_s

    def close(self) -> None:
        child.end(self._programs)


def serve(maker: str, arguments: list[Any], folder: Path) -> None:
    """Make the side and obey the questions until there are no more."""
    from bench import sides  # noqa: PLC0415 - in this process it imports the other sc2pool
    from bench.standin import install  # noqa: PLC0415

    logging.getLogger("sc2pool").setLevel(logging.ERROR)  # it warns of the stand-in
    if maker == "game_side":
        arguments = [*arguments, str(install(folder).root)]
    side = getattr(sides, maker)(*arguments)
    try:
        for what, *values in child.questions():
            child.answer(getattr(side, what)(*values))
    finally:
        side.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="revision-", ignore_cleanup_errors=True) as own:
        serve(sys.argv[1], json.loads(sys.argv[2]), Path(own))
