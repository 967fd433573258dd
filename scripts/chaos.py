"""Attack pools in all known ways, drawn from a seed, and report wrong results, hangs and leftovers.

Usage:
    python scripts/chaos.py run --minutes 60 --n 8 --seed 1 --report chaos.json
    .venv/ray/bin/python scripts/chaos.py run --ray    # Plays games on a Ray cluster.
    python scripts/chaos.py shrink chaos.json          # Finds each round's shortest failing part.
    python scripts/chaos.py interrupts --count 2000    # Interrupts one session at random instants.
    python scripts/chaos.py kills --count 200          # Kills trainers at random instants.

Each round makes a pool through one of the adapters, plays it under a list of attacks, and closes
it. `tests.support.audit.checker` checks the transitions. A round that fails is printed as JSON and
written to the report, from which the commands `shrink` and `run --rounds-from` read it. The exit
status is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

sys.path.insert(0, str(Path(__file__).parent))

from chaos.adapters import ADAPTERS
from chaos.attacks import ATTACKS, clock
from chaos.attacks.resources import CGROUP, DISK
from chaos.kills import kill_trainers
from chaos.rounds import MEAN_STRIKES, Round, Strike, shrink

from sc2standin.install import install
from tests.support.audit.measures import growth_of

PROGRAM = Path(__file__).parent / "chaos" / "program.py"
PIDS = Path("/sys/fs/cgroup/pids")
GROWTH_BYTES = 32_000_000
"""The largest allowed growth of the trainer's memory in bytes, however long the run lasts."""
ANY_NUMBER = 1_000_000_000

Line = dict[str, Any]


def played(orders: dict[str, Any]) -> Iterator[Line]:
    """Run `chaos/program.py` in a folder, a mount namespace and a control group of its own.

    Yields:
        The lines that the program prints. The event of the last line is "ended", or "died" with the
        end of the program's stderr.
    """
    with folder() as root, own_group(root.name) as group, (root / "stderr").open("w+") as errors:
        process = start(root, group, errors)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(orders))
            process.stdin.close()
            ended = False
            for text in process.stdout:
                if not text.startswith('{"event"'):
                    print(text, end="", flush=True)
                    continue
                line = json.loads(text)
                ended = ended or line["event"] == "ended"
                yield line
        finally:
            process.stdout.close()
            process.kill()  # the program must not outlive this process
            status = process.wait()
        if not ended:
            errors.seek(0)
            yield {"event": "died", "status": status, "errors": errors.read()[-20_000:]}


@contextmanager
def folder() -> Iterator[Path]:
    """The folder for all files of a run; deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="sc2pool-chaos-", ignore_cleanup_errors=True) as root:
        yield Path(root)


def start(root: Path, group: Path | None, errors: TextIO) -> subprocess.Popen[str]:
    """Start the program, if possible with its own clock, mount namespace and control group."""
    environment = os.environ | clock.environment(root)
    command = [sys.executable, str(PROGRAM), str(root)]
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0:
        environment[DISK] = "1"
        command = ["unshare", "-m", *command]
    if group is not None:
        environment[CGROUP] = str(group)
        command = ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(group), *command]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=environment,
        text=True,
    )


@contextmanager
def own_group(name: str) -> Iterator[Path | None]:
    """A control group that limits processes, deleted at the end; None without root's rights."""
    group = PIDS / name
    try:
        group.mkdir()
    except OSError:
        yield None
        return
    try:
        yield group
    finally:
        for _ in range(100):
            with suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


