"""Starts child Pythons of this package: workers, the guard, the update process, the stand-in.

Rule: no other place starts one, because a child must not run code that lies in the working
directory, which may be another user's: not as `python -m` would (`-P`), and not by an entry of
PYTHONPATH that is relative or empty. What the trainer itself may import, a worker is told later.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from sc2pool.platform import WINDOWS
from sc2pool.processes import windows

Child = subprocess.Popen[bytes]
_IO_ENCODING = "utf-8:surrogateescape"
"""Of what is printed: a path may have letters that a code page of Windows lacks."""


def start_python(
    module: str,
    *arguments: str,
    descriptors: tuple[int, ...] = (),
    environment: Mapping[str, str] | None = None,
    own_session: bool = False,
    stdin: int = subprocess.DEVNULL,
    stdout: int | None = None,
    stderr: int | None = None,
) -> Child:
    """Start `python -m module` with this package on its path.

    The child leads a process group, so the terminal's Ctrl-C reaches only this program, and one
    signal to the group ends the child with all that it has started.

    Args:
        descriptors: what it inherits, under the same numbers; not on Windows (see `follower`).
        environment: added to this process's own.
        own_session: whether it leads a session, too. Linux shares CPU time among sessions first
            (autogroup, sched(7)). For a worker that costs most of the speed: a wake-up from one
            session to another waits its turn (on two cores, two thirds of all steps). For the
            update process it is the gain: in the trainer's session it would get one share of the
            CPU beside two for every game, while all games wait for it.
    """
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    package_root = str(Path(__file__).resolve().parents[2])
    search_path = os.pathsep.join([package_root, *filter(os.path.isabs, entries)])
    # It is for the user's own program; a child would ask for lines of Python instead of ending.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONINSPECT"}
    command = [sys.executable, "-P", "-m", module, *arguments]
    its_environment = inherited | {"PYTHONPATH": search_path, **(environment or {})}
    if WINDOWS:
        # The `python.exe` of a virtual environment starts the real one, whose pid is another.
        real = sys._base_executable  # type: ignore[attr-defined]
        if real != sys.executable:
            command[0] = real
            its_environment["__PYVENV_LAUNCHER__"] = sys.executable
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=_or_nowhere(stdout, sys.__stdout__),
            stderr=_or_nowhere(stderr, sys.__stderr__),
            creationflags=windows.creation_flags(),
            env=its_environment,
        )
    return subprocess.Popen(
        command,
        pass_fds=descriptors,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=own_session,
        process_group=None if own_session else 0,
        env=its_environment,
    )


def start_with_socket(
    module: str,
    *arguments: str,
    given: socket.socket,
    stdout: int | None = None,
) -> Child:
    """Start `python -m module`, which takes this socket with `given_socket`.

    It inherits the socket; on Windows it reads a description of it from its standard input, and
    makes a copy while the socket is open here.

    Args:
        given: stays this process's, too.
    """
    child = start_python(
        module,
        *arguments,
        descriptors=(given.fileno(),),
        stdin=subprocess.PIPE if WINDOWS else subprocess.DEVNULL,
        stdout=stdout,
    )
    if WINDOWS:
        try:
            assert child.stdin is not None
            with child.stdin as stdin:
                stdin.write(windows.copied_socket(given.fileno(), child.pid))
        except BaseException:
            child.kill()
            child.wait()
            raise
    return child


def given_socket(descriptor: int) -> socket.socket:
    """The socket that this process was started with; its descriptor in the parent names it."""
    if WINDOWS:
        descriptor = windows.socket_of(sys.stdin.buffer.read())
    return socket.socket(fileno=descriptor)


def leave_interrupts_to_parent() -> None:
    """Ignore Ctrl-C; and Ctrl-Break, which Windows sends to every process of a console."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if WINDOWS:
        signal.signal(signal.SIGBREAK, signal.SIG_IGN)


def _or_nowhere(given: int | None, inherited: TextIO | None) -> int | None:
    """What a child's output is: nowhere if this program has no stream to pass on, as in pythonw.

    Otherwise `subprocess` gives the child a pipe without a reader, and its first `print` fails.
    """
    return subprocess.DEVNULL if given is None and inherited is None else given


def run_python(module: str, *arguments: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run `python -m module` to its end, and return what it has printed.

    Raises:
        subprocess.TimeoutExpired: it took longer, and was killed.
    """
    with start_python(
        module,
        *arguments,
        environment={"PYTHONIOENCODING": _IO_ENCODING},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        try:
            printed = [
                part.decode(errors="replace").replace(os.linesep, "\n")
                for part in child.communicate(None, timeout_s)
            ]
        finally:
            child.kill()  # without effect if it has ended
            child.wait()  # after a Ctrl-C `subprocess` would leave that to a later call
    return subprocess.CompletedProcess(child.args, child.returncode, *printed)
