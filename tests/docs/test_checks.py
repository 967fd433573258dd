"""The workflow and the pre-commit hooks run the checks of `scripts/lint` and `scripts/test`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="mkdocs, which brings it, is not installed")

ROOT = Path(__file__).parents[2]


def load(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text())


def test_the_workflow_runs_the_scripts() -> None:
    jobs = load(".github/workflows/ci.yml")["jobs"]
    runs = {name: job["steps"][-1]["run"] for name, job in jobs.items()}
    assert runs == {
        "lint": "./scripts/lint --all",
        "fast": "./scripts/test",
        "all": "bash .ci/run",
        "portable": "./scripts/test",
        "wine": "./scripts/test --windows",
        "windows": "python -m pytest --tier=windows",
        "macos": "./scripts/test",
    }
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == "exec ./scripts/test --all"


def test_the_quick_tests_run_on_every_supported_python() -> None:
    job = load(".github/workflows/ci.yml")["jobs"]["fast"]
    assert job["steps"][-1]["env"] == {"PYTHON": "python${{ matrix.python }}"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    low, high = (part.lstrip(">=<") for part in project["requires-python"].split(","))
    minors = range(int(low.split(".")[1]), int(high.split(".")[1]))
    assert job["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in minors]


def test_the_hooks_are_the_checks_of_scripts_lint() -> None:
    (repo,) = load(".pre-commit-config.yaml")["repos"]
    hooks = [hook["entry"].removeprefix(".venv/bin/") for hook in repo["hooks"]]
    script = (ROOT / "scripts" / "lint").read_text().splitlines()
    checks = script[script.index("PATH=$venv/bin:$PATH") + 1 :]
    assert hooks == checks[: len(hooks)]
    assert "--all" in checks[len(hooks)]
