"""HTTP servers of this machine's own users, for `sc2pool watch` and for metrics.

Rules: a server answers only requests whose Host header names the loopback address, with any port,
because a tunnel may have another. A page from elsewhere can have its own name lead to 127.0.0.1
(DNS rebinding), and would then read what such a server says. Connections are few, and idle ones
end: any user of the machine can connect, and each connection is a thread and a descriptor of the
server's process, which may be the trainer.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any, Final

REFUSAL: Final = b"ask for 127.0.0.1 or localhost\n"
"""The answer to a request under another name, with the status 421, Misdirected Request."""
IDLE_S: Final = 10.0
"""Time that a connection may be silent."""
MOST_CONNECTIONS: Final = 16
"""At one time; the next one ends the oldest. A browser opens six."""
_ENDS_WITHIN_S: Final = 2.0


class LoopbackServer(ThreadingHTTPServer):
    """Answers few connections, each in a thread.

    Args:
        listener: a socket that listens; the server closes it.
        handler: of requests; its class attribute `timeout` shall be `IDLE_S`.
    """

    daemon_threads = True

    def __init__(self, listener: socket.socket, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(listener.getsockname(), handler, bind_and_activate=False)
        self.socket.close()  # it was made for a new address
        self.socket = listener
        self._open: dict[Any, bool] = {}
        """Connections, the oldest first, each with whether it has been told to end."""
        self._changed = threading.Condition()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread, and end the oldest one if there are too many."""
        with self._changed:
            self._open[request] = False
            staying = [one for one, ends in self._open.items() if not ends]
            for oldest in staying[: max(0, len(staying) - MOST_CONNECTIONS)]:
                self._end(oldest)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection that is answered."""
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

    def _end(self, request: Any) -> None:
        """Have the thread that waits for more of a request read its end."""
        self._open[request] = True
        with suppress(OSError):  # it has ended by itself
            request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a client that closes a connection is no error."""


def names_loopback(host: str) -> bool:
    """True if a host, as in a URL or a Host header, is the loopback address of this machine."""
    name = host.strip().lower()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
