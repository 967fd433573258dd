"""The processes of a game that this process starts: the game, and a virtual display for it.

`Program` is a game's process and the last lines of its output. A thread always reads the output,
because a full pipe would block the game. `close` kills the game and does not ask it to end. The
game ends with the thread that started it, or, on Windows, with this process.

`VirtualDisplay` is an X server without a monitor (Xvfb), which starts and ends with the object. The
server chooses the first free display number and reports it. The server listens only on Linux's
abstract socket, so it leaves no socket file behind. Unless the server runs as root, it writes a
lock file, and removes the file at its end. If a server is killed, the next server removes the lock
file. The server ends with the thread that started it.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Final

import psutil

from sc2pool.errors import ConfigError, FaultKind, GameFault
from sc2pool.game.program.process import game_environment
from sc2pool.processes.spawn import describe_exit, start_thread
from sc2pool.processes.tree import kill_tree
from sc2pool.processes.with_parent import die_with_parent, end_with_this_process

_LOG_LINES: Final = 20
_ENDS_WITHIN_S: Final = 30.0
"""Time limit for a killed process to end. The game SuperTux took up to 5.3 s on two busy cores."""
_GAMES_FOLDER: Final = "/usr/games"
"""The folder where Debian puts games; it may be missing in the PATH."""


def find_program(name: str, how_to_install: str, *, folder: str = _GAMES_FOLDER) -> str:
    """The path of a program in the PATH or `folder`; raises `ConfigError` if neither has it."""
    path = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), folder)))
    if path is None:
        raise ConfigError(f"there is no program {name}; {how_to_install}")
    return path


class Program:
    """A running game; raises `GameFault` if the game does not start.

    `folder` is for the game's temporary files; `environment` has additional environment
    variables. Another thread calls `on_line` with each line of the game's output. If `on_line`
    returns True, the line is not kept for `log_tail`.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        on_line: Callable[[bytes], bool] | None = None,
    ) -> None:
        self.name = Path(command[0]).name
        self._on_line = on_line
        self._lines: deque[bytes] = deque(maxlen=_LOG_LINES)
        self._at_end = ExitStack()
        try:
            self._process = subprocess.Popen(
                command,
                env={**game_environment(os.environ, folder), **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent(),  # noqa: PLW1509  # safe: it takes no lock
            )
            self.pid = self._process.pid
            try:
                self._at_end.callback(end_with_this_process(self._process))
                self._reader = start_thread(self._read, f"sc2pool-output-{self.pid}")
            except OSError:
                self._process.kill()
                self._process.wait()
                self._at_end.close()
                raise
        except OSError as error:
            raise GameFault(FaultKind.LAUNCH_FAILED, f"{self.name}: {error}") from error

    def end(self) -> str | None:
        """How the game has ended, for example `exit code 3`; None if it runs."""
        code = self._process.poll()
        return None if code is None else describe_exit(code)

    def log_tail(self) -> str:
        """The last lines of the output."""
        return b"\n".join(self._lines).decode(errors="replace")

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                if self._on_line is None or not self._on_line(line):
                    self._lines.append(line.rstrip())

    def close(self) -> None:
        """End the game and the processes that it has started; may be called again."""
        with suppress(psutil.NoSuchProcess):
            kill_tree(psutil.Process(self.pid))
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDS_WITHIN_S)
        self._reader.join(_ENDS_WITHIN_S)
        self._at_end.close()


_STARTS_WITHIN_S: Final = 20.0
_SERVER_ENDS_WITHIN_S: Final = 2.0


class VirtualDisplay:
    """A running Xvfb of this width and height in pixels, with its log in `folder`.

    `name` is the value for the environment variable `DISPLAY`. Raises `ConfigError` if Xvfb is not
    installed, and `GameFault` if Xvfb does not start.
    """

    def __init__(self, folder: Path, size: tuple[int, int]) -> None:
        self._size = size
        self._log = folder / "xvfb.log"
        self._at_end = ExitStack()
        read_fd, write_fd = os.pipe()
        with os.fdopen(read_fd, "rb", buffering=0) as number_pipe:
            try:
                self._server = self._start(folder, write_fd)
            finally:
                os.close(write_fd)
            try:
                self._at_end.callback(end_with_this_process(self._server))
                self.name = f":{self._read_number(number_pipe)}"
            except BaseException:
                self.close()
                raise

    def _start(self, folder: Path, number_fd: int) -> subprocess.Popen[bytes]:
        width, height = self._size
        command = [
            find_program("Xvfb", "on Debian and Ubuntu: apt-get install xvfb"),
            "-displayfd",
            str(number_fd),
            "-screen",
            "0",
            f"{width}x{height}x24",
            "-nolisten",
            "unix",
            "-nolisten",
            "tcp",
            "-nolock",
            "-r",  # turns off the repeats of a key that is held down
            "-fp",  # the server's own fonts, so that all machines show equal pictures
            "built-ins",
        ]
        with self._log.open("wb") as log:
            return subprocess.Popen(
                command,
                env=game_environment(os.environ, folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent(),  # noqa: PLW1509  # safe: it takes no lock
                pass_fds=[number_fd],
            )

    def _read_number(self, number_pipe: IO[bytes]) -> int:
        line = b""
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([number_pipe], [], [], _STARTS_WITHIN_S)
            part = number_pipe.read(16) if readable else b""
            if not part:
                raise self._start_fault()
            line += part
        return int(line)

    def _start_fault(self) -> GameFault:
        how = self.end() or f"it took over {_STARTS_WITHIN_S} s"
        tail = self._log.read_text(errors="replace").strip().splitlines()[-5:]
        return GameFault(
            FaultKind.LAUNCH_FAILED, "\n".join([f"Xvfb did not start: {how}; its log:", *tail])
        )

    def end(self) -> str | None:
        """How the server has ended; None if it runs.

        Call this after a lost connection. The method waits briefly for the server's end.
        """
        with suppress(subprocess.TimeoutExpired):
            self._server.wait(_SERVER_ENDS_WITHIN_S)
        code = self._server.poll()
        return None if code is None else f"it ended: {describe_exit(code)}"

    def close(self) -> None:
        """End the server; may be called again."""
        self._server.terminate()
        try:
            self._server.wait(_SERVER_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:  # a stopped process does not handle SIGTERM
            self._server.kill()
            self._server.wait()
        self._at_end.close()
