"""A screen of one's own: an X server without a monitor, started and ended with this object.

Rules: the server takes the first number that is free, by itself, and says which; it listens on
Linux's abstract socket alone, so there is no file that it could leave behind (a lock file there is
only where it is not started as root; it removes that at its end, and the next server does so after
a kill); it ends with the thread that started it.
"""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from examples.supertux.needs import DISPLAY_SERVER, program
from sc2pool.errors import FaultKind, GameFault
from sc2pool.game.process import describe_exit, game_environment
from sc2pool.processes.with_parent import die_with_parent

WIDTH: Final = 320
HEIGHT: Final = 240
_STARTS_WITHIN_S: Final = 20.0
_ENDS_WITHIN_S: Final = 2.0


class VirtualDisplay:
    """A running Xvfb.

    Args:
        folder: for its log.

    Raises:
        ConfigError: Xvfb is not installed.
        GameFault: it does not start.
    """

    def __init__(self, folder: Path) -> None:
        self._log = folder / "xvfb.log"
        number_fd, told_fd = os.pipe()
        with os.fdopen(number_fd, "rb", buffering=0) as told:
            try:
                self._server = self._start(folder, told_fd)
            finally:
                os.close(told_fd)
            try:
                self.name = f":{self._number(told)}"
                """As `DISPLAY` wants it."""
            except BaseException:
                self.close()
                raise

    def _start(self, folder: Path, told_fd: int) -> subprocess.Popen[bytes]:
        command = [
            *(program(DISPLAY_SERVER), "-displayfd", str(told_fd)),
            *("-screen", "0", f"{WIDTH}x{HEIGHT}x24"),
            *("-nolisten", "unix", "-nolisten", "tcp", "-nolock"),
            "-r",  # a key that is held down is pressed once
        ]
        with self._log.open("wb") as log:
            return subprocess.Popen(
                command,
                env=game_environment(os.environ, folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent(),  # noqa: PLW1509  # it takes no lock
                pass_fds=[told_fd],
            )

    def _number(self, told: IO[bytes]) -> int:
        line = b""
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([told], [], [], _STARTS_WITHIN_S)
            part = told.read(16) if readable else b""
            if not part:
                raise self._start_fault()
            line += part
        return int(line)

    def _start_fault(self) -> GameFault:
        how = self._ended() or f"it took over {_STARTS_WITHIN_S} s"
        tail = self._log.read_text(errors="replace").strip().splitlines()[-5:]
        return GameFault(
            FaultKind.LAUNCH_FAILED, "\n".join([f"Xvfb did not start: {how}; its log:", *tail])
        )

    def _ended(self) -> str:
        """How the server has ended; empty if it has not."""
        with suppress(subprocess.TimeoutExpired):  # its connections close a little earlier
            self._server.wait(_ENDS_WITHIN_S)
        code = self._server.poll()
        return "" if code is None else f"it ended: {describe_exit(code)}"

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """In the block, what is raised because the server has ended becomes a `GameFault`."""
        try:
            yield
        except GameFault:
            raise
        except Exception as error:  # each of its clients has an error of its own for that
            how = self._ended()
            if not how:
                raise
            raise GameFault(FaultKind.CONNECTION_LOST, f"Xvfb: {how}") from error

    def close(self) -> None:
        """End the server; may be called again."""
        self._server.terminate()
        try:
            self._server.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:  # a stopped one hears nothing else
            self._server.kill()
            self._server.wait()
