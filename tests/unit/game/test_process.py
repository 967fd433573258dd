"""Tests a game's process: environment, end, last output, and known causes of an end."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from sc2pool.game.program.builds import diagnose, known_faults
from sc2pool.game.program.installation import Installation
from sc2pool.game.program.lease import PortLease
from sc2pool.game.program.process import (
    RING_BYTES,
    GameProcess,
    Output,
    game_environment,
    log_left_in,
    read_tail,
)
from sc2pool.platform import WINDOWS
from sc2pool.processes import with_parent
from tests.support.systems import KILLED, SLEEPS, is_private, write_program

# ---- environment, log, kill ----------------------------------------------------------------------


SLEEP = "import time; time.sleep(60)"
has_groups = pytest.mark.skipif(WINDOWS, reason="it has no process groups")


def test_environment_is_an_allow_list():
    given = {"PATH": "/bin", "LC_ALL": "C", "API_TOKEN": "secret", "LD_PRELOAD": "x", "TMPDIR": "/"}
    own = Path("/own")
    assert game_environment(given, own) == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "TMPDIR": str(own),
        "TEMP": str(own),
        "TMP": str(own),
    }


@pytest.fixture
def spawn(tmp_path):
    """Starts a Python program in place of a game."""
    started = []

    def start(program: str, core_file_bytes: int = 0) -> GameProcess:
        executable = write_program(tmp_path / "SC2_x64", program)
        lease = PortLease.acquire(tmp_path)
        installation = Installation(tmp_path, executable, 1, None, None)
        game = GameProcess.spawn(installation, lease, core_file_bytes=core_file_bytes)
        started.append((game, lease))
        return game

    yield start
    for game, lease in started:
        game.close()
        game.close()
        lease.release()


def ended(game: GameProcess) -> bool:
    return select.select([game.exited_fd], [], [], 5)[0] != []


def test_temp_directory_is_private_and_goes(spawn):
    game = spawn(SLEEP)
    directory = game._temp_dir
    assert is_private(directory)
    game.close()
    assert not directory.exists()
    assert game.exit_code() in KILLED


@pytest.mark.skipif(WINDOWS, reason="it has no such limit")
@pytest.mark.parametrize("size_bytes", [0, 4096, 4096.0, 1e308])
def test_core_files_are_limited_for_the_game_alone(spawn, limited, size_bytes):
    resource = pytest.importorskip("resource")
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard != resource.RLIM_INFINITY and hard < 8192:
        pytest.skip("this process may have no larger limit")
    with limited("CORE", 8192):
        game = spawn(SLEEP, size_bytes)
        most = 2**63 - 1 if hard == resource.RLIM_INFINITY else hard
        given = psutil.Process(game.pid).rlimit(psutil.RLIMIT_CORE)[0]
        assert given == min(size_bytes, most)
        assert resource.getrlimit(resource.RLIMIT_CORE)[0] == 8192


def test_advice_is_part_of_the_fault_if_the_cause_is_known(spawn):
    game = spawn("print('Fatal error encountered! e_fileCorruptRepairable'); raise SystemExit(9)")
    assert ended(game)
    assert "exit code 9 (the installation's files are damaged" in game.exit_fault().detail


@has_groups
@pytest.mark.parametrize("in_a_worker", [True, False])
def test_only_a_worker_s_game_stays_in_its_process_group(spawn, monkeypatch, in_a_worker):
    monkeypatch.setattr(with_parent, "_follows", in_a_worker)
    game = spawn(SLEEP)
    assert os.getpgid(game.pid) == (os.getpgid(0) if in_a_worker else game.pid)


def test_kill_ends_children_and_stopped_processes(spawn, wait_for):
    game = spawn(
        "import subprocess, time\n"
        f"children = [subprocess.Popen({SLEEPS}) for _ in range(2)]\n"
        "print(*(child.pid for child in children), flush=True)\n"
        f"{SLEEP}"
    )
    process = psutil.Process(game.pid)
    wait_for(game.log_tail)
    process.suspend()
    wait_for(lambda: process.status() == psutil.STATUS_STOPPED)
    family = game.family()
    assert {one.pid for one in family} >= {game.pid, *map(int, game.log_tail().split())}
    assert WINDOWS or len(family) == 3  # Windows adds processes for consoles
    game.kill()
    _, alive = psutil.wait_procs(family, timeout=5)
    assert alive == []


def test_log_tail(spawn):
    game = spawn(
        "import sys\n"
        "print(*(f'line {number}' for number in range(1, 501)), sep='\\n', flush=True)\n"
        "print('to stderr', file=sys.stderr)\n"
        "sys.exit(3)"
    )
    assert ended(game)
    assert game.log_tail(2) == "line 500\nto stderr"
    assert log_left_in(game._temp_dir.parent).endswith("line 500\nto stderr")
    assert "exit code 3" in str(game.exit_fault("launch-failed"))
    game.close()
    assert game.log_tail(1) == "to stderr"
    assert log_left_in(game._temp_dir.parent) == ""


def test_refusal_of_the_system_is_no_error_of_the_user(tmp_path, limited):
    lease = PortLease.acquire(tmp_path)
    installation = Installation(Path("/"), Path("/bin/true"), 1, None, None)
    with limited("NOFILE", 0), pytest.raises(OSError, match="Too many open files"):
        GameProcess.spawn(installation, lease)
    lease.release()


def test_figures_of_a_dead_game(spawn):
    game = spawn("")
    assert ended(game)
    game.kill()
    assert game.exit_code() == 0
    assert game.cpu_seconds() == 0.0
    assert game.rss_bytes() == 0


def test_game_dies_with_its_parent(tmp_path):
    script = """
