"""Starts this package's child Python processes and threads, and notices when children end.

The children are workers, the guard, the update process and the stand-in.

Rules: only this module starts a child Python. A child must not import code from the working
directory, which may belong to another user. So `-P` keeps the working directory off the path, and
relative or empty entries of PYTHONPATH are dropped. A worker receives the trainer's `sys.path`
after its start.

`watch_exit` gives a descriptor that is readable when a child has ended. On Linux this is a *pidfd*
of the child. Elsewhere a thread waits for the child and then closes one end of a socket pair, which
makes the other end readable. Rule: no descriptor is readable before its child has ended.

`uninterrupted` and `submit` are for work that must not stop half-way. Both do the work in a
separate thread, which no interrupt reaches. Python runs signal handlers in the main thread, so
Ctrl-C can raise KeyboardInterrupt there between any two instructions. Such an interrupt could lose
new descriptors, or leave a new process without an owner. Work in the separate thread always
completes: an interrupt ends only the wait for it.

All children of a pool are also started in the separate thread, because that thread does not end.
The parent-death signal (see `with_parent`) kills children when the thread that started them ends.

Rules: submitted work is done piece by piece, in the order of submission. So the release of a
resource may be submitted before the resource has been made. While the interpreter exits, for
example in a `__del__`, only the caller's thread runs, so the caller does the work.
"""

from __future__ import annotations

import errno
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from io import FileIO
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

from sc2pool.platform import LINUX, WINDOWS
from sc2pool.processes import windows

Child = subprocess.Popen[bytes]
_IO_ENCODING = "utf-8:surrogateescape"
"""The encoding of a child's output; a Windows code page might lack the letters of a path."""


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

    The child leads a process group. So the terminal's Ctrl-C reaches only this program, and one
    signal to the group ends the child with all that it has started. Except on Windows (see
    `with_parent`), the child inherits each descriptor in `descriptors` under its present number.
    The child gets this process's environment variables, and those in `environment`.

    With `own_session` the child also leads a session. Linux divides CPU time first among sessions
    (autogroup, sched(7)). A worker must not have its own session: a process that another session
    wakes waits for its turn, which costs two thirds of all steps on two cores. The update process
    needs its own session, because all games wait for the update: in the trainer's session, it would
    get one share of the CPU, and each game two shares.
    """
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    package_root = str(Path(__file__).resolve().parents[2])
    search_path = os.pathsep.join([package_root, *filter(os.path.isabs, entries)])
    # Children must not get the user's PYTHONINSPECT: they would wait for input instead of exiting.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONINSPECT"}
    command = [sys.executable, "-P", "-m", module, *arguments]
    its_environment = inherited | {"PYTHONPATH": search_path, **(environment or {})}
    if WINDOWS:
        # The `python.exe` of a virtual environment starts the real `python.exe` with another pid.
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
    """Start `python -m module`, which gets the socket `given` by a call of `given_socket`.

    The socket stays open in this process. On Windows, close it only after the child has copied it:
    the child does so when it reads its standard input.
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
    """The socket that `start_with_socket` gave; `descriptor` is its number in the parent."""
    if WINDOWS:
        descriptor = windows.socket_of(sys.stdin.buffer.read())
    return socket.socket(fileno=descriptor)


def leave_interrupts_to_parent() -> None:
    """Ignore Ctrl-C and Ctrl-Break. (Windows sends Ctrl-Break to every process of a console.)"""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if WINDOWS:
        signal.signal(signal.SIGBREAK, signal.SIG_IGN)


def _or_nowhere(given: int | None, inherited: TextIO | None) -> int | None:
    """The stream for a child's output, or DEVNULL if this program has none (as in pythonw).

    Without DEVNULL, the child would get a pipe without a reader, and its first `print` would fail.
    """
    return subprocess.DEVNULL if given is None and inherited is None else given


def run_python(module: str, *arguments: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run `python -m module` until it exits, and return its output.

    Raises:
        subprocess.TimeoutExpired: the child took longer than `timeout_s`, and was killed.
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
            child.kill()  # no effect if the child has exited
            child.wait()  # after Ctrl-C, `subprocess` would reap the child only later
    return subprocess.CompletedProcess(child.args, child.returncode, *printed)


def watch_exit(child: subprocess.Popen[bytes]) -> FileIO | socket.socket:
    """An object whose descriptor is readable after the child's end; may raise OSError."""
    if LINUX:
        return FileIO(os.pidfd_open(child.pid))
    return watch_in_thread(child)


def watch_in_thread(child: subprocess.Popen[bytes]) -> socket.socket:
    """The form of `watch_exit` that works on every system: it has a thread for each child."""
    mine, theirs = socket.socketpair()

    def wait() -> None:
        child.wait()
        theirs.close()

    try:
        start_thread(wait, f"exit of {child.pid}")
    except OSError:
        theirs.close()
        mine.close()
        raise
    return mine


def notice_children() -> None:
    """Keep the exit status of children, even if this process has inherited an ignored SIGCHLD."""
    if not WINDOWS:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def notices_children() -> bool:
    """True if no other code takes the exit status of the processes that this package starts.

    If the program ignores SIGCHLD, the system discards the status; a handler may take the status.
    """
    return WINDOWS or signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL


def describe_exit(code: int) -> str:
    """An exit code as a text, such as `exit code 3` or `signal SIGKILL`."""
    return f"exit code {code}" if code >= 0 else f"signal {signal_name(-code)}"


def signal_name(number: int) -> str:
    """A signal's name, such as `SIGKILL`; its number if it is a signal without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


_SHORTAGES: Final = frozenset(
    {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
)


def is_shortage(error: OSError) -> bool:
    """True if processes, threads, descriptors, buffers or memory have run out, maybe briefly."""
    return error.errno in _SHORTAGES


def start_thread(target: Callable[..., Any], name: str, *arguments: Any) -> threading.Thread:
    """Start a daemon thread; raises OSError (EAGAIN) if the system refuses to start it."""
    thread = threading.Thread(target=target, args=arguments, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, f"no thread, {os.strerror(errno.EAGAIN)}") from error
    return thread


_T = TypeVar("_T")


class _Thread:
    """The one thread of a process that no interrupt reaches."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self.pid = os.getpid()
        self._thread = start_thread(self._run, "sc2pool-uninterrupted")

    def submit(self, work: Callable[[], _T]) -> Future[_T]:
        result: Future[_T] = Future()
        if threading.current_thread() is self._thread:
            _do(work, result)
        else:
            self._work.put((work, result))
        return result

    def _run(self) -> None:
        while True:
            _do(*self._work.get())


def _do(work: Callable[[], _T], result: Future[_T]) -> None:
    try:
        result.set_result(work())
    except BaseException as error:
        result.set_exception(error)


_thread: _Thread | None = None


def submit(work: Callable[[], _T]) -> Future[_T]:
    """Queue `work` for the uninterrupted thread; in that thread, do it now; may raise OSError."""
    if sys.is_finalizing():
        done: Future[_T] = Future()
        _do(work, done)
        return done
    global _thread  # noqa: PLW0603 - one thread per process is the point
    # After a fork, the child has only the thread that forked.
    if _thread is None or _thread.pid != os.getpid():
        _thread = _Thread()
    return _thread.submit(work)


def uninterrupted(work: Callable[[], _T]) -> _T:
    """Do `work` in the uninterrupted thread; return its result or raise its error."""
    return submit(work).result()
