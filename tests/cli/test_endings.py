"""How a command ends whose output nobody reads, or that is interrupted at its very start."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND
from tests.support.programs import run

INTERRUPTED_IMPORT = """
import sys

interrupted = sys.argv[1]
sys.argv = ["sc2pool", "tasks", "--game", "/nowhere"]

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == interrupted:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from sc2pool.cli.main import main
sys.exit(main())
"""


@pytest.mark.parametrize("argument", ["--help", "tasks"])
@pytest.mark.parametrize("buffered", [True, False], ids=["buffered", "unbuffered"])
def test_a_closed_pipe_ends_quietly(into_closed_pipe, argument, buffered):
    done = into_closed_pipe(argument, buffered=buffered)
    unseen = not buffered and argument == "--help"  # argparse drops the error
    assert done.returncode == (0 if unseen else 141)
    assert not re.search("Error|Traceback|Exception", done.stderr)


@pytest.mark.parametrize("arguments", ["tasks", "tasks --json", "standin path"])
@pytest.mark.parametrize("buffered", [True, False], ids=["buffered", "unbuffered"])
def test_output_onto_a_full_disk_is_one_line(arguments, buffered):
    env = {**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"}
    with Path("/dev/full").open("w") as full:
        streams = {"stdout": full, "stderr": subprocess.PIPE, "capture_output": False}
        done = run(*COMMAND, *arguments.split(), **streams, env=env)
    assert (done.returncode, done.stderr) == (1, "sc2pool: cannot write: No space left on device\n")


LONG_COMMAND = """
import sys
from sc2pool.cli import main
from sc2pool.cli.stop import say
main.run_command = lambda _: say("as train, tune and record do")
sys.exit(main.main())
"""


@pytest.mark.parametrize("buffered", [True, False], ids=["buffered", "unbuffered"])
def test_a_command_that_a_full_disk_does_not_end_tells_of_it_at_its_end(buffered):
    env = {**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"}
    with Path("/dev/full").open("w") as full:
        streams = {"stdout": full, "stderr": subprocess.PIPE, "capture_output": False}
        done = run(sys.executable, "-c", LONG_COMMAND, **streams, env=env)
    assert (done.returncode, done.stderr) == (1, "sc2pool: cannot write: No space left on device\n")


@pytest.mark.parametrize("arguments", ["tasks", "standin path", "train --steps 0"])
def test_without_standard_streams(arguments):
    """As some daemons start programs."""
    command = shlex.join([sys.executable, "-m", "sc2pool", *arguments.split()])
    done = run("sh", "-c", f"{command} >&- 2>&-")
    assert done.returncode == (2 if "train" in arguments else 0)


def test_an_error_message_into_a_closed_pipe(into_closed_pipe, tmp_path):
    done = into_closed_pipe("top", "--run", str(tmp_path), closed="stderr")
    assert done.returncode == 141


@pytest.mark.parametrize("module", ["sc2pool.cli.arguments", "sc2pool.cli.tasks", "numpy"])
def test_ctrl_c_during_an_import_prints_nothing(module):
    """The import raises as it does where a signal strikes."""
    done = run(sys.executable, "-c", INTERRUPTED_IMPORT, module)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
