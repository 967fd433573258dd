"""Tests a pool's fault reports, replays, statistics and live files, and its local server."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from sc2pool.config import ReplayPolicy
from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.game.clock import Tick
from sc2pool.players.replays import REPLAY, PlayedReplay
from sc2pool.pool import statistics
from sc2pool.pool.messages import Evidence
from sc2pool.pool.report import fault_reports, live_files, snapshot, stuck_hooks
from sc2pool.pool.report.fault_reports import FaultedInstance
from sc2pool.pool.report.pages import (
    MOST_CONNECTIONS,
    LoopbackServer,
    names_loopback,
)
from sc2pool.pool.report.replays import ReplayFolder
from sc2pool.pool.report.snapshot import EVENTS_IN_FILE, Snapshots
from sc2pool.pool.report.stuck_hooks import HookWatch
from sc2pool.pool.statistics import Counters, InstanceStats
from sc2pool.tasks.player import Episode, GameFacts
from tests.support.systems import is_private
from tests.unit.pool.conftest import meanwhile

# ---- fault reports -------------------------------------------------------------------------------


FAULT = Fault(FaultKind.BAD_REPLY, Phase.STEPPING, "the reply to step is empty")
EVERYTHING = Evidence("log line\n", "Traceback: …\n", b"replay")


INSTANCE = FaultedInstance(
    seat="env 3",
    instance=12,
    state="stepping",
    episode=Episode(5, 77, {"level": 1}),
    reset_kind="create",
    games=[GameFacts(100, 100, 10_000, "standin-1", 75689)],
    last_actions=[np.int64(3), np.array([1.5]), {"a": 1}],
)


def test_a_report_has_all_that_is_known(tmp_path):
    path = fault_reports.write(tmp_path / "faults", FAULT, INSTANCE, EVERYTHING)
    folder = tmp_path / "faults" / os.path.basename(path)  # noqa: PTH119
    assert str(folder) == path
    assert "-env3-instance12-bad-reply-" in folder.name
    assert is_private(folder)
    about = json.loads((folder / "fault.json").read_text())
    assert about["fault"] == {
        "kind": "bad-reply",
        "phase": "stepping",
        "detail": "the reply to step is empty",
        "refused": False,
        "map_note": "",
    }
    assert about["episode"] == {
        "number": 5,
        "seed": 77,
        "options": {"level": 1},
        "both_keywords": False,
    }
    assert (about["seat"], about["instance"], about["state"]) == ("env 3", 12, "stepping")
    assert about["reset_kind"] == "create"
    assert about["games"][0]["version"] == "standin-1"
    assert about["last_actions"] == [3, [1.5], {"a": 1}]
    assert (folder / "game.log").read_text() == "log line\n"
    assert (folder / "traceback.txt").read_text() == "Traceback: …\n"
    assert (folder / "last.SC2Replay").read_bytes() == b"replay"


def test_unknown_facts_are_left_out(tmp_path):
    instance = replace(INSTANCE, episode=None, games=[])
    path = fault_reports.write(tmp_path, FAULT, instance, Evidence())
    assert os.listdir(path) == ["fault.json"]  # noqa: PTH208


def test_two_in_one_second_are_two(tmp_path):
    """Two pools, whose envs and instances have the same numbers, may report in one second."""
    paths = {fault_reports.write(tmp_path, FAULT, INSTANCE, EVERYTHING) for _ in range(5)}
    assert len(paths) == 5
    assert None not in paths


def test_the_folder_is_bounded_and_the_newest_stay(tmp_path):
    (tmp_path / "the user's own").mkdir()
    for number in range(fault_reports.KEPT + 5):
        old = tmp_path / f"20000101-000000-env{number:03}"
        old.mkdir()
        (old / "fault.json").touch()
    path = fault_reports.write(tmp_path, FAULT, INSTANCE, EVERYTHING)
    left = sorted(folder.name for folder in tmp_path.iterdir())
    assert len(left) == fault_reports.KEPT + 1
    assert left[0] == "20000101-000000-env006"
    assert os.path.basename(path) in left  # noqa: PTH119
    assert "the user's own" in left


@pytest.mark.parametrize("name", ["file", "\0"], ids=["a file", "no name"])
def test_where_nothing_can_be_written_there_is_none(tmp_path, caplog, name):
    (tmp_path / "file").touch()
    assert fault_reports.write(tmp_path / name, FAULT, INSTANCE, EVERYTHING) is None
    assert "no fault report" in caplog.text


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("as if")


KNOTTED: dict[str, object] = {}
KNOTTED["itself"] = KNOTTED
LOCK = threading.Lock()
ODD_OPTIONS = {
    "a key that is no text": ({(1, 2): 3}, {"(1, 2)": 3}),
    "a number as key": ({1: 2, "a": 3}, {"1": 2, "a": 3}),
    "no repr": ({"a": Unshowable(), "b": 1}, {"a": "<Unshowable: RuntimeError when", "b": 1}),
    "a key without repr": ({"a": {Unshowable(): 1}, "b": 1}, {"a": "<dict: RuntimeE", "b": 1}),
    "what cannot be copied": ({"a": LOCK, "b": 1}, {"a": "<unlocked _thread.lock", "b": 1}),
    "half of a surrogate pair": ({"a": "\udc80"}, {"a": "\udc80"}),
    "not a number": ({"a": float("nan"), "b": -float("inf")}, {"a": "nan", "b": "-inf"}),
    "arrays": ({"a": np.arange(3), "b": np.zeros(10**6)}, {"a": [0, 1, 2], "b": "array([0., "}),
}


def same(shown: object, expected: object) -> bool:
    """True if the values are equal; a text must only begin with the expected text."""
    if isinstance(expected, dict):
        return shown.keys() == expected.keys() and all(same(shown[k], expected[k]) for k in shown)
    return shown.startswith(expected) if isinstance(expected, str) else shown == expected


@pytest.mark.parametrize("kind", ODD_OPTIONS)
def test_options_that_json_cannot_hold_are_shown(tmp_path, kind):
    options, expected = ODD_OPTIONS[kind]
    instance = replace(INSTANCE, episode=Episode(5, 77, options), last_actions=[options])
    path = fault_reports.write(tmp_path, FAULT, instance, EVERYTHING)
    about = json.loads((tmp_path / path / "fault.json").read_text())
    assert same(about["episode"]["options"], expected)
    assert same(about["last_actions"][0], expected)


def test_options_that_hold_themselves_are_shown_to_some_depth(tmp_path):
    instance = replace(INSTANCE, episode=Episode(5, 77, KNOTTED))
    path = fault_reports.write(tmp_path, FAULT, instance, EVERYTHING)
    assert "{'itself': {...}}" in (tmp_path / path / "fault.json").read_text()


def test_text_that_is_no_text_is_escaped(tmp_path):
    evidence = Evidence("log \udcff\n", "Traceback: \udc80\n")
    path = fault_reports.write(tmp_path, FAULT, INSTANCE, evidence)
    assert (tmp_path / path / "game.log").read_text() == "log \\udcff\n"
    assert (tmp_path / path / "traceback.txt").read_text() == "Traceback: \\udc80\n"


def test_a_file_that_does_not_fit_is_left_out(tmp_path, caplog, limited):
    evidence = Evidence("log line\n", "Traceback: …\n", b"replay" * 10_000)
    with limited("FSIZE", 10_000):
        path = fault_reports.write(tmp_path, FAULT, INSTANCE, evidence)
    left = {file.name for file in Path(path).iterdir()}
    assert left == {"fault.json", "game.log", "traceback.txt"}
    assert "has no last.SC2Replay: [Errno 27]" in caplog.text


@pytest.mark.parametrize("what", ["FSIZE", "NOFILE"])
def test_if_nothing_can_be_written_nothing_stays(tmp_path, caplog, limited, what):
    with limited(what, 0):
        assert fault_reports.write(tmp_path, FAULT, INSTANCE, EVERYTHING) is None
    assert "no fault report" in caplog.text
    assert list(tmp_path.iterdir()) == []


# ---- the folder of replays -----------------------------------------------------------------------


SEAT = "env 3"


def settled(folder: ReplayFolder, seat: str, episode: int, total: float, **fields: Any) -> Any:
    """Let the folder keep or drop an info's replay; returns the replay's path, or None."""
    fields = {"by_number": False, "by_return": False, "data": b"played"} | fields
    replay = PlayedReplay(episode=episode, episode_return=total, **fields)
    info = {"other": 1, REPLAY: replay}
    folder.settle(seat, info)
    assert info.pop("other") == 1
    path = info.pop(REPLAY, None)
    assert info == {}
    return path


def names(directory: Any) -> list[str]:
    """The names of the files in the folder, without the times in them."""
    return sorted(re.sub(r"-\d{8}-\d{6}-", "-", path.name) for path in directory.iterdir())


def test_the_best_of_all_envs_is_best(tmp_path):
    folder = ReplayFolder(ReplayPolicy(tmp_path))
    other = "env 0"
    assert settled(folder, SEAT, 0, 5.0, by_return=True)
    assert settled(folder, other, 1, 5.0, by_return=True) is None, "the best of its player only"
    assert settled(folder, other, 2, -2.5, by_return=True, by_number=True)
    assert settled(folder, other, 3, 6.0, by_return=True, by_number=True)
    assert names(tmp_path) == [
        "best-env0-episode3-return6.SC2Replay",
        "best-env3-episode0-return5.SC2Replay",
        "every-env0-episode2-return-2.5.SC2Replay",
    ]


def test_the_newest_of_each_reason_stay_and_nothing_of_others_goes(tmp_path):
    foreign = tmp_path / "best-20200101-000000-env0-episode0-return1.SC2Replay"
    foreign.touch()
    folder = ReplayFolder(ReplayPolicy(tmp_path, every=1, keep=2))
    for number in range(4):
        settled(folder, SEAT, number, number, by_return=number < 3, by_number=number == 3)
    assert names(tmp_path) == [
        "best-env0-episode0-return1.SC2Replay",
        "best-env3-episode1-return1.SC2Replay",
        "best-env3-episode2-return2.SC2Replay",
        "every-env3-episode3-return3.SC2Replay",
    ]
    assert foreign.exists()


def test_equal_names_do_not_overwrite(tmp_path, monkeypatch):
    """After `seed()`, episodes get the same numbers again, possibly within one second."""
    monkeypatch.setattr("time.strftime", lambda _: "20260101-120000")
    folder = ReplayFolder(ReplayPolicy(tmp_path))
    for _ in range(3):
        settled(folder, SEAT, 0, 1.0, by_number=True)
    name = "every-env3-episode0-return1"
    assert names(tmp_path) == [f"{name}{number}.SC2Replay" for number in ("-2", "-3", "")]


def test_an_info_without_a_replay_stays_as_it_is(tmp_path):
    info = {"own": 1}
    ReplayFolder(ReplayPolicy(tmp_path)).settle(SEAT, info)
    assert info == {"own": 1}


@pytest.mark.parametrize(
    ("faulty", "data", "kept"), [(True, b"x", 1), (False, b"x", 0), (True, b"", 0)]
)
def test_faulty_episodes(tmp_path, faulty, data, kept):
    ReplayFolder(ReplayPolicy(tmp_path, faulty=faulty)).keep_faulty(SEAT, 9, data)
    assert names(tmp_path) == ["faulty-env3-episode9.SC2Replay"] * kept


def test_a_game_that_tells_no_replay_is_a_warning(tmp_path, caplog):
    folder = ReplayFolder(ReplayPolicy(tmp_path))
    with caplog.at_level(logging.WARNING, "sc2pool"):
        assert settled(folder, SEAT, 0, 1.0, by_return=True, data=b"") is None
    assert "env 3: the game sent no replay of episode 0" in caplog.text
    assert names(tmp_path) == []
    assert settled(folder, SEAT, 1, 0.5, by_return=True), "the best of those there are"


def test_a_full_disk_or_a_folder_that_is_gone_is_a_warning(tmp_path, monkeypatch, caplog):
    folder = ReplayFolder(ReplayPolicy(tmp_path))
    full = Mock(side_effect=OSError(28, "No space left on device"))
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "sc2pool"):
        patch.setattr("pathlib.Path.write_bytes", full)
        assert settled(folder, SEAT, 0, 1.0, by_number=True) is None
    assert "No space left" in caplog.text
    assert names(tmp_path) == [], "no part of a file"
    assert settled(folder, SEAT, 1, 1.0, by_number=True)
    shutil.rmtree(tmp_path)
    assert settled(folder, SEAT, 2, 1.0, by_number=True) is None
    assert f"no replay in {tmp_path}" in caplog.text


# ---- statistics at one moment --------------------------------------------------------------------


ROW = InstanceStats("env 0", 4, "playing", 0, 0, 0, 0.0, 1, 2, 3, "proven", None, None)


@pytest.fixture
def now_s(monkeypatch) -> list[float]:
    """The time of the snapshot's clock; a test lets time pass by changing the list's only entry."""
    now_s = [100.0]
    monkeypatch.setattr(snapshot.time, "monotonic", lambda: now_s[0])
    return now_s


def test_rates_come_with_the_second_sample(tmp_path, now_s):
    counters = Counters()
    snapshots = Snapshots(counters, tmp_path)
    snapshots.after_sample([replace(ROW, cpu_s=1.0)])
    assert snapshots.take([ROW], 0.0).steps_per_s is None
    now_s[0] += 2.0
    counters.env_steps = 100
    snapshots.after_sample([replace(ROW, steps=50, cpu_s=2.0)])
    told = snapshots.take([ROW, replace(ROW, instance=5)], 0.25)
    known, new = told.instances
    assert told.steps_per_s == pytest.approx(50)
    assert told.watchdog_cpu_s == 0.25
    assert (known.steps_per_s, known.cpu_share) == (pytest.approx(25), pytest.approx(0.5))
    assert (new.steps_per_s, new.cpu_share) == (None, None)


def test_replacements_belong_to_the_seat(tmp_path):
    counters = Counters()
    counters.count_recycle("env 0", 3, "age")
    (row,) = Snapshots(counters, tmp_path).take([ROW], 0.0).instances
    assert (row.replacements, row.faults) == ({"soft-age": 1}, 0)


def test_each_env_has_its_own_count_of_episodes(tmp_path):
    counters = Counters()
    for seat in ("env 0", "env 1", "env 1"):
        counters.count_episode(seat, 1.0)
    rows = [ROW, replace(ROW, seat="env 1"), replace(ROW, seat="spare 2")]
    told = Snapshots(counters, tmp_path).take(rows, 0.0)
    assert [row.episodes for row in told.instances] == [1, 2, 0]
    assert (told.episodes, told.mean_return) == (3, 1.0)


def test_json_can_hold_it(tmp_path):
    counters = Counters()
    counters.count_launch("env 0", 0, [GameFacts(1, 1, 2, "standin-1", 75689)])
    counters.count_reset("create", 0.5)
    counters.lateness.note(0, Tick(0.1, 0, 0))
    told = Snapshots(counters, tmp_path).take([replace(ROW, episode_steps=3)], 0.1)
    plain = json.loads(json.dumps(told.as_dict()))
    assert (plain["game_version"], plain["base_build"]) == ("standin-1", 75689)
    assert plain["reset_s"]["create"]["max"] == 0.5
    assert plain["realtime"]["gap_s"]["max"] == 0.1
    assert plain["events"][0]["event"] == "launch"
    assert plain["instances"][0]["episode_steps"] == 3
    assert plain == told.as_dict()


def test_the_file_is_written_only_while_it_is_requested(tmp_path):
    live_files.prepare(tmp_path)
    counters = Counters()
    snapshots = Snapshots(counters, tmp_path)
    file = tmp_path / live_files.POOL_FILE
    snapshots.after_sample([ROW])
    assert not file.exists()
    for number in range(EVENTS_IN_FILE + 1):
        counters.count_launch("env 0", number, [])
    live_files.request(tmp_path)
    snapshots.after_sample([ROW])
    seen = live_files.read(file)
    assert len(seen[0]["events"]) == EVENTS_IN_FILE
    assert seen[0]["events"][-1]["instance"] == EVENTS_IN_FILE
    assert set(seen[0]) == set(snapshots.take([ROW], 0.0).as_dict())


def test_who_looks_late_sees_the_whole_curve(tmp_path, now_s, monkeypatch):
    monkeypatch.setattr(statistics.time, "monotonic", lambda: now_s[0])
    live_files.prepare(tmp_path)
    counters = Counters()
    snapshots = Snapshots(counters, tmp_path)
    file = tmp_path / live_files.CURVE_FILE
    for steps, loss in ((0, 3.0), (100, 2.0), (200, 1.0)):
        counters.env_steps = steps
        counters.learner = {"loss": loss}
        snapshots.after_sample([])
        now_s[0] += 1.0
    assert not file.exists()
    live_files.request(tmp_path)
    snapshots.after_sample([])
    seen = live_files.read(file)
    assert seen[0]["steps"] == [0, 100, 200, 200]
    assert seen[0]["figures"]["loss"] == [3.0, 2.0, 1.0, 1.0]
    assert seen[0]["figures"]["steps/s"][1:3] == [100.0, 100.0]
    file.unlink()
    snapshots.after_sample([])
    assert not file.exists(), "it has not changed since"


# ---- live files ----------------------------------------------------------------------------------


def test_files_are_wanted_only_while_they_are_requested(tmp_path):
    assert not live_files.is_requested(tmp_path)
    live_files.prepare(tmp_path)
    assert not live_files.is_requested(tmp_path)
    live_files.request(tmp_path)
    assert live_files.is_requested(tmp_path)
    before_s = (tmp_path / "requested").stat().st_mtime - live_files.FRESH_FOR_S - 0.1
    os.utime(tmp_path / "requested", (before_s, before_s))
    assert not live_files.is_requested(tmp_path)


def test_a_request_makes_no_file(tmp_path):
    """A request in a folder that does not exist fails: the trainer may just have deleted it."""
    with pytest.raises(FileNotFoundError):
        live_files.request(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_written_data_are_read(tmp_path):
    live_files.write(tmp_path / "pool.json", {"steps": 1, "state": "playing"})
    seen = live_files.read(tmp_path / "pool.json")
    data, age_s = seen
    assert data == {"steps": 1, "state": "playing"}
    assert 0 <= age_s < 10
    assert [path.name for path in tmp_path.iterdir()] == ["pool.json"]


@pytest.mark.parametrize("data", [{"return": math.nan}, {"return": math.inf}, {(1, 2): 3}])
def test_values_that_json_cannot_hold_leave_the_file_as_it_was(tmp_path, data):
    live_files.write(tmp_path / "pool.json", {"steps": 1})
    live_files.write(tmp_path / "pool.json", data)
    seen = live_files.read(tmp_path / "pool.json")
    assert seen[0] == {"steps": 1}


def test_a_folder_that_is_gone_is_no_fault(tmp_path):
    live_files.prepare(tmp_path / "gone")
    live_files.write(tmp_path / "gone" / "pool.json", {"steps": 1})
    assert live_files.read(tmp_path / "gone" / "pool.json") is None
    assert list(tmp_path.iterdir()) == []


def test_garbage_is_nothing(tmp_path):
    for garbage in (b"", b"{", b"\xff\xfe", b"[1, 2]"):
        (tmp_path / "pool.json").write_bytes(garbage)
        assert live_files.read(tmp_path / "pool.json") is None


def test_no_reader_sees_half_of_it(tmp_path):
    file = tmp_path / "pool.json"
    whole = [{"all": [number] * 5000} for number in range(2)]
    live_files.write(file, whole[0])
    seen = 0
    with meanwhile(lambda turn: live_files.write(file, whole[turn % 2])):
        while seen < 300:
            with suppress(PermissionError):  # Windows cannot open a file while it is replaced
                assert json.loads(file.read_text()) in whole
                seen += 1


# ---- hooks that do not return --------------------------------------------------------------------


def test_a_hook_is_noted_from_the_second_look_until_it_returns(tmp_path):
    def instance(hook: Callable[[], None]) -> None:
        hook()

    watch = HookWatch(lambda frame: tmp_path if frame.f_code is instance.__code__ else None)

    def hook() -> None:
        watch._look()
        assert stuck_hooks.read(tmp_path) is None, "it may just have begun"
        watch._look()
        stuck = stuck_hooks.read(tmp_path)
        assert stuck.name == "hook()"
        assert stuck.place.startswith(f"{__file__}, line ")
        assert "watch._look()" in stuck.stack

    instance(hook)
    assert stuck_hooks.read(tmp_path) is not None, "nobody has looked since"
    watch._look()
    assert stuck_hooks.read(tmp_path) is None
    instance(hook)


# ---- the server on the loopback address ----------------------------------------------------------


OWN = "127.0.0.1 127.0.0.1:9464 localhost LocalHost:80 [::1] [::1]:9464 ::1".split()
OTHERS = "evil.example evil.example:9464 127.0.0.1.evil.example localhost.evil.example".split()
OTHERS += ["", *"0.0.0.0 192.168.0.1:9464 [fe80::1]:9464 @127.0.0.1 a:b:c".split()]


@pytest.mark.parametrize("host", OWN + OTHERS)
def test_its_names(host: str) -> None:
    assert names_loopback(host) == (host in OWN)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """Runs a server with this handler until the block ends; yields the server's port."""
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
        with suppress(ConnectionResetError):  # perhaps the connection is not accepted yet
            assert one.recv(1) == b""
