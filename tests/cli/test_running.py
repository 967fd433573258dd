"""`sc2pool top` and `sc2pool watch` show a running pool in another terminal and in a browser."""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import psutil
import pytest

from sc2pool.cli.running.watch import Server, Watch
from sc2pool.pool.report.pages import listen_for_page
from tests.cli.conftest import COMMAND
from tests.support.programs import run, start


def test_the_table_once(pool, command):
    done = command("top", "--once")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("DefeatRoaches · 2 envs, 1 spare · standin")
    assert lines[0].endswith("(stand-in, not StarCraft II)")
    assert f"process {pool.pid}, up " in lines[1]
    assert "replaced: none" in lines[2]
    assert [line.split()[:2] for line in lines[5:8]] == [["env", "0"], ["env", "1"], ["spare", "2"]]
    for line in lines[5:8]:
        assert psutil.Process(int(line.split()[3])).is_running()


def test_json_tells_what_is_going_on(pool, command, wait_for):
    done = command("top", "--json", "--pid", str(pool.pid))
    assert done.returncode == 0, done.stderr
    before = json.loads(done.stdout)
    assert before["trainer_pid"] == pool.pid
    assert {row["seat"] for row in before["instances"]} == {"env 0", "env 1", "spare 2"}
    for row in before["instances"]:
        game = psutil.Process(row["pid"])
        assert game.ppid() == row["worker_pid"]
        assert row["memory_bytes"] > 10_000_000
        assert row["listener"] == "proven"
        assert isinstance(row["episode_return"], float)
    # A row counts a step when its action is sent; the pool counts it when its transition returns.
    wait_for(lambda: pool.told()["env_steps"] > before["env_steps"])
    after = pool.told()
    sent = sum(row["steps"] for row in after["instances"])
    assert 0 <= sent - after["env_steps"] <= 2
    assert after["steps_per_s"] > 0
    assert 0 < sum(row["cpu_share"] for row in after["instances"]) < 3


def test_rows_are_sorted_as_asked(pool, command):
    done = command("top", "--once", "--sort", "inst")
    numbers = [int(line.split()[2]) for line in done.stdout.splitlines()[5:8]]
    assert numbers == sorted(numbers, reverse=True)
    assert "INST▼" in done.stdout


def test_with_nobody_looking_nothing_is_written(pool, wait_for):
    """The pool stops writing soon after the last request, and begins again with the next one."""
    pool.told()
    (run,) = [
        path for path in Path(tempfile.gettempdir()).glob("sc2pool-run-*") if (path / "0").exists()
    ]
    file = run / "pool.json"
    assert run.stat().st_mode & 0o777 == 0o700

    def nobody_looks_any_more() -> bool:
        newest = file.stat().st_mtime_ns
        time.sleep(0.5)  # enough time for the pool to write twice
        return file.stat().st_mtime_ns == newest

    wait_for(nobody_looks_any_more)
    steps = pool.told()["env_steps"]  # after this request the pool writes again
    assert steps > 0


def test_the_screen_is_redrawn_for_each_key(pool, screen, wait_for):
    shown = screen(60, *top(pool.pid))
    wait_for(lambda: shown.shows("spare 2", "q quit"), 120)
    lines = shown.lines()
    assert lines[0].startswith("DefeatRoaches · 2 envs, 1 spare")
    (titles,) = (line for line in lines if line.startswith("ENV▲"))
    for seat in ("env 0", "env 1", "spare 2"):
        (row,) = (line for line in lines if line.startswith(seat))
        assert re.match(r"[a-z]+ ", row[titles.index("STATE") :]), "below its title"
    shown.press("Right")
    wait_for(lambda: shown.shows("INST▼"))
    shown.press("r")
    wait_for(lambda: shown.shows("INST▲"))
    shown.press("q")
    wait_for(lambda: shown.shows("exit code 0"))


def top(pid: int) -> tuple[str, ...]:
    """A shell's command line: runs `sc2pool top` in a terminal, shows its exit code and waits."""
    command = shlex.join([*COMMAND, "top", "--pid", str(pid)])
    return "sh", "-c", f"{command}; echo exit code $?; read -r _"


