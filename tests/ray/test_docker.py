"""The files in `docker/` name existing files and extras, and `node` plays without containers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.ray.conftest import only_long
from tests.support.on_ray import environment_for_ray
from tests.support.programs import run

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
NODE = DOCKER / "node"
PORT = 26379

yaml = pytest.importorskip("yaml", reason="it comes with sc2pool[train]")
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((DOCKER / "compose.yml").read_text())


def test_there_are_a_head_and_two_workers(compose: Any) -> None:
    services = compose["services"]
    assert services["head"]["command"] == "head"
    assert services["worker"]["command"] == "worker"
    assert services["worker"]["deploy"]["replicas"] == 2
    assert (ROOT / services["head"]["build"]["dockerfile"]).is_file()
    assert (DOCKER / services["head"]["build"]["context"]).resolve() == ROOT


def test_every_node_has_the_game_the_token_and_no_open_port(compose: Any) -> None:
    for service in compose["services"].values():
        assert "${SC2PATH:-./no-game}:/StarCraftII:ro" in service["volumes"]
        assert service["environment"]["RAY_AUTH_MODE"] == "token"
        assert service["environment"]["RAY_AUTH_TOKEN"].startswith("${RAY_AUTH_TOKEN:?")
        assert "ports" not in service


def test_the_image_is_made_of_what_is_there() -> None:
    dockerfile = (DOCKER / "Dockerfile").read_text()
    for name in ("constraints.txt", "constraints-ray.txt", "docker/node"):
        assert name in dockerfile
        assert (ROOT / name).is_file()
    extras = re.search(r"\.whl\)\[([\w,]+)\]", dockerfile)
    assert extras is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])
    python = re.search(r"FROM python:3\.(\d+)", dockerfile)
    assert python is not None
    assert f"Python :: 3.{python[1]}" in " ".join(project["classifiers"])


@pytest.mark.parametrize("arguments", [[], ["both"]])
def test_a_node_is_a_head_or_a_worker(arguments: list[str]) -> None:
    done = run(NODE, *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("node: expected head or worker, got ")


@pytest.fixture
def nodes() -> Iterator[ExitStack]:
    """A fixture: a stack of callbacks, which end the nodes of a test."""
    with ExitStack() as stack:
        yield stack


@only_long
def test_a_head_and_a_worker_play(
    python_with_ray: str, standin_dir: Path, wait_for: Callable[..., None], nodes: ExitStack
) -> None:
    environment = nodes.enter_context(environment_for_ray())
    folder = Path(environment["HOME"])
    environment |= {
        "PATH": f"{Path(python_with_ray).parent}{os.pathsep}{os.environ['PATH']}",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": "0123456789abcdef" * 4,
        "HEAD": "127.0.0.1",
        "PORT": str(PORT),
        "GAMES": "1",
        "GAME": str(standin_dir),
    }

    def start(role: str) -> subprocess.Popen[bytes]:
        log = (folder / f"{role}.log").open("wb")
        return subprocess.Popen(
            [NODE, role], env=environment, stdout=log, stderr=log, start_new_session=True
        )

    for role in ("worker", "head"):  # the worker waits for the head
        nodes.callback(end, start(role))
    command = [python_with_ray, "-m", "sc2pool", "train", "--ray", f"127.0.0.1:{PORT}", "--n=2"]
    wait_for(lambda: nodes_of(folder) == 2)
    done = run(*command, "--steps=128", f"--out={folder}/run", env=environment, cwd=folder)
    logs = "".join((folder / f"{role}.log").read_text() for role in ("head", "worker"))
    assert done.returncode == 0, done.stderr + logs
    assert "saved after " in done.stdout
    environment["RAY_AUTH_TOKEN"] = "f" * 64
    stranger = run(*command, f"--out={folder}/other", env=environment, cwd=folder)
    assert stranger.returncode == 2, stranger.stderr
    assert "no Ray cluster at" in stranger.stderr


def nodes_of(folder: Path) -> int:
    """The number of nodes that have started, by their logs."""
    return sum(
        "Ray runtime started" in log.read_text(errors="replace") for log in folder.glob("*.log")
    )


def end(node: subprocess.Popen[bytes]) -> None:
    """End a node like `docker stop`: send SIGTERM, then SIGKILL to the processes that are left."""
    below = psutil.Process(node.pid).children(recursive=True) if node.poll() is None else []
    node.send_signal(signal.SIGTERM)
    try:
        node.wait(20)
    except subprocess.TimeoutExpired:
        node.kill()
        node.wait()
    for process in below:
        if process.is_running():
            process.kill()
    psutil.wait_procs(below, 10)
