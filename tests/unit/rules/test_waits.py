"""No wait lasts for ever: each call that has no limit of its own stands here, with what ends it."""

from __future__ import annotations

import ast
from pathlib import Path

import sc2pool

PACKAGE = Path(sc2pool.__file__).parent
WITHOUT_ARGUMENTS = {"get", "wait", "join", "result", "acquire", "communicate", "accept"}
"""Methods that wait for ever if they are called with nothing; with something, most are others."""
ALWAYS = {
    "ray.get",
    "ray.wait",
    "select.select",
    "poll.poll",
    "asyncio.wait",
    "asyncio.gather",
    "Socket.recv",
}
"""Functions that wait for ever unless they get a `timeout`, or the socket has one."""

KILLED = "its process has been killed"
DONE = "the task is done: its result is read"
BY_TRAINER = "in a worker: the trainer's deadlines end it with its worker"
BY_GAME = "on a game: each request has a deadline, and the game's end ends it"
BY_REQUESTS = "each request and launch in it has a limit"
ITS_THREAD = "in a thread that has nothing else to do and ends with the process"
ALLOWED = {
    ("cli/doctor/ends.py", "asyncio.gather"): "its tasks are cancelled",
    ("cli/doctor/lab.py", "_came.get"): "within a time limit",
    ("cli/doctor/lab.py", "asyncio.gather"): BY_REQUESTS,
    ("cli/doctor/lab.py", "asyncio.wait"): "its tasks are cancelled",
    ("cli/doctor/launches.py", "asyncio.gather"): BY_REQUESTS,
    ("cli/doctor/machine.py", "PortLease.acquire"): "no lock: it takes what is free, or raises",
    ("game/program/launch.py", "opening.result"): DONE,
    ("game/program/launch.py", "asyncio.wait"): "a cancelled task, whose socket is closed",
    ("game/match.py", "asyncio.wait"): BY_GAME,
    ("game/match.py", "task.result"): DONE,
    ("pool/ipc/channel.py", "Socket.recv"): "there is something to read, or it does not block",
    ("pool/runtime.py", "opened.result"): "what is done there is bounded by itself",
    ("pool/report/metrics.py", "_thread.join"): "its server was shut down",
    ("pool/report/metrics.py", "ending.join"): "it shuts the server down, twice a second at least",
    ("pool/report/window.py", "_child.wait"): KILLED,
    ("pool/runtime.py", "ending.result"): "what `close` does is bounded, each part by itself",
    ("pool/serial.py", "asyncio.gather"): "the loop is run for a limited time",
    ("pool/worker/doorbells.py", "_block.wait"): BY_TRAINER,
    ("pool/worker/hosted_instance.py", "asyncio.wait"): BY_TRAINER,
    ("pool/worker/hosted_instance.py", "task.result"): DONE,
    ("pool/worker/worker.py", "_ordered.wait"): BY_TRAINER,
    ("processes/exit.py", "child.wait"): ITS_THREAD,
    ("processes/guard.py", "_process.wait"): KILLED,
    ("processes/spawn.py", "child.wait"): KILLED,
    ("processes/uninterrupted.py", "_work.get"): ITS_THREAD,
    ("processes/uninterrupted.py", "submit.result"): "what is done there is bounded by itself",
    ("processes/with_parent.py", "poll.poll"): ITS_THREAD,
    ("ray/cluster.py", "Socket.recv"): "the connection has a timeout",
    ("realtime/async_ppo/actor.py", "_thread.join"): "it ends after its step, which has a deadline",
    ("realtime/async_ppo/update_process.py", "_process.wait"): KILLED,
    ("players/bot_sides.py", "asyncio.wait"): BY_TRAINER,
    ("players/bot_sides.py", "turn.result"): DONE,
    ("players/sides.py", "_running.result"): DONE,
    ("players/sides.py", "_turn.acquire"): BY_TRAINER,
    ("players/sides.py", "task.result"): "no wait: how the game went for a player",
    ("players/sc2_player.py", "task.result"): "no wait: how the game went for a player",
}


def name_of(node: ast.expr) -> str:
    """The last name of an expression: of `self._thread` and of `_thread` the same."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case ast.Call(func=function):
            return name_of(function)
    return "?"


def waits_in(source: str) -> set[str]:
    """The calls in a file that wait without a limit, as `owner.method`."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner, method = name_of(node.func.value), node.func.attr
        if "socket" in owner or owner == "connection":
            owner = "Socket"
        limited = any("timeout" in (keyword.arg or "") for keyword in node.keywords) or (
            method == "select" and len(node.args) == 4
        )
        limited |= method == "poll" and len(node.args) == 1
        waits = f"{owner}.{method}" in ALWAYS or (method in WITHOUT_ARGUMENTS and not node.args)
        if waits and not limited:
            found.add(f"{owner}.{method}")
    return found


def test_what_is_found():
    source = """
thread.join(); "".join(names); queue.get(); queue.get(timeout=1.0); mapping.get("key")
ray.get(reference); ray.get(reference, timeout=3); self._socket.recv(100); submit(work).result()
select.select(ends, [], []); select.select(ends, [], [], 1.0); process.wait(5.0)
poll.poll(); poll.poll(0)
"""
    assert waits_in(source) == {
        "thread.join",
        "queue.get",
        "ray.get",
        "Socket.recv",
        "submit.result",
        "select.select",
        "poll.poll",
    }


def test_every_wait_has_an_end():
    """And every exception is still needed."""
    found = {
        (file.relative_to(PACKAGE).as_posix(), wait)
        for file in PACKAGE.rglob("*.py")
        for wait in waits_in(file.read_text())
    }
    assert found == set(ALLOWED)
