"""Known causes of a game's end: each is recognised by a text that games were reported to print."""

from __future__ import annotations

import pytest

from sc2pool.game.program.diagnoses import diagnose, known_faults

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
        # The end does not fit the fault.
        ("", 1, 55958, ""),
        ("", -11, 74741, ""),
        # Their neighbours do not have it.
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
