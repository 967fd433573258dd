"""Runs other libraries that play StarCraft II on the stand-in, each in an environment of its own.

Rules: no library is changed, and the end of a run ends all of its processes.
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
"""The folder of the environments; each environment is named after its library."""
_ASKED = """
import sys, sysconfig
print(sys.version_info >= (3, 11))
print(sysconfig.get_path("purelib"))
"""


class NotPrepared(SystemExit):
    """A library's environment cannot be made. The script ends with a message and no traceback."""


@dataclass(frozen=True)
class Ran:
    """A run of a program.

    Attributes:
        output: the program's stdout and stderr.
        problem: the error; "" if the program ended with exit code 0.
    """

    output: str
    problem: str


def default_python() -> str:
    """The machine's Python 3.10 if it can make environments, else the running Python."""
    asked = ["python3.10", "-c", "import ensurepip, venv"]
    with contextlib.suppress(OSError):
        if subprocess.run(asked, capture_output=True, check=False).returncode == 0:
            return asked[0]
    return sys.executable


def prepare(
    environment: Path, base: str, requirements: Path, *more: str, customize: str = ""
) -> Path:
    """The Python of a library's environment; makes the environment if it does not exist.

    Args:
        environment: the environment's folder.
        base: the Python that makes the environment.
        requirements: the file that lists the packages; their dependencies are not installed.
        more: further packages, as pip names them.
        customize: a `sitecustomize.py` for the environment of a Python newer than 3.10.

    Raises:
        NotPrepared: the environment cannot be made; the message names the step that failed.
    """
    python = environment / "bin" / "python"
    done = environment / "prepared"
    if done.exists():
        return python
    shutil.rmtree(environment, ignore_errors=True)
    _made([base, "-m", "venv", environment], f"{base} made no environment in {environment}")
    pip = [python, "-m", "pip", "install", "--quiet", "--no-deps"]
    for source in more:  # these packages come first, because they fail most often
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
    """Run a step of the preparation, which prints its errors; raise `otherwise` if it fails."""
    try:
        subprocess.run(words, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotPrepared(otherwise) from error


def run_to_end(words: Sequence[str | Path], game: Path, limit_s: float) -> Ran:
    """Run a program in a library's environment to its end, and end the games that it started.

    Args:
        words: the command line.
        game: the installation that the program plays.
        limit_s: how long the program may take.
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
