"""The Prometheus endpoint of a pool."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing

import psutil
import pytest

from sc2pool.config import PoolConfig
from sc2pool.errors import ConfigError
from sc2pool.pool.measures import MatchResults
from sc2pool.tasks.marine_duel import HOLD, MarineDuel
from tests.support.pools import begun

pytest.importorskip("prometheus_client", reason="the extra `metrics` is not installed")
from prometheus_client.parser import text_string_to_metric_families


@pytest.fixture
def port() -> int:
    """A port that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def scrape(port: int) -> dict[tuple[str, ...], float]:
    """The samples that Prometheus reads: values by their name and ordered label values."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=300) as answer:
        text = answer.read().decode()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_page_from_elsewhere_cannot_read_it_and_it_goes_with_the_pool(vec_task, port):
    env = vec_task(n=1, config=PoolConfig(metrics_port=port))
    for name, status in {"evil.example": 421, "localhost": 200}.items():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        with closing(connection):
            connection.request("GET", "/metrics", headers={"Host": f"{name}:{port}"})
            answer = connection.getresponse()
            assert (answer.status, b"sc2pool" in answer.read()) == (status, status == 200)
    env.close()
    with pytest.raises(urllib.error.URLError, match="refused"):
        scrape(port)


def samples(told: dict[tuple[str, ...], float], name: str) -> Iterator[tuple[str, ...]]:
    return (key for key in told if key[0] == name)


def test_the_counters_of_a_pool(vec_task, port, wait_for):
    env = begun(vec_task(n=2, config=PoolConfig(metrics_port=port, watchdog_interval_s=0.1)))
    actions = [env.action_space.sample() for _ in range(2)]
    for _ in range(5):
        env.step(actions)
    told = scrape(port)
    assert told["sc2pool_env_steps_total",] == 10
    assert told["sc2pool_launches_total",] == 2
    assert told["sc2pool_resets_total",] == 2
    assert told["sc2pool_instances", "playing"] == 2
    assert told["sc2pool_episode_steps", "env 0"] == 5
    ((_, *labels),) = samples(told, "sc2pool_game_info")
    assert env.stats().game_version in labels
    assert list(samples(told, "sc2pool_replacements_total")) == []
    assert list(samples(told, "sc2pool_reset_seconds"))
    wait_for(lambda: scrape(port).get(("sc2pool_memory_bytes", "env 1"), 0) > 10_000_000)
    psutil.Process(env.stats().instances[0].pid).kill()
    env.step(actions)
    told = scrape(port)
    assert told["sc2pool_replacements_total", "game-exited", "env 0"] == 1
    assert told["sc2pool_recovery_seconds", "max"] > 0


def test_matches_are_counted_by_opponent_and_result(vec_task, port):
    config = PoolConfig(metrics_port=port)
    env = vec_task("MarineDuel", n=1, max_loops=8, opponent=MarineDuel.scripted, config=config)
    env.reset()
    for _ in range(3):
        env.step([HOLD])
    assert env.stats().matches == {"scripted": MatchResults(undecided=3)}
    told = scrape(port)
    assert told["sc2pool_matches_total", "scripted", "undecided"] == 3
    assert told["sc2pool_matches_total", "scripted", "win"] == 0


def test_a_taken_port_is_a_config_error(vec_task, port):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with pytest.raises(ConfigError, match=f"metrics_port={port}: cannot listen on 127.0.0.1"):
            vec_task(n=1, config=PoolConfig(metrics_port=port))


def test_without_a_port_nothing_of_it_is_loaded(standin_dir):
    program = f"""
import sys
from sc2pool import SC2GymEnv
SC2GymEnv(game={str(standin_dir)!r}, serial=True).close()
assert "prometheus_client" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
