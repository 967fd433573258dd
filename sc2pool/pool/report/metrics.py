"""A pool's statistics for Prometheus: `PoolConfig(metrics_port=9464)`, then GET /metrics there.

The metadata of a field of `PoolStats` or `InstanceStats` makes it a metric. The figures are read
for each request, in the server's thread. `snapshot` explains why this costs the step path nothing.

Rules: the server is off unless a port is given, and prometheus_client is imported only then. It
listens on the loopback address unless another is given. There it answers only to that address's
names (`loopback`). Each pool has its own registry, so two pools do not mix, and no other metrics of
the user's process are shown.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from sc2pool.errors import ConfigError
from sc2pool.optional import how_to_install
from sc2pool.pool.measures import Durations, MatchResults
from sc2pool.pool.report.loopback import LoopbackServer, names_loopback
from sc2pool.pool.statistics import InstanceStats, Metric, PoolStats
from sc2pool.processes.spawn import start_thread

if TYPE_CHECKING:
    from prometheus_client.core import Metric as MetricFamily

_FIGURES = ("p50", "p95", "p99", "max")
_PARTS = {"durations": ["figure"], "matches": ["result"]}
"""The label that distinguishes the figures of one value, by the metric's kind."""


class Collector:
    """Turns a pool's statistics into metrics, at each request.

    Args:
        stats: see `Pool.stats`. Called in the server's threads.
        states: all states of an instance. Each gets a count, even if the count is 0.
    """

    def __init__(self, stats: Callable[[], PoolStats], states: Sequence[str]) -> None:
        self._stats = stats
        self._states = states

    def collect(self) -> Iterator[MetricFamily]:
        """The metrics, all named `sc2pool_…`."""
        from prometheus_client import core  # noqa: PLC0415

        stats = self._stats()
        game = {"version": stats.game_version or "", "build": str(stats.base_build or "")}
        yield core.InfoMetricFamily("sc2pool_game", "The game that is played.", game)
        counts = dict.fromkeys(self._states, 0)
        for row in stats.instances:
            counts[row.state] += 1
        by_state = core.GaugeMetricFamily(
            "sc2pool_instances", "Instances by state.", labels=["state"]
        )
        for state, count in counts.items():
            by_state.add_metric([state], count)
        yield by_state
        yield from _families(PoolStats, [], [([], stats)])
        yield from _families(
            InstanceStats, ["seat"], [([row.seat], row) for row in stats.instances]
        )


def _families(
    kind: type, labels: Sequence[str], rows: Sequence[tuple[list[str], Any]]
) -> Iterator[MetricFamily]:
    """The metrics of a dataclass, one for each field with such metadata.

    Args:
        kind: the dataclass.
        labels: names of the labels that each row has.
        rows: for each row the values of these labels, and an object of the dataclass.
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
    """The figures in a field's value, each with the labels that distinguish it."""
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
    """The HTTP endpoint of one pool's metrics.

    Args:
        stats: see `Pool.stats`. Called in the server's threads.

    Raises:
        ConfigError: prometheus_client is not installed, or the server cannot listen on the port.
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
        if sys.is_finalizing():  # the server's thread has ended
            self._server.server_close()
            return
        # In a thread of its own: the garbage collector may close a pool in the serving thread,
        # which cannot wait for its own end.
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