def test_a_killed_game_shows_and_so_does_the_end(start_pool, command, screen, wait_for):
    pool = start_pool(2)
    shown = screen(120, *top(pool.pid))
    wait_for(lambda: shown.shows("replaced: none"), 120)
    struck = pool.told()["instances"][1]
    os.kill(struck["pid"], signal.SIGKILL)
    wait_for(lambda: shown.shows("game-exited 1"))
    wait_for(lambda: pool.told()["recovery_s"])
    told = pool.told()
    whole, hurt = told["instances"]
    assert (whole["replacements"], hurt["replacements"]) == ({}, {"game-exited": 1})
    assert hurt["instance"] == 2
    assert hurt["pid"] != struck["pid"]
    (fault,) = [event for event in told["events"] if event["event"] == "fault"]
    assert (fault["seat"], fault["instance"], fault["cause"]) == ("env 1", 1, "game-exited")
    table = command("top", "--once", "--pid", str(pool.pid)).stdout
    assert "replaced: game-exited 1 · recovered within" in table
    assert "ago  env 1, instance 1: game-exited while" in table
    pool.ask_to_end()
    wait_for(lambda: shown.shows(f"the pool of process {pool.pid} has ended", "exit code 0"))


@pytest.mark.parametrize("command", ["top --json", "top --once", "watch"])
def test_into_a_closed_pipe(pool, into_closed_pipe, command):
    done = into_closed_pipe(*command.split(), "--pid", str(pool.pid))
    assert (done.returncode, done.stderr) == (141, "")


def test_a_live_table_needs_a_terminal(pool, command):
    done = command("top")
    assert done.returncode == 2
    assert "give --once or --json" in done.stderr


def test_a_terminal_that_cannot_redraw_is_none(pool, screen, wait_for):
    shown = screen(120, "env", "TERM=dumb", *top(pool.pid))
    wait_for(lambda: shown.shows("give --once or --json", "exit code 2"))


CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)


class Watching:
    """A running `sc2pool watch`."""

    def __init__(self, pid: int, *arguments: str) -> None:
        self.process = start(*COMMAND, "watch", "--pid", pid, *arguments)
        assert self.process.stdout is not None
        assert f"process {pid}" in self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/ ", self.process.stdout.readline())
        assert found is not None
        self.port = int(found[1])

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def get(self, path: str, host: str | None = None) -> tuple[http.client.HTTPResponse, bytes]:
        """Request a page; `host` is the server's host name in the request."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)) as connection:
            connection.request("GET", path, headers={"Host": host or f"127.0.0.1:{self.port}"})
            answer = connection.getresponse()
            return answer, answer.read()

    def state(self) -> dict[str, Any]:
        return dict(json.loads(self.get("/state")[1]))

    def curves(self) -> dict[str, Any]:
        self.state()  # this request lets the pool write the curves
        return dict(json.loads(self.get("/curves")[1]))

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def watching(pool) -> Iterator[Watching]:
    """`sc2pool watch` for the pool that the module's tests share."""
    running = Watching(pool.pid)
    yield running
    running.end()


def test_the_page_is_whole_and_loads_nothing_from_elsewhere(watching):
    answer, page = watching.get("/")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    loaded = re.findall(rb'(?:src|href)="([^"]*)"', page)
    assert sorted(loaded) == [b"data:,", b"watch.css", b"watch.js"]
    imported = re.findall(rb'from "\./([a-z]+\.js)"', watching.get("/watch.js")[1])
    assert sorted(imported) == [b"curves.js", b"map.js"]
    for name in ("watch.css", "watch.js", "curves.js", "map.js"):
        answer, content = watching.get(f"/{name}")
        assert answer.status == 200
        assert b"://" not in content.replace(b"http://www.w3.org/2000/svg", b"")  # a name
        assert b"url(" not in content


def kinds_shown(watching: Watching, instance: str) -> set[int]:
    view = watching.state()["views"].get(instance, {"units": []})
    return {unit[0] for unit in view["units"]}


def test_it_tells_every_game_live(watching, wait_for):
    wait_for(lambda: len(watching.state()["views"]) == 3)
    state = watching.state()
    assert not state["ended"]
    assert len(state["pool"]["instances"]) == 3
    # Wait until marines and roaches are shown: at an episode's end, one side has no units.
    for instance in state["views"]:
        wait_for(lambda i=instance: {0, 2} <= kinds_shown(watching, i))
    playing = state["pool"]["instances"][0]["instance"]
    loop = state["views"][str(playing)]["loop"]
    wait_for(lambda: watching.state()["views"][str(playing)]["loop"] != loop)


