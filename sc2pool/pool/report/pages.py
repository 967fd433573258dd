"""A pool's two web pages: one shows the games to the user, one has metrics for Prometheus.

With `render_mode="human"` a pool opens the page that the command `sc2pool watch` shows. A separate
process serves the page (`WatchPage`). The page changes nothing in the pool. If the process of the
page cannot be started, the pool works without the page. The process inherits a socket that already
listens, so no other program can take the port, and the address never shows another pool.

`MetricsServer` serves a pool's statistics. With `PoolConfig(metrics_port=9464)` the statistics are
at the path /metrics of port 9464. A field of `PoolStats` or `InstanceStats` is a metric if its
metadata has a `Metric`. The figures are read for each request, in the server's thread. `snapshot`
explains why this costs the step path nothing. The server runs, and prometheus_client is imported,
only if a port is given. The server listens on the loopback address by default, and then answers
only requests that name this address. Each pool has its own registry of metrics, so two pools do not
mix, and no other metrics of the user's process are shown.

The class `LoopbackServer` is the HTTP server of the page and of the metrics, for users of this
machine. Rules:
* A server answers only requests whose Host header names the loopback address. Without this rule a
  foreign web page could let its own name resolve to 127.0.0.1 (DNS rebinding) and read the answers.
  The header may name any port, because a tunnel may have another port.
* The number of connections is limited, and idle connections are closed, because any user of the
  machine can connect. Each connection costs a thread and a descriptor of the server's process,
  which may be the trainer.

A pool imports this module only for a page or metrics, because `http.server` is slow to import.
"""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sc2pool.errors import ConfigError
from sc2pool.optional import how_to_install
from sc2pool.platform import WINDOWS
from sc2pool.pool.measures import Durations, MatchResults
from sc2pool.pool.statistics import InstanceStats, Metric, PoolStats
from sc2pool.processes.spawn import given_socket, start_thread, start_with_socket

if TYPE_CHECKING:
    from prometheus_client.core import Metric as MetricFamily

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
PORT = 8228
"""The default port of the page; if another program uses it, the page takes a free port."""


class WatchPage:
    """The page of one pool, opened in a browser if there is a display.

    Raises OSError if no process or port is available.
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
        if not WINDOWS:  # on Windows the socket must stay open here until the child has copied it
            self._listener.close()

    def close(self) -> None:
        """End the page; may be called again."""
        self._child.kill()
        self._child.wait()
        self._listener.close()


def listen_for_page(port: int | None = None, given: int | None = None) -> socket.socket:
    """A socket that listens on the loopback address.

    Args:
        port: the socket's port, or None for `PORT` (if `PORT` is taken, a free port).
        given: a listening socket that this process inherits, by its number in the parent process.

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


_FIGURES = ("p50", "p95", "p99", "max")
_PARTS = {"durations": ["figure"], "matches": ["result"]}
"""For each kind of metric with several figures: the label that distinguishes the figures."""


class Collector:
    """For each request, turns a pool's statistics into metrics, in one of the server's threads."""

    def __init__(self, stats: Callable[[], PoolStats], states: Sequence[str]) -> None:
        self._stats = stats
        self._states = states

    def collect(self) -> Iterator[MetricFamily]:
        """The metrics, all named `sc2pool_…`."""
        from prometheus_client import core  # noqa: PLC0415

        stats = self._stats()
        game = {"version": stats.game_version or "", "build": str(stats.base_build or "")}
        yield core.InfoMetricFamily("sc2pool_game", "The game that is played.", game)
        counts = Counter(row.state for row in stats.instances)
        by_state = core.GaugeMetricFamily(
            "sc2pool_instances", "Instances by state.", labels=["state"]
        )
        for state in self._states:
            by_state.add_metric([state], counts[state])
        yield by_state
        yield from _families(PoolStats, [], [([], stats)])
        yield from _families(
            InstanceStats, ["seat"], [([row.seat], row) for row in stats.instances]
        )