import sys
from pathlib import Path
from sc2pool.game.program.installation import Installation
from sc2pool.game.program.lease import PortLease
from sc2pool.game.program.process import GameProcess
root = Path(sys.argv[1])
game = GameProcess.spawn(
    Installation(root, Path(sys.argv[2]), 1, None, None), PortLease.acquire(root)
)
print(game.pid, flush=True)
sys.stdin.read()
"""
    executable = write_program(tmp_path / "SC2_x64", SLEEP)
    worker = subprocess.Popen(
        [sys.executable, "-c", script, tmp_path, executable],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    game = psutil.Process(int(worker.stdout.readline()))
    worker.kill()
    worker.communicate()
    assert psutil.wait_procs([game], timeout=2)[1] == []


# ---- the end of the output -----------------------------------------------------------------------


Start = Callable[[str], tuple[Output, "subprocess.Popen[bytes]"]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a Python program whose output is kept in `tmp_path / "log"`."""
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
    """The open descriptors of this process; on Windows, the number of handles."""
    return psutil.Process().num_handles() if WINDOWS else set(Path("/proc/self/fd").iterdir())


def test_closed_it_has_no_descriptor_left(tmp_path):
    """No descriptor is left open, even if the child could not start and its output was not read."""
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
from sc2pool.game.program.process import Output
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
    """The reading thread must pause, because it would otherwise take a whole core."""
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
    if not WINDOWS:  # Windows does not delete an open file
        (tmp_path / "log").unlink()
    child.communicate(b"\n")
    assert output.tail(ended=True) == b"one\ntwo\n"


# ---- known causes of an end ----------------------------------------------------------------------


FATAL = """\
Startup Phase 1 complete
Fatal error encountered!
Backtrace:
/home/user/StarCraftII/Versions/Base55958/SC2_x64[0x653068]
Error condition code: '9'
Error failure: '{failure}'
Error unique: '({unique})'
Error details: '"AppErrors.txt"'
"""
CRASH = "Error signal: '11'\nBacktrace:\n/opt/StarCraftII/Versions/Base75689/SC2_x64[0x65e838]"
USUAL = """\
Version: B75689 (SC2.4.10)
Startup Phase 1 complete
Listening on: 127.0.0.1:20000
Startup Phase 3 complete. Ready for commands.
"""


