"""Measures an earlier commit of sc2pool as one more side (compared program), in the same rounds.

The benchmark starts `python -m bench.revision MAKER ARGUMENTS`, which runs this benchmark's code on
the earlier sc2pool. MAKER is a function of `bench.sides` that makes a side. The program is asked to
prepare and run the side, and answers with the number of steps and their time.

The commit is installed in another folder; the checkout is not touched. If possible, the commit's
compiled step path is built in the same way as the checkout's. The commit's pool plays the commit's
own stand-in. The trainers of both sides are children of the benchmark, so their CPU time counts as
CPU time of workers.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

from bench import child

CHECKOUT = Path(__file__).parents[2]


class NoSuchRevisionError(Exception):
    """The commit cannot be installed, for the reason in the message."""


def install_revision(revision: str, folder: Path) -> None:
    """Install a commit of this checkout, which uses the dependencies that are installed here.

    Args:
        revision: a revision for git, such as `HEAD~1`.
        folder: the new folder of the installation.

    Raises:
        NoSuchRevisionError: Git or pip is missing, git does not know the revision, or pip cannot
            install it.
    """
    with tempfile.TemporaryDirectory(prefix="revision-") as source:
        packed = _output(revision, ["git", "-C", str(CHECKOUT), "archive", revision])
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(source, filter="data")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        _output(revision, [*pip, "--target", str(folder), source])


def _output(revision: str, command: Sequence[str]) -> bytes:
    try:
        return subprocess.run(command, capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise NoSuchRevisionError(f"--against needs {command[0]}") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode().strip()
        raise NoSuchRevisionError(f"--against {revision}: {said}") from None


class RevisionSide:
    """A side that is played by the commit which is installed in `folder`."""

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
    """Make the side, and answer questions until stdin is closed."""
    from bench import sides  # noqa: PLC0415 - imports the other commit's sc2pool in this process
    from bench.standin import install  # noqa: PLC0415

    logging.getLogger("sc2pool").setLevel(logging.ERROR)  # hides a warning about the stand-in
    if maker == "game_side":
        arguments = [*arguments, str(install(folder).root)]
    with closing(getattr(sides, maker)(*arguments)) as side:
        for what, *values in child.questions():
            child.answer(getattr(side, what)(*values))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="revision-", ignore_cleanup_errors=True) as own:
        serve(sys.argv[1], json.loads(sys.argv[2]), Path(own))
