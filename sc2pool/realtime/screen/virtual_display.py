"""A virtual display: an X server without a monitor (Xvfb), started and ended with this object.

Rules: the server chooses the first free display number and reports it. It listens only on Linux's
abstract socket, so it leaves no socket file behind. (It writes a lock file unless it runs as root.
It removes this file at its end; after a kill, the next server removes it.) It ends with the thread
that started it.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, Final, Protocol

from sc2pool.errors import ConfigError, FaultKind, GameFault
from sc2pool.game.program.process import game_environment
from sc2pool.processes.spawn import describe_exit
from sc2pool.processes.with_parent import die_with_parent, end_with_this_process

WIDTH: Final = 320
HEIGHT: Final = 240
_STARTS_WITHIN_S: Final = 20.0
_ENDS_WITHIN_S: Final = 2.0


class Display(Protocol):
    """The place of the game's picture: a `VirtualDisplay`, or Windows' `Desktop`."""

    @property
    def name(self) -> str | None:
        """The value of the environment variable `DISPLAY`; None without X11."""

    def area(self) -> tuple[int, int, int, int]:
        """The game's picture on the screen: left, top, width and height in pixels."""

    def in_use(self) -> AbstractContextManager[None]:
        """Turn an exception in the block into a `GameFault` if the display has ended."""


class VirtualDisplay:
    """A running Xvfb.

    Args:
        folder: the folder for Xvfb's log.

    Raises:
        ConfigError: Xvfb is not installed.
        GameFault: Xvfb does not start.
    """

    def __init__(self, folder: Path) -> None:
        self._log = folder / "xvfb.log"
        self._let_go: Callable[[], None] = lambda: None
        read_fd, write_fd = os.pipe()
        with os.fdopen(read_fd, "rb", buffering=0) as number_pipe:
            try:
                self._server = self._start(folder, write_fd)
            finally:
                os.close(write_fd)
            try:
                self._let_go = end_with_this_process(self._server)
                self.name = f":{self._read_number(number_pipe)}"
            except BaseException:
                self.close()
                raise

    def _start(self, folder: Path, number_fd: int) -> subprocess.Popen[bytes]:
        server = shutil.which("Xvfb")
        if server is None:
            raise ConfigError(
                "there is no program Xvfb; on Debian and Ubuntu: apt-get install xvfb"
            )
        command = [
            server,
            "-displayfd",
            str(number_fd),
            "-screen",
            "0",
            f"{WIDTH}x{HEIGHT}x24",
            "-nolisten",
            "unix",
            "-nolisten",
            "tcp",
            "-nolock",
            "-r",  # no auto-repeat of a key that is held down
        ]
        with self._log.open("wb") as log:
            return subprocess.Popen(
                command,
                env=game_environment(os.environ, folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent(),  # noqa: PLW1509  # it takes no lock
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
        how = self._end_of_server() or f"it took over {_STARTS_WITHIN_S} s"
        tail = self._log.read_text(errors="replace").strip().splitlines()[-5:]
        return GameFault(
            FaultKind.LAUNCH_FAILED, "\n".join([f"Xvfb did not start: {how}; its log:", *tail])
        )

    def _end_of_server(self) -> str:
        """How the server has ended; empty if it runs."""
        with suppress(subprocess.TimeoutExpired):  # the connections close shortly before its end
            self._server.wait(_ENDS_WITHIN_S)
        code = self._server.poll()
        return "" if code is None else f"it ended: {describe_exit(code)}"

    def area(self) -> tuple[int, int, int, int]:
        """The game's picture on the screen: left, top, width and height in pixels."""
        return 0, 0, WIDTH, HEIGHT

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Turn an exception in the block into a `GameFault` if the server has ended."""
        try:
            yield
        except GameFault:
            raise
        except (
            Exception
        ) as error:  # each client library has its own exception for a lost connection
            how = self._end_of_server()
            if not how:
                raise
            raise GameFault(FaultKind.CONNECTION_LOST, f"Xvfb: {how}") from error

    def close(self) -> None:
        """End the server; may be called again."""
        self._server.terminate()
        try:
            self._server.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:  # a stopped process ignores SIGTERM
            self._server.kill()
            self._server.wait()
        self._let_go()
        self._let_go = lambda: None
