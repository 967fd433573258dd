"""Plays pysc2 4.0.0, as it is published, on the stand-in: its own game tests, and its agents.

`python tests/peers/run_pysc2.py tests [MODULE ...]` runs pysc2's game tests (by default all).
`python tests/peers/run_pysc2.py scores [--episodes 20]` plays pysc2's scripted agents, which use
feature layers.

Both commands take `--environment DIR`, the virtual environment of pysc2 (default: .venv/pysc2). If
the environment does not exist, it is made with `--python`, by default Python 3.10 if the machine
has one. Python 3.11 and later refuse the second argument with which pysc2 calls `random.shuffle`;
the environment's `sitecustomize.py` accepts it. The code of pysc2 is not changed.

The exit code of `tests` is the number of tests that failed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sc2standin.install import install
from tests.peers.clients import ENVIRONMENTS, default_python, prepare, run_to_end

PACKAGES = Path(__file__).with_name("pysc2-requirements.txt")
PLAY = Path(__file__).parent / "programs" / "play_pysc2.py"
MODULES = [
    *("ping", "protocol_error", "versions", "general_actions", "debug", "observer"),
    *("render", "easy_scripted", "step_mul_override", "obs_spec", "random_agent"),
    *("replay_obs", "multi_player", "multi_player_env", "host_remote_agent", "actions", "obs"),
]
"""The test modules of `pysc2.tests` that start a game; they have 41 tests."""
TIMEOUT_S = 300
"""Limit in seconds for the tests of one module, and for the episodes of one agent."""
SITECUSTOMIZE = '''\
"""pysc2 4.0.0 calls random.shuffle as it was before Python 3.11."""

import random

_shuffle = random.shuffle


def shuffle(x, random=None):
    """Shuffle, also with the function that Python 3.10 took."""
    if random is None:
        return _shuffle(x)
    for i in reversed(range(1, len(x))):
        j = int(random() * (i + 1))
        x[i], x[j] = x[j], x[i]


random.shuffle = shuffle
'''
AGENTS = ("MoveToBeacon", "CollectMineralShards", "DefeatRoaches")


def main() -> int:
    options = parse_arguments()
    python = prepare(options.environment, options.python, PACKAGES, customize=SITECUSTOMIZE)
    with tempfile.TemporaryDirectory(prefix="sc2pool-pysc2-") as folder:
        game = Path(folder) / "game"
        install(game)
        if options.what == "scores":
            return scores(python, game, options.episodes)
        return tests(python, game, Path(folder), options.modules or MODULES)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("tests", "scores"))
    parser.add_argument("modules", nargs="*", help=", ".join(MODULES))
    parser.add_argument("--environment", type=Path, default=ENVIRONMENTS / "pysc2")
    parser.add_argument("--python", default=default_python(), help="makes the environment")
    parser.add_argument("--episodes", type=int, default=20, help="per agent")
    return parser.parse_intermixed_args()


def tests(python: Path, game: Path, folder: Path, modules: Sequence[str]) -> int:
    """Run the modules; prints a line for each test, with the reason if it failed."""
    passed = failed = 0
    for module in modules:
        report = folder / f"{module}.xml"
        program = [python, "-m", f"pysc2.tests.{module}_test", f"--xml_output_file={report}"]
        ran = run_to_end(program, game, TIMEOUT_S)
        without = f"{ran.problem or 'no report'}: {ran.output[-300:]}"
        results = outcomes(report) or {"all": without}
        for name, problem in sorted(results.items()):
            passed, failed = passed + (not problem), failed + bool(problem)
            print(f"{'FAILED' if problem else 'passed'}  {module}_test  {name}", flush=True)
            if problem:
                print(f"        {problem}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed


def outcomes(report: Path) -> dict[str, str]:
    """For each test in a report, the last line of the test's error, or "" if the test passed."""
    if not report.exists():
        return {}
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        problems = [*case.findall("failure"), *case.findall("error")]
        lines = [(one.text or one.get("message") or "?").strip() for one in problems]
        found[case.get("name", "?")] = lines[0].splitlines()[-1][:300] if lines else ""
    return found


def scores(python: Path, game: Path, episodes: int) -> int:
    """Let each agent play; prints the mean and the range of its scores."""
    for name in AGENTS:
        ran = run_to_end([python, PLAY, name, str(episodes)], game, TIMEOUT_S)
        if ran.problem:
            raise RuntimeError(f"{name}: {ran.problem}: {ran.output[-1000:]}")
        got = json.loads(ran.output.strip().splitlines()[-1])
        print(f"{name}: {mean(got):.1f} ({min(got)}–{max(got)}) in {len(got)} episodes", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
