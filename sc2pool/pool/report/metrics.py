"""A pool's counters for Prometheus: `PoolConfig(metrics_port=9464)`, then GET /metrics there.

The figures are taken when they are asked for, in the answering thread (see `snapshot` for why that
needs nothing of the step path). Rules: off unless a port is given, and prometheus_client is only
imported then; the loopback address unless another is given; the registry is the pool's own, so
nothing of the user's process is told, and two pools do not mix.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sc2pool.errors import ConfigError
from sc2pool.pool.instances.states import State

if TYPE_CHECKING:
    from prometheus_client.core import Metric

Stats = Mapping[str, Any]

_COUNTERS = (
    ("env_steps", "Transitions handed to the trainer."),
    ("episodes", "Episodes that ended, synthetic endings included."),
    ("launches", "Instances whose game came up."),
    ("resets", "Episodes that were begun, by envs and spares."),
)
_DURATIONS = ("p50", "p95", "max")
_SEAT_GAUGES = (
    ("memory_bytes", "memory_bytes", "Resident memory of the game, or of a worker without one."),
    ("episode_return", "episode_return", "Sum of the running episode's rewards."),
    ("episode_steps", "episode_steps", "Steps of the running episode."),
)


class Collector:
    """Turns a pool's stats into metrics, anew for each scrape.

    Args:
        stats: see `Pool.stats`; called in the server's threads.
    """

    def __init__(self, stats: Callable[[], Stats]) -> None:
        self._stats = stats

    def collect(self) -> Iterator[Metric]:
        """The metrics, all named `sc2pool_…`."""
        from prometheus_client import core  # noqa: PLC0415

        stats = self._stats()
        info = core.InfoMetricFamily("sc2pool_game", "The game that is played.")
        info.add_metric(
            [], {"version": stats["game_version"] or "", "build": str(stats["base_build"] or "")}
        )
        yield info
        for name, about in _COUNTERS:
            yield core.CounterMetricFamily(f"sc2pool_{name}", about, value=stats[name])
        recycles = core.CounterMetricFamily(
            "sc2pool_recycles", "Replaced instances by cause.", labels=["seat", "cause"]
        )
        states = dict.fromkeys(State, 0)
        for row in stats["instances"]:
            states[State(row["state"])] += 1
            for cause, count in row["recycles"].items():
                recycles.add_metric([row["seat"], cause], count)
        yield recycles
        instances = core.GaugeMetricFamily(
            "sc2pool_instances", "Instances by state.", labels=["state"]
        )
        for state, count in states.items():
            instances.add_metric([str(state)], count)
        yield instances
        for key, name, about in _SEAT_GAUGES:
            gauge = core.GaugeMetricFamily(f"sc2pool_{name}", about, labels=["seat"])
            for row in stats["instances"]:
                if row[key] is not None:
                    gauge.add_metric([row["seat"]], row[key])
            yield gauge
        resets = core.GaugeMetricFamily(
            "sc2pool_reset_seconds",
            "How long the newest thousand resets took.",
            labels=["rung", "of"],
        )
        for rung, seconds in stats["reset_s"].items():
            _add_durations(resets, [rung], seconds)
        yield resets
        recovery = core.GaugeMetricFamily(
            "sc2pool_recovery_seconds",
            "From a fault to the next first observation, the newest thousand.",
            labels=["of"],
        )
        _add_durations(recovery, [], stats["recovery_s"])
        yield recovery
        yield core.CounterMetricFamily(
            "sc2pool_watchdog_cpu_seconds",
            "CPU time of the watchdog's thread.",
            value=stats["watchdog_cpu_s"],
        )


def _add_durations(gauge: Any, labels: list[str], seconds: Mapping[str, float]) -> None:
    for of in _DURATIONS:
        if of in seconds:
            gauge.add_metric([*labels, of], seconds[of])


class MetricsServer:
    """The endpoint; lives as long as its pool.

    Args:
        stats: see `Pool.stats`.
        host: address to listen on.
        port: to listen on.

    Raises:
        ConfigError: prometheus_client is not installed, or the port cannot be had.
    """

    def __init__(self, stats: Callable[[], Stats], host: str, port: int) -> None:
        try:
            from prometheus_client import CollectorRegistry, start_http_server  # noqa: PLC0415
        except ImportError as error:
            raise ConfigError(
                "metrics_port needs prometheus_client: pip install 'sc2pool[metrics]'"
            ) from error
        registry = CollectorRegistry()
        registry.register(Collector(stats))
        try:
            self._server, self._thread = start_http_server(port, host, registry)
        except (OSError, OverflowError) as error:
            raise ConfigError(f"metrics_port={port}: cannot listen on {host} ({error})") from error

    def close(self) -> None:
        """End the endpoint; its port is free afterwards."""
        # Not in this thread: a pool that goes with the garbage may be closed in any, the serving
        # one included, and that one cannot wait for its own end.
        ending = threading.Thread(target=self._end, name="sc2pool-metrics-end")
        ending.start()
        if threading.current_thread() is not self._thread:
            ending.join()

    def _end(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
