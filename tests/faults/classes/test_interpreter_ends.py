"""`close` returns however the interpreter is left: a script that forgets it elsewhere must end."""

from __future__ import annotations

import pytest
from tested import TESTED

ENDS_WITHIN_S = 90.0
"""Of the whole program; most of it is the import of a library and the launch of five games."""


@pytest.mark.timing
@pytest.mark.parametrize("name", TESTED)
def test_close_returns_however_the_interpreter_is_left(name, run_with, standin_dir, monkeypatch):
    monkeypatch.setenv("SC2PATH", str(standin_dir))
    done = run_with("leaving.py", name, timeout_s=ENDS_WITHIN_S)
    assert (done.returncode, done.stderr) == (0, "")
    said = dict(line.split(": ") for line in done.stdout.splitlines())
    said.pop("made")  # an error, and of which type depends on the modules that are left
    assert set(said) == {
        "here",
        "again",
        "thread",
        "atexit",
        "__del__",
        "__del__ in a cycle",
        "generator",
        "closed before, atexit",
        "closed before, __del__",
        "closed before, generator",
    }
    assert max(map(float, said.values())) < 5.0
