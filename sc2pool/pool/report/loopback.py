"""HTTP servers for users of this machine, for `sc2pool watch` and for metrics.

Rules:
- A server answers only requests whose Host header names the loopback address. Otherwise a foreign
  web page could let its own name resolve to 127.0.0.1 (DNS rebinding) and read the answers. The
  port may be any, because a tunnel may use another.
- The number of connections is limited, and idle ones are closed. Any user of the machine can
  connect, and each connection costs the server's process, maybe the trainer, a thread and a
  descriptor.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any, Final

IDLE_S: Final = 10.0
"""How long a connection may be idle, unless its handler has another `timeout`."""
MOST_CONNECTIONS: Final = 16
"""The limit of open connections; the next one closes the oldest. A browser opens six."""
_ENDS_WITHIN_S: Final = 2.0


class LoopbackServer(ThreadingHTTPServer):
    """Serves a limited number of connections, each in a thread.

    Args:
        listener: a listening socket. The server closes it.
        handler: the class that handles requests. If `accepts` is False for a request's host, the
            handler answers with the status 421, Misdirected Request, and `refusal`.
    """

    daemon_threads = True
    refusal: Final = b"ask for 127.0.0.1 or localhost\n"

    def __init__(self, listener: socket.socket, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(listener.getsockname(), handler, bind_and_activate=False)
        self.socket.close()  # the base class has made a socket, which `listener` replaces
        self.socket = listener
        self._open: dict[Any, bool] = {}
        """Open connections, the oldest first; True if the connection was asked to end."""
        self._changed = threading.Condition()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, and end the oldest one if there are too many."""
        request.settimeout(IDLE_S)
        with self._changed:
            self._open[request] = False
            staying = [one for one, ends in self._open.items() if not ends]
            for oldest in staying[: max(0, len(staying) - MOST_CONNECTIONS)]:
                self._end(oldest)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection that was served."""
        super().shutdown_request(request)
        with self._changed:
            self._open.pop(request, None)
            self._changed.notify_all()

    def server_close(self) -> None:
        """Close the listening socket and all connections."""
        super().server_close()
        with self._changed:
            for one in self._open:
                self._end(one)
            self._changed.wait_for(lambda: not self._open, _ENDS_WITHIN_S)

    @staticmethod
    def accepts(host: str | None) -> bool:
        """True if the Host header of a request names the loopback address."""
        return names_loopback(host or "")

    def _end(self, request: Any) -> None:
        """Shut a connection down, so that its thread reads the end of file and returns."""
        self._open[request] = True
        with suppress(OSError):  # the connection was closed already
            request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing, because clients may close a connection at any time."""


def names_loopback(host: str) -> bool:
    """True if a host, from a URL or a Host header, is this machine's loopback address."""
    name = host.strip().lower()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
