"""A virtual display: an X server without a monitor (Xvfb), started and ended with this object.

Rules: the server chooses the first free display number and reports it. It listens only on Linux's
abstract socket, so it leaves no socket file behind. (It writes a lock file unless it runs as root.
It removes this file at its end; after a kill, the next server removes it.) It ends with the thread
that started it.
"""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from sc2pool.errors import FaultKind, GameFault
from sc2pool.game.program.process import game_environment
from sc2pool.processes.spawn import describe_exit
from sc2pool.processes.with_parent import die_with_parent, end_with_this_process
from sc2pool.realtime.screen.program import find_program

_STARTS_WITHIN_S: Final = 20.0
_ENDS_WITHIN_S: Final = 2.0


class VirtualDisplay:
    """A running Xvfb.

    Args:
        folder: the folder for Xvfb's log.
        size: width and height in pixels.

    Attributes:
        name: the value of the environment variable `DISPLAY`.

    Raises:
        ConfigError: Xvfb is not installed.
        GameFault: Xvfb does not start.
    """

    def __init__(self, folder: Path, size: tuple[int, int]) -> None:
        self._size = size
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
            "-r",  # no auto-repeat of a key that is held down
            "-fp",  # only the server's own fonts, so that each machine shows the same pictures
            "built-ins",
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
        how = self.end() or f"it took over {_STARTS_WITHIN_S} s"
        tail = self._log.read_text(errors="replace").strip().splitlines()[-5:]
        return GameFault(
            FaultKind.LAUNCH_FAILED, "\n".join([f"Xvfb did not start: {how}; its log:", *tail])
        )

    def end(self) -> str | None:
        """How the server has ended; None if it runs.

        Call it after a lost connection, which comes shortly before the server's end.
        """
        with suppress(subprocess.TimeoutExpired):
            self._server.wait(_ENDS_WITHIN_S)
        code = self._server.poll()
        return None if code is None else f"it ended: {describe_exit(code)}"

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
