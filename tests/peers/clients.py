"""Other libraries that play StarCraft II: an environment of their own, and a run on the stand-in.

Rules: no library is changed, and all processes of a run end with it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENTS = Path(__file__).resolve().parents[2] / ".venv"
"""The folder of the environments, each with its library's name."""
_ASKED = """
import sys, sysconfig
print(sys.version_info >= (3, 11))
print(sysconfig.get_path("purelib"))
"""


class NotPrepared(SystemExit):
    """A library's environment cannot be made: the script ends with the message, not a traceback."""


@dataclass(frozen=True)
class Ran:
    """A run of a program.

    Attributes:
        output: its stdout and stderr.
        problem: "" if it ended with exit code 0, else the error.
    """

    output: str
    problem: str


def default_python() -> str:
    """Python 3.10 if there is one that can make environments, else this Python."""
    asked = ["python3.10", "-c", "import ensurepip, venv"]
    with contextlib.suppress(OSError):
        if subprocess.run(asked, capture_output=True, check=False).returncode == 0:
            return asked[0]
    return sys.executable


def prepare(
    environment: Path, base: str, requirements: Path, *more: str, customize: str = ""
) -> Path:
    """The Python of a library's environment, which is made if it is not there.

    Args:
        environment: the environment's folder.
        base: the Python that makes the environment.
        requirements: the file with the packages; their own needs are not installed.
        more: packages beside these, as pip names them.
        customize: a `sitecustomize.py` that a Python newer than 3.10 gets.

    Raises:
        NotPrepared: the environment cannot be made; the message names the attempt.
    """
    python = environment / "bin" / "python"
    done = environment / "prepared"
    if done.exists():
        return python
    shutil.rmtree(environment, ignore_errors=True)
    _made([base, "-m", "venv", environment], f"{base} made no environment in {environment}")
    pip = [python, "-m", "pip", "install", "--quiet", "--no-deps"]
    for source in more:  # first, because a package from outside the index fails most often
        _made([*pip, source], f"pip could not install {source}; --source takes a folder, too")
    _made([*pip, "-r", requirements], f"pip could not install the packages of {requirements}")
    if customize:
        asked = subprocess.run([python, "-c", _ASKED], check=True, text=True, capture_output=True)
        is_newer, packages = asked.stdout.splitlines()
        if is_newer == "True":
            (Path(packages) / "sitecustomize.py").write_text(customize)
    done.touch()
    return python


def _made(words: Sequence[str | Path], otherwise: str) -> None:
    """Run a step of the preparation, which prints its own errors; the message if it fails."""
    try:
        subprocess.run(words, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotPrepared(otherwise) from error


def run_to_end(words: Sequence[str | Path], game: Path, limit_s: float) -> Ran:
    """Run a program of a library's environment; the games that it started end with it.

    Args:
        words: the command line.
        game: the installation that it plays.
        limit_s: how long it may take.
    """
    process = subprocess.Popen(
        words,
        env=os.environ | {"SC2PATH": str(game), "SDL_VIDEODRIVER": "dummy"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output = process.communicate(timeout=limit_s)[0]
    except subprocess.TimeoutExpired:
        _end(process)
        return Ran(process.communicate()[0], f"did not end within {limit_s} s")
    finally:
        _end(process)
    code = process.returncode
    return Ran(output, f"exit code {code}" if code else "")


def _end(process: subprocess.Popen[str]) -> None:
    """Kill a program and the games that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