@pytest.mark.parametrize(
    ("log", "exit_code", "told"),
    [
        (
            "/opt/SC2_x64: /lib64/libc.so.6: version `GLIBC_2.18' not found (required by "
            "/opt/Libs/libstdc++.so.6)",
            1,
            "glibc",
        ),
        (
            "SC2_x64: /usr/lib64/libc.so.6: version 'GLIBC_2.18' not found (required by "
            "/StarCraftII/Libs/libstdc++.so.6)",
            1,
            "glibc",
        ),
        (
            "/opt/SC2_x64: /lib64/libstdc++.so.6: version GLIBCXX_3.4.21' not found (required by "
            "/opt/SC2_x64)",
            1,
            "LD_LIBRARY_PATH",
        ),
        (
            "SC2_x64: error while loading shared libraries: libGL.so.1: cannot open shared "
            "object file: No such file or directory",
            127,
            "ldd",
        ),
        ("/bin/sh: 1: exec: SC2_x64: Exec format error", 126, "another processor"),
        (
            FATAL.format(failure="e_errorIdStreaming", unique="NGDP:E_NOT_AVAILABLE"),
            -11,
            "damaged",
        ),
        (FATAL.format(failure="e_fileCorruptRepairable", unique="NGDP:E_FAILURE"), -11, "damaged"),
        (FATAL.format(failure="e_errorIdMemoryUnknown", unique=""), -11, "no memory"),
        (FATAL.format(failure="e_errorIdMemory", unique=""), -6, "no memory"),
        ("Failed to create the socket.", 1, "the port"),
        ("cannot bind to 127.0.0.1:5677: 98 (Address already in use)", 1, "the port"),
        ("rosetta error: failed to open elf at /lib64/ld-linux-x86-64.so.2", -5, "emulation"),
        ("qemu: uncaught target signal 11 (Segmentation fault) - core dumped", -11, "emulation"),
        (
            "qemu-x86_64: Could not open '/lib64/ld-linux-x86-64.so.2': No such file or directory",
            255,
            "emulation",
        ),
        ("['A game has not been started yet']", None, "password"),
        (
            r"temporary map 'C:\Temp\StarCraft II\TempLaunchMap.SC2Map' has invalid data.",
            None,
            "temporary map",
        ),
    ],
)
def test_a_text_of_the_record_has_one_line_of_advice(
    log: str, exit_code: int | None, told: str
) -> None:
    advice = diagnose(f"Starting up...\n{log}\n", exit_code)
    assert told in advice
    assert "\n" not in advice


@pytest.mark.parametrize("exit_code", [None, 0, 1, -9, -11])
def test_usual_words_have_no_advice(exit_code: int | None) -> None:
    assert not diagnose("", exit_code)
    assert not diagnose(USUAL, exit_code, 75689)


@pytest.mark.parametrize(
    ("log", "exit_code", "base_build", "told"),
    [
        ("", -11, 55958, "when it quits"),
        ("", 139, 56787, "CollectMineralShards"),
        (CRASH, None, 56787, "CollectMineralShards"),
        ("", None, 59587, "larvae"),
        ("", None, 60321, "fixed in 4.6"),
        ("", None, 74741, "fixed in 4.9.3"),
        # In these rows, the last lines of the output are not those of the fault.
        ("", 1, 55958, ""),
        ("", -11, 74741, ""),
        # These builds are older or newer than the builds that have the fault.
        ("", None, 67926, ""),
        ("", None, 75025, ""),
        (CRASH, -11, 75689, ""),
    ],
)
def test_a_builds_fault_counts_if_the_end_fits(
    log: str, exit_code: int | None, base_build: int, told: str
) -> None:
    advice = diagnose(log, exit_code, base_build)
    assert told in advice
    assert bool(told) == bool(advice)


def test_a_text_counts_before_a_build() -> None:
    assert "glibc" in diagnose("version `GLIBC_2.18' not found", None, 74071)


def test_faults_of_a_build() -> None:
    assert "high ground" in known_faults(75689)
    assert not known_faults(81433)
