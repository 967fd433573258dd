"""A server on the loopback address: the names that it answers to, and its connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from sc2pool.pool.report.loopback import (
    IDLE_S,
    MOST_CONNECTIONS,
    LoopbackServer,
    names_loopback,
)


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


class Handler(BaseHTTPRequestHandler):
    timeout = IDLE_S

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """A server with this handler, closed with the block; its port."""
    server = LoopbackServer(socket.create_server(("127.0.0.1", 0)), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def half_request(port: int) -> socket.socket:
    """A connection that has sent the first line of a request."""
    one = socket.create_connection(("127.0.0.1", port), timeout=300)
    one.sendall(b"GET / HTTP/1.1\r\n")
    return one


def test_the_oldest_of_too_many_connections_ends() -> None:
    with serving(Handler) as port, ExitStack() as opened:
        held = [opened.enter_context(half_request(port)) for _ in range(MOST_CONNECTIONS + 2)]
        for ended in held[:2]:
            assert ended.recv(1) == b""
        for waiting in held[2:]:
            waiting.sendall(b"\r\n")
            assert waiting.recv(12).startswith(b"HTTP/1.0 200")


def test_a_silent_connection_ends() -> None:
    class Impatient(Handler):
        timeout = 0.05

    with serving(Impatient) as port, half_request(port) as silent:
        assert silent.recv(1) == b""


def test_open_connections_end_with_the_server() -> None:
    with ExitStack() as opened:
        with serving(Handler) as port:
            one = opened.enter_context(half_request(port))
        with suppress(ConnectionResetError):  # it was not accepted yet
            assert one.recv(1) == b""