def _families(
    kind: type, labels: Sequence[str], rows: Sequence[tuple[list[str], Any]]
) -> Iterator[MetricFamily]:
    """The metrics of a dataclass: one metric for each field with a `Metric` in its metadata.

    Each item of `rows` has the values of `labels` and an object of the dataclass.
    """
    from prometheus_client import core  # noqa: PLC0415

    for field in fields(kind):
        metric: Metric | None = field.metadata.get("metric")
        if metric is None:
            continue
        counts = metric.kind in ("counter", "matches")
        family_of = core.CounterMetricFamily if counts else core.GaugeMetricFamily
        own = [metric.label] if metric.label else []
        own += _PARTS.get(metric.kind, [])
        family = family_of(_name(field.name), metric.help, labels=[*labels, *own])
        for values, row in rows:
            for more, value in _samples(getattr(row, field.name)):
                family.add_metric([*values, *more], value)
        yield family


def _samples(value: Any) -> Iterable[tuple[list[str], float]]:
    """The figures in the value of a field; each figure has the labels that distinguish it."""
    if value is None:
        return
    if isinstance(value, Durations):
        yield from (([figure], getattr(value, figure)) for figure in _FIGURES)
    elif isinstance(value, MatchResults):
        yield from (([result], count) for result, count in vars(value).items())
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from (([key, *labels], sample) for labels, sample in _samples(one))
    else:
        yield [], value


def _name(field: str) -> str:
    return f"sc2pool_{field}econds" if field.endswith("_s") else f"sc2pool_{field}"


class MetricsServer:
    """The HTTP endpoint of one pool's metrics. The endpoint calls `stats` in its own threads.

    Raises ConfigError if prometheus_client is not installed or the server cannot listen on the
    port.
    """

    def __init__(
        self, stats: Callable[[], PoolStats], states: Sequence[str], host: str, port: int
    ) -> None:
        try:
            from prometheus_client import CollectorRegistry, MetricsHandler  # noqa: PLC0415
        except ImportError as error:
            raise ConfigError(
                f"metrics_port needs prometheus_client: {how_to_install('metrics')}"
            ) from error

        own = CollectorRegistry()
        own.register(Collector(stats, states))
        on_loopback = names_loopback(host)

        class Handler(MetricsHandler):
            registry = own

            def do_GET(self) -> None:
                if on_loopback and not names_loopback(self.headers.get("Host", "")):
                    self.send_response(HTTPStatus.MISDIRECTED_REQUEST)
                    self.send_header("Content-Type", "text/plain; charset=utf-8")
                    self.end_headers()
                    self.wfile.write(LoopbackServer.refusal)
                    return
                super().do_GET()

        try:
            with ExitStack() as undo:
                family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
                listener = socket.create_server((host, port), family=family)
                undo.callback(listener.close)
                self._server = LoopbackServer(listener, Handler)
                self._thread = start_thread(self._server.serve_forever, "sc2pool-metrics")
                undo.pop_all()
        except (OSError, OverflowError) as error:
            raise ConfigError(f"metrics_port={port}: cannot listen on {host} ({error})") from error

    def close(self) -> None:
        """End the endpoint and free its port."""
        if sys.is_finalizing():  # at the interpreter's exit, the server's thread has ended
            self._server.server_close()
            return
        # End the server in another thread, because the serving thread cannot wait for its own end.
        # The garbage collector may close a pool in the serving thread.
        try:
            ending = start_thread(self._end, "sc2pool-metrics-end")
        except OSError:
            self._end()
            return
        if threading.current_thread() is not self._thread:
            ending.join()

    def _end(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


IDLE_S: Final = 10.0
"""How long a connection may be idle, unless its handler has another `timeout`."""
MOST_CONNECTIONS: Final = 16
"""The most open connections (a browser opens six); a further connection closes the oldest."""
_ENDS_WITHIN_S: Final = 2.0


class LoopbackServer(ThreadingHTTPServer):
    """Serves a limited number of connections, each in a thread.

    Args:
        listener: a listening socket, which the server closes.
        handler: the class that handles requests; if `accepts` is False for a request's Host header,
            it must answer with `refusal` and the status 421 (Misdirected Request).
    """

    daemon_threads = True
    refusal: Final = b"ask for 127.0.0.1 or localhost\n"

    def __init__(self, listener: socket.socket, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(listener.getsockname(), handler, bind_and_activate=False)
        self.socket.close()  # the base class has made a socket, which `listener` replaces
        self.socket = listener
        self._open: dict[Any, bool] = {}
        """The open connections, the oldest first, each with True if it was asked to end."""
        self._changed = threading.Condition()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread; if there are too many connections, end the oldest."""
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
        """Shut a connection down: its thread then reads the end of file, and returns."""
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