class Run:
    """The results of a run so far."""

    def __init__(self) -> None:
        self.attacks: Counter[str] = Counter()
        self.adapters: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.transitions = 0
        self.wrong = 0
        self.stuck = 0
        self.left = 0
        self.failed: list[dict[str, Any]] = []
        self.skipped: list[str] = []
        self.samples: list[list[dict[str, int]]] = []
        self.next = 0
        self.round: dict[str, Any] = {}

    def take(self, line: Line) -> None:
        """Count one line of the program's output."""
        match line["event"]:
            case "prepared":
                self.samples.append([])
                self.skipped = line["skipped"]
            case "begins":
                self.round = line["round"]
                self.next = line["number"] + 1
                self.adapters[line["round"]["adapter"]] += 1
            case "played":
                result = line["result"]
                self.attacks.update(result["attacks"])
                self.counts.update(result["counts"])
                self.transitions += result["transitions"]
                self.wrong += len(result["problems"])
                self.left += len(result["left"])
                self.samples[-1].append(line["sample"])
                if result["problems"] or result["left"]:
                    self._fail(problems=result["problems"], left=result["left"])
            case "died":
                self.stuck += 1
                self._fail(died=line["errors"], status=line["status"])

    def _fail(self, **how: Any) -> None:
        self.failed.append({"round": self.round, **how})
        print(json.dumps(self.failed[-1], indent=1)[:6000], flush=True)

    def growth(self, what: str) -> int:
        """The largest growth of the figure with this name in one process of the program."""
        return max(
            (growth_of([one[what] for one in life])[2] for life in self.samples if len(life) >= 5),
            default=0,
        )

    @property
    def passed(self) -> bool:
        flat = self.growth("rss_bytes") <= GROWTH_BYTES and self.growth("descriptors") <= 0
        return not self.failed and flat

    def __str__(self) -> str:
        kinds: Counter[str] = Counter()
        for name, count in self.attacks.items():
            kinds[ATTACKS[name].kind] += count
        by_kind = ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common())
        return (
            f"{kinds.total():,} attacks ({by_kind}) in {self.adapters.total():,} rounds"
            f" on {len(self.adapters)} adapters; {self.transitions:,} transitions checked;"
            f" {self.wrong} wrong, {self.stuck} stuck, {self.left} left;"
            f" memory {self.growth('rss_bytes') / 1e6:+.1f} MB,"
            f" descriptors {self.growth('descriptors'):+d}, threads {self.growth('threads'):+d}"
            + (f"; not possible here: {', '.join(self.skipped)}" if self.skipped else "")
        )

    def figures(self) -> dict[str, Any]:
        """All results of the run as plain data for JSON."""
        plain = ("transitions", "wrong", "stuck", "left", "failed", "skipped", "samples")
        return {
            "summary": str(self),
            "attacks": dict(self.attacks.most_common()),
            "adapters": dict(self.adapters),
            "counts": dict(self.counts.most_common()),
            **{name: getattr(self, name) for name in plain},
        }


def run(options: argparse.Namespace) -> int:
    """Play rounds; if the program dies in a round, start it again with the next round."""
    seen = Run()
    end_s = time.monotonic() + 60.0 * options.minutes
    given = rounds_in(options.rounds_from) if options.rounds_from else []
    rounds = len(given) or options.rounds
    while seen.next < rounds and time.monotonic() < end_s:
        names = ("seed", "n", "strikes", "ray", "only", "temper")
        orders = {name: getattr(options, name) for name in names} | {
            "minutes": (end_s - time.monotonic()) / 60.0,
            "first": seen.next,
            "rounds": rounds - seen.next,
            "given": given[seen.next :],
        }
        before = seen.next
        for line in played(orders):
            seen.take(line)
            if line["event"] == "played":
                took_s, adapter = line["result"]["took_s"], seen.round["adapter"]
                print(f"{seen.next:5}  {took_s:6.1f} s  {adapter:40}  {seen}", flush=True)
        if seen.next == before:
            break  # the program has begun no round, so another start would be useless
    write(options, {"passed": seen.passed, **seen.figures()})
    print(("passed: " if seen.passed else "FAILED: ") + str(seen))
    return 0 if seen.passed else 1


def rounds_in(report: Path) -> list[dict[str, Any]]:
    """The failed rounds of a report."""
    return [failed["round"] for failed in json.loads(report.read_text())["failed"]]


def shrink_all(options: argparse.Namespace) -> int:
    """Print the shortest failing part of each failed round."""
    for data in rounds_in(options.report):
        whole = Round.of(data)

        def fails(strikes: Sequence[Strike], whole: Round = whole) -> bool:
            part = whole.with_strikes(strikes)
            orders = {"minutes": 60.0, "first": 0, "given": [part.as_dict()], "rounds": 1}
            orders["ray"] = ADAPTERS[part.adapter].on_nodes
            seen = Run()
            for line in played({"seed": 0, "n": part.n, "strikes": 0, **orders}):
                seen.take(line)
            print(f"{len(strikes)} attacks: {'fails' if seen.failed else 'passes'}", flush=True)
            return bool(seen.failed)

        if not any(fails(whole.strikes) for _ in range(options.repeat)):
            print(f"passes now, {options.repeat} times: {whole.adapter}")
            continue
        shortest = whole.with_strikes(shrink(whole.strikes, fails, options.repeat))
        print(f"shortest list that fails: {json.dumps(shortest.as_dict(), indent=1)}")
    return 0


