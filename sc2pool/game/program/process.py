"""One game's operating-system process: started, watched, and always killed.

Rules:
* The game gets only allowed environment variables and listens only on 127.0.0.1. It writes into its
  own temporary directory, which is removed after the game's end.
* The game dies with the program that started it (`die_with_parent`, or `end_with_this_process`). A
  worker starts the game in the worker's process group. Any other program starts the game in a new
  group, from a thread that keeps running.
* `kill` does not need the game's cooperation: SIGKILL ends even a stopped process, which is then
  reaped.

Only the end of the game's output is kept, in a ring buffer and in a file:

    Child ── pipe ──► thread ──► ring of 64 KiB, and its copy in a file ──► `tail`; `read_tail`.

Why a pipe and a ring: a file that the child writes itself grows as fast as the disk allows (800 MB
in 8 s), and truncation does not help. A size limit of the system (RLIMIT_FSIZE) would apply to all
files of the child, and kill the child. Why a thread: the event loop of a worker may be blocked. Why
a file: after a worker's death the trainer reads the cause in this file (`log_left_in`). The file is
not memory-mapped, because writing would kill this process if another process truncated the file.

Rules:
* A child that prints very much takes little CPU time of this process. The thread rests after each
  read, so the pipe becomes full and the child waits; it can print at most 32 MB/s.
* A child that prints little never waits for long. If this process is stopped or does not let the
  thread run, the child can print 64 KiB (on Linux) before it has to wait. A game in lock-step gets
  no requests in this time, so only a game in real time can lose time.
* On a full disk the ring exists only in memory.
"""

from __future__ import annotations

import errno
import os
import shutil
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psutil

from sc2pool.errors import ConfigError, FaultKind, GameFault
from sc2pool.foreign import printable
from sc2pool.game.hang_detection import Activity
from sc2pool.game.program.builds import diagnose
from sc2pool.game.program.installation import Installation
from sc2pool.game.program.lease import HOST, PortLease
from sc2pool.platform import WINDOWS
from sc2pool.processes.spawn import (
    describe_exit,
    is_shortage,
    start_thread,
    uninterrupted,
    watch_exit,
)
from sc2pool.processes.tree import UNREADABLE, descendants, is_ready, kill_tree, waited_s
from sc2pool.processes.with_parent import die_with_parent, end_with_this_process, is_follower

if not WINDOWS:
    import resource

KILLED: Final = -9
"""The exit code that `subprocess` gives for SIGKILL."""
_REAP_S: Final = 5.0
"""Seconds until a killed process must have ended. Only a process stuck in the kernel takes
longer."""
_FOLDER_PREFIX: Final = "sc2pool-game-"
_LOG: Final = "game.log"
_LINES: Final = 20
"""How many lines at the end of the log are shown."""
BEING_WRITTEN: Final = 32
"""Windows' error code for a file that another program has opened exclusively."""
_FILE_ERRORS: Final = (2, 3, 5, BEING_WRITTEN, 193, 216, 740)
"""Windows' error codes about an executable: file not found, path not found, no access, in use, not
a program, for other CPUs, needs an administrator."""
_PORT_REFUSED_LINE: Final = b"Failed to create the socket."

_POSIX_NAMES = "HOME USER LOGNAME SHELL PATH LANG LANGUAGE TZ LD_LIBRARY_PATH XDG_RUNTIME_DIR"
_MACOS_NAMES = "__CF_USER_TEXT_ENCODING DYLD_LIBRARY_PATH"
# Windows does not start a process without some of these variables.
_WINDOWS_NAMES = (
    "SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT USERNAME USERPROFILE HOMEDRIVE HOMEPATH "
    "APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) COMMONPROGRAMFILES "
    "NUMBER_OF_PROCESSORS PROCESSOR_ARCHITECTURE"
)
_ALLOWED_NAMES: Final = frozenset(f"{_POSIX_NAMES} {_MACOS_NAMES} {_WINDOWS_NAMES}".split())
_ALLOWED_PREFIX: Final = "LC_"

_limiting_core_files = threading.Lock()
_CREATION_FLAGS = 0
if WINDOWS:
    # The game gets its own console without a window, so that a Ctrl-C in ours does not reach it.
    _CREATION_FLAGS = subprocess.CREATE_NO_WINDOW


