"""`SC2ParallelEnv` with PettingZoo and RLlib, where these are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.on_ray import environment_for_ray

TIMEOUT_S = 500.0


@pytest.mark.timeout(TIMEOUT_S + 30)
def test_rllibs_wrapper_takes_it_and_ppo_learns(python_with_ray: str, standin_dir: Path) -> None:
    asked = [python_with_ray, "-c", "import pettingzoo"]
    if subprocess.run(asked, capture_output=True, check=False).returncode != 0:
        pytest.skip("PettingZoo is not installed beside RLlib; ./scripts/test --all installs it")
    with environment_for_ray() as environment:
        done = subprocess.run(
            [python_with_ray, Path(__file__).parent / "programs" / "rllib_parallel.py"],
            cwd=environment["HOME"],
            env=environment | {"SC2PATH": str(standin_dir)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-3000:]
    assert {"played", "learned"} <= set(done.stdout.splitlines())
