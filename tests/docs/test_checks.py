"""The workflow and the pre-commit hooks run the checks that `.ci/run` and `scripts/test` run."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="mkdocs, which brings it, is not installed")

ROOT = Path(__file__).parents[2]


def load(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text())


def test_the_workflow_runs_ci_on_every_supported_python() -> None:
    job = load(".github/workflows/ci.yml")["jobs"]["test"]
    *_, last = job["steps"]
    assert last["run"] == "bash .ci/run"
    assert last["env"] == {"PYTHON": "python${{ matrix.python }}"}
    assert (ROOT / ".ci" / "run").is_file()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    low, high = (part.lstrip(">=<") for part in project["requires-python"].split(","))
    minors = range(int(low.split(".")[1]), int(high.split(".")[1]))
    assert job["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in minors]


def test_the_hooks_are_the_checks_of_scripts_test() -> None:
    (repo,) = load(".pre-commit-config.yaml")["repos"]
    hooks = [hook["entry"].removeprefix(".venv/bin/") for hook in repo["hooks"]]
    script = (ROOT / "scripts" / "test").read_text().splitlines()
    checks = script[script.index("PATH=$venv/bin:$PATH") + 1 :]
    assert hooks == checks[: len(hooks)]
    assert checks[len(hooks)].startswith("#")