def game_environment(environment: Mapping[str, str], temp_dir: Path) -> dict[str, str]:
    """A game's environment: the allowed part of `environment`, and the game's temporary folder."""
    allowed = {
        name: value
        for name, value in environment.items()
        if name.upper() in _ALLOWED_NAMES or name.startswith(_ALLOWED_PREFIX)
    }
    return allowed | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temp_dir))


def command_line(installation: Installation, port: int, temp_dir: Path) -> list[str]:
    """The command that starts a game, without `-verbose`, which would log every message."""
    return [
        str(installation.executable),
        "-listen",
        HOST,
        "-port",
        str(port),
        "-dataDir",
        str(installation.root),
        "-tempDir",
        str(temp_dir),
        "-displayMode",
        "0",
    ]


class GameProcess:
    """A running game; owns the game's process, folder and log."""

    def __init__(
        self, child: subprocess.Popen[bytes], temp_dir: Path, output: Output, base_build: int
    ) -> None:
        self._child = child
        self._base_build = base_build
        self._temp_dir = temp_dir
        self._output = output
        self._stats = psutil.Process(child.pid)  # before the watch, which may reap the child
        self._watch = watch_exit(child)
        # The guard is set last, because a failure after this line would leave it behind.
        self._let_go: Callable[[], None] | None = end_with_this_process(child)
        self._closed_log: bytes | None = None
        self.pid = child.pid

    @classmethod
    def spawn(
        cls,
        installation: Installation,
        lease: PortLease,
        directory: Path | None = None,
        *,
        core_file_bytes: int = 0,
    ) -> GameProcess:
        """Starts the game on the leased port; does not wait for it to be ready.

        `directory` is the parent of the game's own temporary folder (None: the system's folder).
        `core_file_bytes` limits the core file of a crash; the real game would write 0.8 to 2.7 GB.
        Raises ConfigError if the executable is missing, not executable, or not for this system.
        Raises OSError if the system refuses to create a process, thread, descriptor or folder.
        """
        with ExitStack() as undo:
            temp_dir = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX, dir=directory))  # 0700
            undo.callback(_remove, temp_dir)
            output = Output(temp_dir / _LOG)
            undo.callback(output.close)
            try:
                with _core_files_limited(core_file_bytes):
                    child = _start(installation, lease, temp_dir, output.writing_end)
            finally:
                output.hand_over()
            undo.callback(child.wait)
            undo.callback(child.kill)
            game = cls(child, temp_dir, output, installation.base_build)
            undo.pop_all()
        return game

    @property
    def exited_fd(self) -> int:
        """A descriptor that becomes readable when the game has ended; owned by this object."""
        return self._watch.fileno()

    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the game runs."""
        return self._child.poll()

    @property
    def was_killed(self) -> bool:
        """True if SIGKILL ended the game. The system or a person sends SIGKILL, not the game."""
        return self._child.poll() == KILLED

    def exit_fault(self, kind: FaultKind = FaultKind.GAME_EXITED) -> GameFault:
        """A fault that describes how the game ended, with advice if the cause is known."""
        code = self._child.poll()
        how = "exit code unknown" if code is None else describe_exit(code)
        advice = diagnose(self.log_tail(), code, self._base_build)
        # The text lacks the pid, so that two games that end alike have equal faults.
        # Two equal faults show that a start can never succeed.
        return GameFault(
            kind, f"the game ended: {how}{f' ({advice})' if advice else ''}{self.log_note()}"
        )

    def port_refused(self) -> bool:
        """True if the game's output says that it could not listen on its port."""
        return _PORT_REFUSED_LINE in self._log_end()

    def is_stopped(self) -> bool:
        """True if a signal has stopped the game or one of its children."""
        states = _read_from(self.family(), lambda process: process.status())
        return psutil.STATUS_STOPPED in states

    def cpu_seconds(self) -> float:
        """CPU time, in seconds, used by the game and its children; 0.0 after the game's end."""
        return _cpu_seconds(self.family())

    def activity(self) -> Activity:
        """The activity of the game and its children so far; all zero after the game's end."""
        family = self.family()
        return Activity(
            _cpu_seconds(family),
            sum(waited_s(process.pid) for process in family),
            any(is_ready(process.pid) for process in family),
        )

    def rss_bytes(self) -> int:
        """Resident memory, in bytes, of the game and its children; 0 after the game's end."""
        return sum(_read_from(self.family(), lambda process: process.memory_info().rss))

    def family(self) -> list[psutil.Process]:
        """The started process (the game, or a script that starts it) and its children."""
        with suppress(*UNREADABLE):
            return [self._stats, *descendants(self._stats)]
        return [self._stats]

    def printed_bytes(self) -> int:
        """The size of the game's whole output so far, of which only the end is kept."""
        return self._output.total_bytes

    def log_tail(self, lines: int = _LINES) -> str:
        """The last lines of the game's output, ready to be printed."""
        return printable(_last_lines(self._log_end(), lines), None, keep="\n\t")

    def log_note(self) -> str:
        """The last lines of the log, ready to be put at the end of a message."""
        tail = self.log_tail()
        return f"; its log ends with:\n{tail}" if tail else "; its log is empty"

    def kill(self) -> None:
        """Kills the game and its children, and reaps the game; may be called again."""
        if self._child.poll() is not None:
            return
        kill_tree(self._stats)
        self._child.kill()  # safe: no other process gets this pid before ours is reaped
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(_REAP_S)

    def close(self) -> None:
        """Kills the game and removes its files, but keeps the log's end. May be called again."""
        self.kill()
        self._watch.close()
        if self._let_go is not None:
            self._let_go()
            self._let_go = None
        if self._closed_log is None:
            self._closed_log = self._log_end()
            self._output.close()
        shutil.rmtree(self._temp_dir, ignore_errors=True)

    def _log_end(self) -> bytes:
        if self._closed_log is not None:
            return self._closed_log
        return self._output.tail(ended=self._child.poll() is not None)