def test_it_tells_what_is_played_and_how_well(watching, wait_for):
    wait_for(lambda: watching.state()["pool"])
    state = watching.state()
    assert state["is_standin"]
    assert state["pool"]["task"] == "DefeatRoaches"
    wait_for(lambda: watching.state()["pool"]["mean_return"] is not None)
    pool = watching.state()["pool"]
    assert sum(row["episodes"] for row in pool["instances"]) == pool["episodes"] > 0
    wait_for(lambda: {"mean return", "steps/s"} <= set(watching.curves()["figures"]))
    curves = watching.curves()
    assert len(curves["steps"]) == len(curves["at_s"]) == len(curves["figures"]["steps/s"])


def test_the_map_is_told_by_its_key(watching, wait_for):
    wait_for(lambda: watching.state()["views"])
    view = next(iter(watching.state()["views"].values()))
    answer, content = watching.get(f"/map/{view['map']}")
    assert answer.status == 200
    told = json.loads(content)
    assert told["name"] == "DefeatRoaches"
    x0, y0, x1, y1 = told["area"]
    for _, _, x, y, radius, *_ in view["units"]:
        assert x0 - radius <= x <= x1 + radius
        assert y0 - radius <= y <= y1 + radius


@pytest.mark.parametrize(
    "path", ["/map/00000000", "/map/../../etc/passwd", "/web/index.html", "/../watch.py", "/x"]
)
def test_there_is_nothing_else(watching, path):
    assert watching.get(path)[0].status == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "192.168.0.1:{port}"])
@pytest.mark.parametrize("path", ["/", "/state"])
def test_another_name_is_turned_away(watching, host, path):
    """A foreign page whose host name resolves to this machine (DNS rebinding) reads nothing."""
    answer, content = watching.get(path, host.format(port=watching.port))
    assert answer.status == 421
    assert b"instance" not in content


def test_localhost_is_ours(watching):
    assert watching.get("/state", f"localhost:{watching.port}")[0].status == 200


def test_it_listens_on_the_loopback_address_only(watching):
    with socket.socket() as elsewhere:
        # This call succeeds only if the server has left the port free on other addresses.
        elsewhere.bind(("127.0.0.2", watching.port))
    with socket.socket() as all_addresses, pytest.raises(OSError, match="in use"):
        all_addresses.bind(("127.0.0.1", watching.port))


def test_a_taken_port(pool, watching, command):
    done = command("watch", "--pid", str(pool.pid), "--port", str(watching.port))
    assert done.returncode == 2
    assert f"--port {watching.port}: cannot listen there" in done.stderr


class Games(HTMLParser):
    """The games on a rendered page; a game is a dict of the texts of its parts, by class name."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.games: list[dict[str, str]] = []
        self.notice = self.about = ""
        self.columns = ""
        self.curves: list[str] = []
        self.words: dict[str, str] = {}
        self._class = ""
        self._in_template = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._in_template |= tag == "template"
        self._class = given.get("class", "") or given.get("id", "")
        if self._in_template:
            return  # these tags are templates of the games' parts
        if tag == "figure":
            self.curves.append(given["data-name"])
        if given.get("id") == "games":
            self.columns = given["style"]
        if tag == "article":
            self.games.append({"state": given["data-state"], "health": given["data-health"]})
            self.games[-1]["larger"] = str("larger" in given["class"])
        if tag == "canvas":
            self.games[-1] |= {"units": given["data-units"], "told": given.get("aria-label", "")}

    def handle_endtag(self, tag: str) -> None:
        self._in_template &= tag != "template"

    def handle_data(self, data: str) -> None:
        if self.games and self._class and data.strip() and not self._in_template:
            self.games[-1][self._class] = data.strip()
        if self._class == "notice":
            self.notice = data.strip()
        if self._class == "about" and data.strip():
            self.about = data.strip()
        if self._class in ("task", "standin") and data.strip():
            self.words[self._class] = data.strip()


def in_browser(address: str, folder: Path) -> Games:
    """The page as Chromium renders it after some seconds of Chromium's own clock."""
    assert CHROMIUM is not None
    done = run(
        CHROMIUM,
        "--headless",
        "--no-sandbox",  # Chromium needs this option if the user is root
        "--disable-gpu",
        "--disable-breakpad",
        "--disable-dev-shm-usage",
        "--window-size=900,700",
        f"--user-data-dir={folder}",
        "--virtual-time-budget=5000",
        "--dump-dom",
        address,
    )
    assert done.returncode == 0, done.stderr
    return Games(done.stdout)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_a_browser_shows_every_game(watching, tmp_path, wait_for):
    wait_for(lambda: len(watching.state()["views"]) == 3)
    wait_for(lambda: "mean return" in watching.curves()["figures"])
    shown = in_browser(watching.address, tmp_path)
    assert shown.notice == ""
    assert [game["seat"] for game in shown.games] == ["env 0", "env 1", "spare 2"]
    assert "repeat(4, " in shown.columns, "the largest cards on which all figures have room"
    assert shown.words == {"task": "DefeatRoaches", "standin": "stand-in, not StarCraft II"}
    assert f" · process {watching.state()['pool']['trainer_pid']} · " in shown.about
    assert shown.curves[:2] == ["mean return", "steps/s"]
    assert {game["larger"] for game in shown.games} == {"False"}
    for game in shown.games:
        assert game["health"] in ("good", "busy")
        assert game["instance"] in ("instance 0", "instance 1", "instance 2")
        assert int(game["units"]) > 0
        # At the end of an episode, only one side has units to report.
        assert re.match(r"DefeatRoaches: \d+ (own|enemy)", game["told"])
        assert re.fullmatch(r"-?\d+(\.\d+)?", game["return"])
        assert "event" not in game


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_the_chosen_game_is_shown_larger(watching, tmp_path, wait_for):
    wait_for(lambda: len(watching.state()["views"]) == 3)
    shown = in_browser(f"{watching.address}#env%201", tmp_path)
    assert [game["larger"] for game in shown.games] == ["False", "True", "False"]
    assert "repeat(2, " in shown.columns, "the others share the room below"


