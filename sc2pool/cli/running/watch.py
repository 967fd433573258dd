"""`sc2pool watch`: a local web page with all games of a running pool side by side.

`Watch` reads the pool's live files, and `Server` sends the data to the page, web/watch.js.

Rules: the server listens only on the loopback address, and answers only requests whose `Host`
header names this address (`LoopbackServer`). No request changes anything. The page loads nothing
from other servers. When no page sends requests any more, the pool stops writing its live files.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import threading
import time
import webbrowser
from collections import OrderedDict
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from importlib import resources
from typing import Any

from sc2pool.cli.running.runs import ClusterRun, Run, choose
from sc2pool.cli.table import is_standin
from sc2pool.errors import ConfigError
from sc2pool.integration import listen_for_page, live_files
from sc2pool.utilities import SYSTEM, LoopbackServer

_POLL_INTERVAL_S = 0.5
_LAST_WORDS_S = 2.0
"""How long the server runs after the pool's end, so that open pages can show the end."""
_MAPS_KEPT = 32
_MAP_PATH = re.compile(r"/map/([0-9a-f]{8})")

_PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/watch.css": ("watch.css", "text/css; charset=utf-8"),
    **{
        f"/{script}.js": (f"{script}.js", "text/javascript; charset=utf-8")
        for script in ("watch", "map", "curves")
    },
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' "
    "'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Watch:
    """The data for the page, read from a pool's live files."""

    def __init__(self, pool: Run | ClusterRun) -> None:
        self._pool = pool
        self._maps: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def state(self) -> dict[str, Any]:
        """The pool's statistics, and the newest view of each instance.

        `pool` is None until the pool has answered; `views` maps instances to their views.
        """
        ended = self._pool.ended()
        seen = None if ended else self._pool.poll()
        if seen is None:
            return {"ended": ended, "pool": None, "is_standin": False, "age_s": None, "views": {}}
        pool, age_s = seen
        views = {}
        for row in pool["instances"]:
            view = self._view(row["instance"])
            if view is not None:
                views[str(row["instance"])] = view
        return {
            "ended": False,
            "pool": pool,
            "is_standin": is_standin(pool["game_version"]),
            "age_s": age_s,
            "views": views,
        }

    def curves(self) -> dict[str, Any]:
        """The curves of the run (see `History.as_dict`); an empty dict before the pool answers."""
        seen = self._pool.read(live_files.CURVE_FILE)
        return {"at_s": [], "steps": [], "figures": {}} if seen is None else seen[0]

    def _view(self, instance: int) -> dict[str, Any] | None:
        view = self._pool.read(live_files.VIEW_FILE, instance)
        if view is None:
            return None
        with self._lock:
            if view[0]["map"] not in self._maps:
                shown = self._pool.read(live_files.MAP_FILE, instance)
                if shown is None or shown[0]["key"] != view[0]["map"]:
                    return None  # the game is being replaced; the next request will find its map
                self._maps[shown[0]["key"]] = shown[0]
                while len(self._maps) > _MAPS_KEPT:
                    self._maps.popitem(last=False)
        return {**view[0], "age_s": view[1]}

    def map(self, key: str) -> dict[str, Any] | None:
        """The map with this key; None if no view that was read has the key."""
        with self._lock:
            return self._maps.get(key)


class Server(LoopbackServer):
    """Serves the page on the loopback address."""

    def __init__(self, watch: Watch, listener: socket.socket) -> None:
        super().__init__(listener, _Handler)
        self.watch = watch
        self.port: int = self.server_address[1]

    @property
    def address(self) -> str:
        return f"http://{self.server_address[0]!s}:{self.port}/"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "sc2pool"
    sys_version = ""

    def do_GET(self) -> None:
        if not self.server.accepts(self.headers["Host"]):
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, self.server.refusal)
            return
        path = self.path.partition("?")[0]
        asset = _PAGE.get(path)
        named = _MAP_PATH.fullmatch(path)
        if asset is not None:
            file, kind = asset
            content = resources.files("sc2pool.cli.running").joinpath("web", file).read_bytes()
            self._answer(HTTPStatus.OK, content, kind)
        elif path == "/state":
            self._answer_json(self.server.watch.state())
        elif path == "/curves":
            self._answer_json(self.server.watch.curves())
        elif named is not None and (found := self.server.watch.map(named[1])) is not None:
            self._answer_json(found)
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"there is no such page\n")

    def _answer_json(self, data: dict[str, Any]) -> None:
        content = json.dumps(data, separators=(",", ":")).encode()
        self._answer(HTTPStatus.OK, content, "application/json")

    def _answer(
        self, status: HTTPStatus, content: bytes, kind: str = "text/plain; charset=utf-8"
    ) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: a line for each request would scroll the page's address out of sight."""


def listen_as(args: argparse.Namespace) -> socket.socket:
    """The socket `--listener`, or a new one on `--port` or a free port; may raise `ConfigError`."""
    try:
        return listen_for_page(args.port, args.listener)
    except OSError as error:
        raise ConfigError(f"--port {args.port}: cannot listen there ({error.strerror})") from error


def show_in_browser(address: str) -> None:
    """Open a page in the user's browser if there is a display; neither raises errors nor waits."""
    if SYSTEM == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        return  # a text browser would take over this terminal

    def show() -> None:
        with suppress(Exception):
            webbrowser.open(address)

    threading.Thread(target=show, name="sc2pool-browser", daemon=True).start()


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C or the pool's end; raises `ConfigError` without a pool or a free port."""
    pool = ClusterRun(args.ray, closely=True) if args.ray else choose(args.run_dir, args.pid)
    with Server(Watch(pool), listen_as(args)) as server:
        threading.Thread(target=server.serve_forever, name="sc2pool-watch", daemon=True).start()
        print(f"{pool.describe()}\nis shown at {server.address} (Ctrl-C ends)", flush=True)
        if args.browser:
            show_in_browser(server.address)
        while not pool.ended():
            time.sleep(_POLL_INTERVAL_S)
        print(f"{pool.name} has ended", flush=True)
        time.sleep(_LAST_WORDS_S)
        server.shutdown()
    return 0
