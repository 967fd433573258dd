"""Commands that end at a change of their files: nothing is lost, doubled or torn.

A command runs once undisturbed, and its changes are logged. Then it runs again for each chosen
change: there the command is killed, or killed within the write, or the disk is full from there on.
The test checks the files, lets the second part of the command run, and checks the files again.
"""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.crashes.commands import (
    Command,
    Examining,
    Installing,
    Measuring,
    Playing,
    Recording,
    SelfPlay,
    Training,
    Tuning,
)
from tests.crashes.conftest import FILL, KILL, NOTHING, TEAR, Ended, Run

LASTING: list[type[Command]] = [Training, SelfPlay, Recording, Tuning]
COMMANDS = [*LASTING, Playing, Measuring, Examining, Installing]
ACTIONS = {"killed": KILL, "killed within": TEAR, "full": FILL}
MOST_OTHERS = 16
"""Changes other than renames that a test tries; a seed draws them."""
YEAR_S = 365 * 86_400
pytestmark = pytest.mark.timeout(3600)

New = Callable[[type[Command]], Command]


@pytest.fixture
def new(tmp_path: Path, standin_dir: Path) -> New:
    """A command with an empty folder."""

    def make(kind: type[Command]) -> Command:
        folder = tmp_path / "files"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return kind(folder, standin_dir)

    return make


def play(
    run: Run, command: Command, *, action: int = NOTHING, change: int = 0, clock_s: int = 0
) -> Ended:
    """Run the first part, and check its files.

    Raises:
        AssertionError: the message begins with the kind of the damage.
    """
    ended = run_part(run, command, command.begin(), action=action, change=change, clock_s=clock_s)
    if action == FILL:
        assert ended.status >= 0, f"odd: {ended}"
    else:  # a part may have fewer changes than the undisturbed one
        killed = [] if action == NOTHING else [-signal.SIGKILL]
        assert ended.status in (*command.statuses, *killed), f"odd: {ended}"
    check(command, lambda: command.check(ended))
    return ended


def play_on(run: Run, command: Command, *, all_figures: bool = True, clock_s: int = 0) -> None:
    """Run the second part, and check its files; raises as `play` does."""
    arguments: list[object] = []
    check(command, lambda: arguments.extend(command.resume()))
    ended = run_part(run, command, arguments, clock_s=clock_s)
    assert ended.status in command.statuses, f"stuck: {ended}"
    check(command, lambda: command.check(ended))
    check(command, lambda: command.check_resumed(all_figures=all_figures))


def run_part(run: Run, command: Command, arguments: list[object], **how: int) -> Ended:
    more = {"environment": command.environment, "program": command.program}
    ended = run(command.folder, arguments, **more, **how)
    assert "Traceback" not in ended.complaints, f"odd: {ended.complaints}"
    return ended


def check(command: Command, checks: Callable[[], None]) -> None:
    """Call a check; an error of another kind than AssertionError is of a torn file."""
    try:
        checks()
    except AssertionError:
        raise
    except Exception as error:
        files = sorted(path.name for path in command.folder.rglob("*"))
        raise AssertionError(f"torn: {error!r}, of {files}") from error


def instants(changes: list[str], action: int) -> list[int]:
    """The numbers of the changes to try: all renames to kill at, and a drawn sample of the others.

    Within a change, and on a full disk, only writes differ.
    """
    numbered = list(enumerate(changes, 1))
    renames = [number for number, change in numbered if change.startswith("rename ")]
    others = [number for number, change in numbered if change.startswith("write ")]
    if action == KILL:
        others = [number for number, _ in numbered if number not in renames]
    drawn = Random(1).sample(others, min(MOST_OTHERS, len(others)))
    return sorted(drawn + renames * (action == KILL))


@pytest.mark.parametrize("how", ACTIONS)
@pytest.mark.parametrize("kind", COMMANDS)
def test_change(run: Run, new: New, kind: type[Command], how: str) -> None:
    action = ACTIONS[how]
    undisturbed = play(run, new(kind))
    chosen = instants(undisturbed.changes, action)
    counts, wrong = Counter[str](), []
    for change in chosen:
        command = new(kind)
        try:
            play(run, command, change=change, action=action)
            play_on(run, command, all_figures=action != FILL)
        except AssertionError as error:
            counts[str(error).partition(":")[0]] += 1
            wrong.append(f"{how} at {undisturbed.changes[change - 1]} ({change}): {error}")
            print(wrong[-1], flush=True)
    words = f"{len(chosen)} instants of {len(undisturbed.changes)} changes"
    print(f"{kind.__name__} {how}: {words}, {dict(counts)}", flush=True)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", LASTING)
@pytest.mark.parametrize("clocks", [(0, -YEAR_S), (0, YEAR_S), (YEAR_S, 0)])
def test_clock(run: Run, new: New, kind: type[Command], clocks: tuple[int, int]) -> None:
    """The wall clock jumps between the parts."""
    command = new(kind)
    play(run, command, clock_s=clocks[0])
    play_on(run, command, clock_s=clocks[1])
