"""Starts programs of this package as child processes, and asks them questions.

Such a program reads questions (lines of JSON) from its stdin, answers each question with a line on
its stdout, and ends when its stdin is closed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sc2pool.processes.with_parent import die_with_parent

END_S = 5.0
"""How long a program may live after its stdin was closed; after this time it is killed."""


def start(
    module: str, *arguments: object, import_from: Sequence[Path] = (), **options: Any
) -> subprocess.Popen[Any]:
    """Run `python -m module`; the kernel kills the program when the calling thread ends.

    Args:
        module: the module to run, such as `bench.baselines.wire`.
        arguments: the arguments of the program's command line.
        import_from: folders that are searched for packages before all others.
        options: more options for `Popen`.
    """
    path = os.pathsep.join(filter(None, (*map(str, import_from), *sys.path)))
    return subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONPATH": path},
        preexec_fn=die_with_parent(),  # noqa: PLW1509  # it takes no lock
        start_new_session=True,
        **options,
    )


def start_asked(
    module: str, *arguments: object, import_from: Sequence[Path] = ()
) -> subprocess.Popen[str]:
    """Run a program that answers questions; the arguments are those of `start`."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return start(module, *arguments, import_from=import_from, **pipes)


def ask(programs: Sequence[subprocess.Popen[str]], *question: Any) -> list[Any]:
    """Ask all programs the same question at once, and wait for their answers.

    Raises:
        RuntimeError: A program has ended without an answer.
    """
    for program in programs:
        assert program.stdin is not None
        print(json.dumps(question), file=program.stdin, flush=True)
    answers = []
    for program in programs:
        assert program.stdout is not None
        answer = program.stdout.readline()
        if not answer:
            raise RuntimeError(f"{program.args[2]} has ended; see above")  # type: ignore[index]
        answers.append(json.loads(answer))
    return answers


def questions() -> Iterator[list[Any]]:
    """The questions that this program is asked, until its stdin is closed."""
    return map(json.loads, iter(sys.stdin.readline, ""))


def answer(value: Any) -> None:
    """Answer the last question that this program was asked."""
    print(json.dumps(value), flush=True)


def end(programs: Sequence[subprocess.Popen[str]]) -> None:
    """End programs that `start_asked` has started."""
    for program in programs:
        assert program.stdin is not None
        program.stdin.close()
    for program in programs:
        with suppress(subprocess.TimeoutExpired):
            program.wait(END_S)
        program.kill()
        program.wait()
        assert program.stdout is not None
        program.stdout.close()
