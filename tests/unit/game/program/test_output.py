"""The end of what a child prints, in a fixed size."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from sc2pool.game.program.output import RING_BYTES, Output, read_tail
from sc2pool.platform import WINDOWS
from tests.support.systems import SLEEPS

Start = Callable[[str], tuple[Output, "subprocess.Popen[bytes]"]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a program of Python whose output is kept in `tmp_path / "log"`."""
    started: list[tuple[Output, subprocess.Popen[bytes]]] = []

    def begin(program: str) -> tuple[Output, subprocess.Popen[bytes]]:
        output = Output(tmp_path / "log")
        ends = {"stdout": output.writing_end, "stderr": output.writing_end}
        command = [sys.executable, "-S", "-c", f"import os, subprocess, sys\n{program}"]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, **ends)
        output.hand_over()
        started.append((output, child))
        return output, child

    yield begin
    for output, child in started:
        child.communicate()
        output.close()


def test_all_that_an_ended_child_has_printed(start, tmp_path):
    output, child = start(r"os.write(1, b'one\n'); os.write(2, b'two\n')")
    child.wait()
    assert output.tail(ended=True) == b"one\ntwo\n"
    assert read_tail(tmp_path / "log") == b"one\ntwo\n"


@pytest.mark.parametrize("length", [RING_BYTES - 1, RING_BYTES, RING_BYTES + 1, 5 * RING_BYTES + 7])
def test_the_newest_bytes_in_their_order(start, tmp_path, length):
    printed = b"".join(b"%d " % number for number in range(length))[:length]
    source = tmp_path / "source"
    source.write_bytes(printed)
    output, child = start(f"sys.stdout.buffer.write(open({str(source)!r}, 'rb').read())")
    child.wait()
    assert output.tail(ended=True) == printed[-RING_BYTES:]
    assert output.total_bytes == length
    assert read_tail(tmp_path / "log") == printed[-RING_BYTES:]


def test_a_child_that_runs_is_read_meanwhile(start):
    output, _ = start(r"os.write(1, b'up\n'); input()")
    while output.tail(ended=False) != b"up\n":
        pass


def descriptors() -> object:
    """Those of this process; Windows tells how many there are."""
    return psutil.Process().num_handles() if WINDOWS else set(Path("/proc/self/fd").iterdir())


def test_closed_it_has_no_descriptor_left(tmp_path):
    """Also if the child could not be started, so that nobody has asked for what it printed."""
    for _ in range(100):
        before = descriptors()
        output = Output(tmp_path / "log")
        output.hand_over()
        output.close()
        assert descriptors() == before


def test_the_file_has_its_size_from_the_begin_on(start, tmp_path):
    output, child = start("input(); os.write(1, bytes(1_000_000))")
    size = (tmp_path / "log").stat().st_size
    child.communicate(b"\n")
    output.tail(ended=True)
    assert (tmp_path / "log").stat().st_size == size < RING_BYTES + 100


def test_it_outlives_the_process_that_kept_it(tmp_path):
    program = r"""
import psutil, subprocess, sys
from pathlib import Path
from sc2pool.game.program.output import Output
output = Output(Path(sys.argv[1]))
words = [sys.executable, "-S", "-c", "import os; os.write(1, b'last words\\n')"]
child = subprocess.Popen(words, stdout=output.writing_end)
output.hand_over()
child.wait()
output.tail(ended=True)
psutil.Process().kill()
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "log")], check=False)
    assert read_tail(tmp_path / "log") == b"last words\n"


def test_on_a_full_disk_it_is_in_memory(start, tmp_path, limited):
    with limited("FSIZE", 0):
        output, child = start(r"os.write(1, b'one\n')")
    child.wait()
    assert output.tail(ended=True) == b"one\n"
    assert read_tail(tmp_path / "log") == b""


def test_other_files_have_no_tail(tmp_path):
    assert read_tail(tmp_path / "nothing") == b""
    (tmp_path / "short").write_bytes(b"cut off")
    assert read_tail(tmp_path / "short") == b""


@pytest.mark.timing
def test_another_process_that_holds_the_pipe_delays_once(start):
    output, child = start(f"print('over', subprocess.Popen({SLEEPS}, stdout=1).pid)")
    child.wait()
    over, sleeper = output.tail(ended=True).split()
    assert over == b"over"
    began_s = time.monotonic()
    assert output.tail(ended=True).split() == [over, sleeper]
    assert time.monotonic() - began_s < 0.5
    psutil.Process(int(sleeper)).kill()


@pytest.mark.timing
def test_a_flood_costs_little(start):
    """A thread without rests takes a whole core."""
    output, child = start("input()\nwhile True: os.write(1, bytes(65536))")
    before_s, began_s = time.process_time(), time.monotonic()
    child.stdin.write(b"\n")
    child.stdin.flush()
    while output.tail(ended=False) != bytes(RING_BYTES) or time.monotonic() < began_s + 0.5:
        time.sleep(0.05)
    assert time.process_time() - before_s < 0.3 * (time.monotonic() - began_s)
    child.kill()


def test_the_file_may_be_cut_or_deleted_meanwhile(start, tmp_path):
    output, child = start(r"input(); os.write(1, b'one\n'); input(); os.write(1, b'two\n')")
    os.truncate(tmp_path / "log", 0)
    child.stdin.write(b"\n")
    child.stdin.flush()
    while output.tail(ended=False) != b"one\n":
        pass
    if not WINDOWS:  # it deletes no file that is open
        (tmp_path / "log").unlink()
    child.communicate(b"\n")
    assert output.tail(ended=True) == b"one\ntwo\n"
