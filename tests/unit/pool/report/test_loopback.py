"""A server on the loopback address answers to that address's names, and to no other."""

from __future__ import annotations

import pytest

from sc2pool.pool.report.loopback import names_loopback


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:9464", "localhost", "LocalHost:80", "[::1]", "[::1]:9464", "::1"],
)
def test_its_names(host: str) -> None:
    assert names_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:9464",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "0.0.0.0",
        "192.168.0.1:9464",
        "[fe80::1]:9464",
        "@127.0.0.1",
        "a:b:c",
    ],
)
def test_other_names(host: str) -> None:
    assert not names_loopback(host)
