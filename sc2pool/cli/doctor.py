"""`sc2pool doctor`: examines the machine and the game, and prints the report.

Rules: only the report is printed to stdout. The progress is printed to stderr, if stderr is a
terminal. The report is printed before its files are written, because writing them may fail.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from sc2pool.cli.arguments import check_writable
from sc2pool.cli.stop import FULL_DISK, Stopped
from sc2pool.doctor.diagnosis import Diagnosis, examine_game
from sc2pool.errors import ConfigError
from sc2pool.utilities import printable, replacing

NARROW, WIDE = 72, 120
"""The report is as wide as the terminal, within these bounds in characters."""


def run(args: argparse.Namespace) -> int:
    """Print the report; returns 0 if sc2pool works with the game, 1 if something must be fixed."""
    if args.full:
        check_writable(args.out, "--out")
    diagnosis = examine_game(
        args.game,
        quick=args.quick,
        full=args.full,
        timeout_s=args.timeout,
        say=_say if sys.stderr.isatty() else lambda _: None,
        terminated=Stopped,
    )
    width = min(max(shutil.get_terminal_size().columns, NARROW), WIDE)
    text = diagnosis.as_json() if args.json else diagnosis.as_text(width)
    print(printable(text, None, keep="\n"))
    if args.full and diagnosis.base_build is not None:
        _write_report(args.out, diagnosis)
    return int(not diagnosis.works())


def _write_report(folder: Path, diagnosis: Diagnosis) -> None:
    """Write the report as JSON and text; raises `ConfigError`, or `OSError` on a full disk."""
    name = f"doctor-Base{diagnosis.base_build}"
    written = []
    for suffix, content in ((".json", diagnosis.as_json()), (".txt", diagnosis.as_text(NARROW))):
        path = folder / f"{name}{suffix}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as unfinished:
                unfinished.write_text(content + "\n", encoding="utf-8")
        except OSError as error:
            if error.errno in FULL_DISK:
                raise
            raise ConfigError(f"the report cannot be written to {path}: {error}") from error
        written.append(str(path))
    print(f"sc2pool doctor: the report is in {' and '.join(written)}", file=sys.stderr)


def _say(name: str) -> None:
    print(f"sc2pool doctor: {name} …", file=sys.stderr, flush=True)
