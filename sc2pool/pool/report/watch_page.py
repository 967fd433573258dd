"""`render_mode="human"`: the page of `sc2pool watch` for a pool, served by its own process.

Rules: the page only shows the pool. If its process cannot be started, the pool works without it.
The process inherits a socket that is listening already, so no other program can take the port, and
the address never shows another pool.
"""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from sc2pool.platform import WINDOWS
from sc2pool.processes.spawn import given_socket, start_with_socket

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
PORT = 8228
"""The page's port, if it is free."""


class WatchPage:
    """The page of one pool. It opens in a browser if the machine has a display.

    Raises:
        OSError: no process or port is available.
    """

    def __init__(self, run: Path) -> None:
        self._listener = listen_for_page()
        self.address = f"http://{HOST}:{self._listener.getsockname()[1]}/"
        number = str(self._listener.fileno())
        arguments = ("watch", "--run", str(run), "--listener", number, "--browser")
        try:
            self._child = start_with_socket(
                "sc2pool", *arguments, given=self._listener, stdout=subprocess.DEVNULL
            )
        except BaseException:
            self._listener.close()
            raise
        if not WINDOWS:  # on Windows the child copies it, so it must stay open here
            self._listener.close()

    def close(self) -> None:
        """End the page; may be called again."""
        self._child.kill()
        self._child.wait()
        self._listener.close()


def listen_for_page(port: int | None = None, given: int | None = None) -> socket.socket:
    """A socket that listens on the loopback address.

    Args:
        port: its port; None for `PORT`, or another free port.
        given: the number of a listening socket in the parent process, which has given it to this
            one.

    Raises:
        OSError: the port is taken.
    """
    if given is not None:
        return given_socket(given)
    if port is not None:
        return socket.create_server((HOST, port))
    try:
        return socket.create_server((HOST, PORT))
    except OSError:
        return socket.create_server((HOST, 0))


def open_watch_page(run: Path) -> WatchPage | None:
    """Open the page of a pool and print its address; return None if that fails."""
    try:
        window = WatchPage(run)
    except OSError as error:
        log.warning("render_mode='human': the page cannot be opened (%s)", error)
        return None
    with suppress(OSError):
        print(f"sc2pool: the games are shown at {window.address}", file=sys.stderr, flush=True)
    return window