def log_left_in(directory: Path) -> str:
    """The last lines of the logs that a killed worker's games left in this folder, or ''."""
    tails = []
    with suppress(OSError):
        for path in sorted(directory.glob(f"{_FOLDER_PREFIX}*/{_LOG}")):
            tails.append(_last_lines(read_tail(path), _LINES))
    return "\n".join(tail for tail in tails if tail)


def _cpu_seconds(processes: Sequence[psutil.Process]) -> float:
    times = _read_from(processes, lambda process: process.cpu_times())
    return sum((one.user + one.system for one in times), 0.0)


def _read_from(
    processes: Sequence[psutil.Process], read: Callable[[psutil.Process], Any]
) -> Iterator[Any]:
    """What `read` returns for each process that can be read."""
    for process in processes:
        with suppress(*UNREADABLE):
            yield read(process)


_MOST_CORE_BYTES: Final = 2**63 - 1
"""The largest limit that `setrlimit` takes."""


@contextmanager
def _core_files_limited(size_bytes: int) -> Iterator[None]:
    """Limit the core files of processes that are started in the block."""
    if WINDOWS:  # Windows writes no core files
        yield
    else:
        with _limiting_core_files:  # without the lock, threads would restore each other's limits
            soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
            most = _MOST_CORE_BYTES if hard == resource.RLIM_INFINITY else hard
            lower = int(min(size_bytes, most))  # the setting may be a float
            resource.setrlimit(resource.RLIMIT_CORE, (lower, hard))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def _last_lines(log: bytes, lines: int) -> str:
    return "\n".join(log.decode(errors="replace").splitlines()[-lines:])


def _start(
    installation: Installation, lease: PortLease, temp_dir: Path, output: int
) -> subprocess.Popen[bytes]:
    in_worker = is_follower()

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command_line(installation, lease.port, temp_dir),
            cwd=installation.cwd,
            env=game_environment(os.environ, temp_dir),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=die_with_parent(),  # noqa: PLW1509  # safe: it takes no lock
            # On Windows no descriptor can be passed to a child, so the lock ends with this process.
            pass_fds=() if WINDOWS else (lease.fd,),
            # A new group, so that the terminal's Ctrl-C does not reach the game.
            process_group=None if in_worker or WINDOWS else 0,
            creationflags=_CREATION_FLAGS,
        )

    try:
        return start() if in_worker else uninterrupted(start)
    except OSError as error:
        if not _is_about_the_file(error):
            raise
        reason = f"{error}"
        if error.errno == errno.ENOENT and installation.executable.exists():
            reason = f"{reason}; the file is there, so its interpreter or loader is missing"
        raise ConfigError(f"cannot start {installation.executable}: {reason}") from error