class Told:
    """Takes the place of a pool that has these statistics."""

    def __init__(self, stats: dict[str, Any]) -> None:
        self._stats = stats

    def ended(self) -> bool:
        return False

    def poll(self) -> tuple[dict[str, Any], float]:
        return self._stats, 0.0

    def read(self, *_: object) -> None:
        """Return None, because there are no views and no curves."""


def shown_of(stats: dict[str, Any], folder: Path) -> Games:
    """The page that a browser renders for a pool with these statistics."""
    pool: Any = Told(stats)
    with Server(Watch(pool), listen_for_page()) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            return in_browser(server.address, folder)
        finally:
            server.shutdown()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_a_browser_shows_how_many_nodes_play(watching, tmp_path, wait_for):
    wait_for(lambda: watching.state()["pool"])
    stats = watching.state()["pool"]
    rows = enumerate(stats["instances"])
    instances = [{**row, "node": f"node {number % 2}"} for number, row in rows]
    shown = shown_of({**stats, "instances": instances}, tmp_path)
    assert " · 2 Ray nodes · " in shown.about
    assert "process" not in shown.about


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_an_env_without_a_game_says_why(watching, tmp_path, wait_for):
    wait_for(lambda: watching.state()["pool"])
    stats = watching.state()["pool"]
    rows = zip(stats["instances"], ("starting", "playing"), strict=False)
    instances = [{**row, "pid": None, "state": state} for row, state in rows]
    shown = shown_of({**stats, "game_version": None, "instances": instances}, tmp_path)
    assert [game["blank"] for game in shown.games] == [
        "the game is being started",
        "this env has no game to show",
    ]
    assert shown.about.startswith("2 envs · no game · ")


def test_a_fault_and_the_end_are_told(start_pool, tmp_path, wait_for):
    pool = start_pool(1)
    page = Watching(pool.pid)
    try:
        wait_for(lambda: len(page.state()["views"]) == 1)
        os.kill(page.state()["pool"]["instances"][0]["pid"], signal.SIGKILL)
        wait_for(lambda: "1" in page.state()["views"])
        assert list(page.state()["views"]) == ["1"]
        if CHROMIUM is not None:
            (game,) = in_browser(page.address, tmp_path).games
            assert game["instance"] == "instance 1"
            assert game["event"].startswith("game-exited while")
        pool.ask_to_end()
        wait_for(lambda: page.state()["ended"])  # the command shows the end only for a moment
        said, _ = page.process.communicate(timeout=300)
        assert said == f"the pool of process {pool.pid} has ended\n"
        assert page.process.returncode == 0
    finally:
        page.end()