def interrupts(options: argparse.Namespace) -> int:
    """Interrupt one session many times; returns 0 if no problem was found."""
    wanted = {name: getattr(options, name) for name in ("count", "adapter", "n", "spares", "seed")}
    result: dict[str, Any] = {"problems": ["the session died"]}
    for line in played({"interrupts": wanted}):
        if line["event"] == "interrupted":
            result = line["result"]
        elif line["event"] == "died":
            print(line["errors"])
    write(options, result)
    counts, problems = result.get("counts", {}), len(result["problems"])
    said = ", ".join(f"{what} {count:,}" for what, count in counts.items())
    print(f"{'FAILED' if problems else 'passed'}: {problems} problems; {said}")
    return 1 if problems else 0


def kills(options: argparse.Namespace) -> int:
    """Kill trainers; returns 0 if each trainer's processes ended within two seconds."""
    with folder() as root:
        (root / "temp").mkdir()
        os.environ["TMPDIR"] = str(root / "temp")
        install(root / "standin")
        figures = kill_trainers(options.count, options.n, options.seed, root / "standin")
    write(options, figures)
    stages = ", ".join(f"{stage} {count}" for stage, count in figures["killed"].items())
    passed = not figures["left"]
    print(f"{'passed' if passed else 'FAILED'}: trainers killed: {stages}; left: {figures['left']}")
    return 0 if passed else 1


def write(options: argparse.Namespace, figures: dict[str, Any]) -> None:
    """Write the report if the options name a file for it."""
    if options.report:
        given = {name: value for name, value in vars(options).items() if name != "act"}
        text = json.dumps({"options": given, **figures}, indent=1, default=str)
        options.report.write_text(text + "\n")


def part_of_a_name(text: str) -> str:
    """Return the text if it is part of an adapter's name; raise argparse's error for other text."""
    if not any(text in name for name in ADAPTERS):
        raise argparse.ArgumentTypeError(
            f"no adapter has {text!r} in its name: {', '.join(ADAPTERS)}"
        )
    return text


def parse() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("run", help="rounds of attacks, drawn from a seed")
    command.set_defaults(act=run)
    command.add_argument("--minutes", type=float, default=60.0)
    command.add_argument("--rounds", type=int, default=ANY_NUMBER)
    command.add_argument(
        "--strikes", type=float, default=MEAN_STRIKES, help="per round, on average"
    )
    command.add_argument("--ray", action="store_true", help="on a cluster of two nodes")
    command.add_argument("--temper", default="", help="the games' tempers, see sc2standin install")
    command.add_argument(
        "--only", default="", type=part_of_a_name, help="adapters with this in their names: matches"
    )
    command.add_argument("--rounds-from", type=Path, help="play the failed rounds of this report")
    command = commands.add_parser("shrink", help="the shortest failing lists of a report")
    command.set_defaults(act=shrink_all)
    command.add_argument("report", type=Path)
    command.add_argument("--repeat", type=int, default=3, help="tries of each list")
    command = commands.add_parser("interrupts", help="Ctrl-C at random instants in one session")
    command.set_defaults(act=interrupts)
    command.add_argument("--count", type=int, default=2000)
    command.add_argument("--adapter", default="sb3")
    command.add_argument("--spares", type=int, default=1)
    command = commands.add_parser("kills", help="trainers killed at random instants")
    command.set_defaults(act=kills)
    command.add_argument("--count", type=int, default=200)
    for name, n in (("run", 8), ("interrupts", 2), ("kills", 2)):
        command = commands.choices[name]
        command.add_argument("--n", type=int, default=n)
        command.add_argument("--seed", type=int, default=0)
        command.add_argument("--report", type=Path, help="write all figures to this JSON file")
    return parser.parse_args()


def main() -> int:
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return options.act(options)  # type: ignore[no-any-return]


if __name__ == "__main__":
    sys.exit(main())