def _is_about_the_file(error: OSError) -> bool:
    """True if a start failed because of the executable; False if because of the system."""
    if WINDOWS:  # Windows' errors do not name the file
        return getattr(error, "winerror", None) in _FILE_ERRORS
    return error.filename is not None and not is_shortage(error)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.rmdir()  # `rmdir` removes an empty folder even without free descriptors


RING_BYTES: Final = 1 << 16
_TOTAL: Final = struct.Struct("<Q")
"""The header before the ring: the number of bytes written into the ring so far."""
_SIZE_BYTES: Final = _TOTAL.size + RING_BYTES
_REST_S: Final = 0.002
_END_S: Final = 1.0
"""Time limit for reading all output of a child that has ended. Reading takes long only if another
process holds the pipe."""


class Output:
    """A child's stdout and stderr, written to `writing_end`. OSError if a resource is refused."""

    def __init__(self, path: Path) -> None:
        self.total_bytes = 0
        """The number of bytes read so far."""
        self._lock = threading.Lock()
        self._waited = False
        self._ring = bytearray(_SIZE_BYTES)
        self._closed = False
        with ExitStack() as undo:
            self._file = _open(path)
            undo.callback(self._close_file)
            self._reading_end, self.writing_end = os.pipe()
            undo.callback(os.close, self._reading_end)
            undo.callback(os.close, self.writing_end)
            self._thread = start_thread(self._run, "sc2pool-output")
            undo.pop_all()

    def hand_over(self) -> None:
        """After the start of the child, close our copy of the writing end."""
        os.close(self.writing_end)

    def _run(self) -> None:
        # This thread owns the descriptor, because another process may hold the pipe after `close`.
        with os.fdopen(self._reading_end, "rb", buffering=0) as reading_end:
            while printed := reading_end.read(RING_BYTES):
                with self._lock:
                    if self._closed:
                        return
                    self._put(printed)
                time.sleep(_REST_S)

    def _put(self, printed: bytes) -> None:
        begin = self.total_bytes % RING_BYTES
        first = printed[: RING_BYTES - begin]
        self.total_bytes += len(printed)
        self._write(_TOTAL.size + begin, first)
        self._write(_TOTAL.size, printed[len(first) :])
        self._write(0, _TOTAL.pack(self.total_bytes))

    def _write(self, at: int, data: bytes) -> None:
        self._ring[at : at + len(data)] = data
        if self._file is not None:
            with suppress(OSError):
                os.lseek(self._file, at, os.SEEK_SET)
                os.write(self._file, data)

    def tail(self, *, ended: bool) -> bytes:
        """The output's newest `RING_BYTES`. If the child has ended, all output is read first."""
        if ended:
            self._wait_for_end()
        with self._lock:
            return _in_order(bytes(self._ring))

    def _wait_for_end(self) -> None:
        if not self._waited:
            self._waited = True
            self._thread.join(_END_S)

    def close(self) -> None:
        """Stop recording, after the child's end; may be called again. The file stays."""
        self._wait_for_end()  # wait until the thread has closed its descriptor
        with self._lock:
            self._closed = True
            self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def read_tail(path: Path) -> bytes:
    """Like `Output.tail`, but read from the file alone; empty if the file does not exist."""
    with suppress(OSError):
        content = path.read_bytes()
        if len(content) == _SIZE_BYTES:
            return _in_order(content)
    return b""


def _open(path: Path) -> int | None:
    """The descriptor of a new file of the ring's size; None if the file cannot be written."""
    try:
        path.write_bytes(bytes(_SIZE_BYTES))
        return os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0))  # else Windows expands "\n"
    except OSError:
        return None


def _in_order(content: bytes) -> bytes:
    (total,) = _TOTAL.unpack_from(content)
    ring = content[_TOTAL.size :]
    if total <= RING_BYTES:
        return ring[:total]
    begin = total % RING_BYTES
    return ring[begin:] + ring[:begin]
