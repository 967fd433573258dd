"""The set-up scripts run in a small checkout, with a substitute for the Python interpreter.

The substitute logs its arguments, "creates" environments by copying itself, and "installs" by
creating the commands; other calls go to the real interpreter. No network is needed.
"""

import contextlib
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EDITABLE = "--config-settings editable_mode=compat -e"
ROOT = Path(__file__).parents[2]

PYTHON = f"""#!/bin/sh
case "$1 $2 $3" in
"-m venv --clear")
    echo venv >>"$LOG"
    mkdir -p "$4/bin"
    cp "$0" "$4/bin/python" ;;
"-m pip --version") ;;
"-m pip install")
    echo "pip $*" >>"$LOG"
    echo "Collecting torch==2.13.0"
    echo "Downloading torch-2.13.0.whl (900 MB)"
    echo "WARNING: a warning of pip's" >&2
    case "$*" in *--index-url*) [ -z "$UNREACHABLE" ] || exit 1 ;; esac
    [ -z "$FAIL" ] || exit 1
    printf '#!/bin/sh\\necho "ran $*"\\n' >"${{0%/*}}/sc2pool"
    chmod +x "${{0%/*}}/sc2pool" ;;
*) exec '{sys.executable}' "$@" ;;
esac
"""


INSTALLED_FROM = (
    "pyproject.toml",
    "constraints.txt",
    "setup.py",
    "sc2pool/__init__.py",
    "sc2pool/_fast.pyx",
    "sc2standin/simulation/fights/_pairs.pyx",
)
"""The files that an installation depends on."""


class Checkout:
    """A checkout with a space in its path, in which nothing is set up yet."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a checkout"
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        for name in (*INSTALLED_FROM, "constraints-ray.txt"):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.log = folder / "log"
        self.log.touch()
        self.python = folder / "python3"
        self.python.write_text(PYTHON)
        self.python.chmod(0o755)

    def start(
        self,
        *arguments: str,
        script: str = "train",
        stderr: int = subprocess.PIPE,
        **variables: str,
    ) -> "subprocess.Popen[str]":
        environment = os.environ | {
            "PYTHON": str(self.python),
            "LOG": str(self.log),
            "FAIL": "",
            "UNREACHABLE": "",
        }
        environment.pop("SC2POOL_TORCH", None)
        return subprocess.Popen(
            [self.root / "scripts" / script, *arguments],
            env=environment | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    def run(self, *arguments: str, script: str = "train", **variables: str) -> tuple[int, str, str]:
        with self.start(*arguments, script=script, **variables) as process:
            out, err = process.communicate()
        return process.returncode, out, err

    def calls(self) -> list[str]:
        """The purpose, in a word, of each call of the interpreter since the last check. "torch" is
        a call of pip with torch's own index.
        """
        lines = self.log.read_text().splitlines()
        self.log.write_text("")
        return ["torch" if "--index-url" in line else line.split()[0] for line in lines]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.mark.parametrize("script", ["setup.sh", "lint", "train", "test"])
def test_the_scripts_are_sound_shell(script: str) -> None:
    subprocess.run(["sh", "-n", ROOT / "scripts" / script], check=True)
    assert script == "setup.sh" or os.access(ROOT / "scripts" / script, os.X_OK)


def test_the_first_call_sets_up_and_the_second_only_runs(checkout: Checkout) -> None:
    code, out, err = checkout.run("--steps", "5")
    assert (code, out) == (0, "ran train --steps 5\n")
    assert "downloading torch (900 MB)" in err
    assert "torch: the CPU build (SC2POOL_TORCH=cuda" in err
    assert "warning" not in err
    log = checkout.log.read_text()
    assert f"-c {checkout.root}/constraints.txt {EDITABLE} {checkout.root}[train]" in log
    assert checkout.calls() == ["venv", "torch", "pip"]
    assert checkout.run() == (0, "ran train\n", "")
    assert checkout.calls() == []


@pytest.mark.parametrize(("forbidden", "option"), [("", "--no-compile"), ("1", "--compile")])
def test_packages_are_compiled_if_the_shell_forbids_it_later(
    checkout: Checkout, forbidden: str, option: str
) -> None:
    checkout.run(PYTHONDONTWRITEBYTECODE=forbidden)
    assert f" {option} " in checkout.log.read_text()


def test_a_change_installs_again_into_the_same_environment(checkout: Checkout) -> None:
    checkout.run()
    checkout.calls()
    for name in INSTALLED_FROM:
        with (checkout.root / name).open("a") as file:
            file.write("\n# changed\n")
        assert checkout.run()[:2] == (0, "ran train\n")
        assert checkout.calls() == ["torch", "pip"], name


def test_a_failed_set_up_is_reported_and_taken_up_again(checkout: Checkout) -> None:
    code, out, err = checkout.run(FAIL="yes")
    assert (code, out) == (1, "")
    assert "set-up failed" in err
    assert "WARNING: a warning of pip's" in err
    checkout.calls()
    assert checkout.run()[:2] == (0, "ran train\n")
    assert checkout.calls() == ["torch", "pip"]


def test_a_broken_environment_is_made_anew(checkout: Checkout) -> None:
    checkout.run()
    checkout.calls()
    (checkout.root / ".venv/bin/python").unlink()
    assert checkout.run()[:2] == (0, "ran train\n")
    assert checkout.calls() == ["venv", "torch", "pip"]


def test_without_the_index_of_cpu_builds_the_other_build_is_taken(checkout: Checkout) -> None:
    code, out, err = checkout.run(UNREACHABLE="yes")
    assert (code, out) == (0, "ran train\n")
    assert "taking the build of the package index instead" in err
    assert checkout.calls() == ["venv", "torch", "pip"]
    assert checkout.run(SC2POOL_TORCH="cpu") == (0, "ran train\n", "")


def test_the_other_build_of_torch_makes_the_environment_anew(checkout: Checkout) -> None:
    checkout.run()
    checkout.calls()
    code, out, err = checkout.run(SC2POOL_TORCH="cuda")
    assert (code, out) == (0, "ran train\n")
    assert "torch: the build of the package index" in err
    assert checkout.calls() == ["venv", "pip"]
    assert checkout.run() == (0, "ran train\n", "")  # without a request, the installed build stays
    with (checkout.root / "pyproject.toml").open("a") as file:
        file.write("\n# changed\n")
    checkout.run()
    assert checkout.calls() == ["pip"]
    checkout.run(SC2POOL_TORCH="cpu")
    assert checkout.calls() == ["venv", "torch", "pip"]


def test_an_unknown_build_of_torch_is_refused(checkout: Checkout) -> None:
    code, out, err = checkout.run(SC2POOL_TORCH="gpu")
    assert (code, out, err) == (1, "", "sc2pool: SC2POOL_TORCH=gpu: cpu or cuda?\n")
    assert checkout.calls() == []


def test_on_a_terminal_the_progress_is_one_line(checkout: Checkout) -> None:
    ours, theirs = pty.openpty()
    with checkout.start(stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the terminal's other end was closed
            while part := os.read(ours, 4096):
                shown += part
        os.close(ours)
    assert process.returncode == 0
    assert b"\r\x1b[Ksc2pool:   looking at 1 packages" in shown
    assert b"\r\x1b[Ksc2pool:   downloading torch (900 MB)\r\x1b[K" in shown


ON_TOP = """#!/bin/sh
set -eu
. "$(dirname -- "$0")/setup.sh"
set_up dev
set_up_on_top ray
echo "$venv"
"""


def test_an_extra_on_top_has_its_own_environment_and_versions(checkout: Checkout) -> None:
    script = checkout.root / "scripts" / "on_top"
    script.write_text(ON_TOP)
    script.chmod(0o755)
    base = checkout.root / ".venv"
    assert checkout.run(script="on_top")[:2] == (0, f"{base}\n")
    log = checkout.log.read_text()
    assert f"-c {checkout.root}/constraints.txt {EDITABLE} {checkout.root}[dev]" in log
    assert f"-c {checkout.root}/constraints-ray.txt sc2pool[ray]\n" in log
    assert checkout.calls() == ["venv", "torch", "pip", "venv", "pip"]
    packages = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    below = (base / "ray" / packages / "below.pth").read_text()
    assert below.splitlines() == [str(base / packages), str(checkout.root)]
    assert checkout.run(script="on_top") == (0, f"{base}\n", "")
    with (checkout.root / "constraints-ray.txt").open("a") as file:
        file.write("\n# changed\n")
    assert checkout.run(script="on_top")[0] == 0
    assert checkout.calls() == ["pip"]
    code, out, err = checkout.run(script="on_top", FAIL="yes")
    assert (code, out, err) == (0, f"{base}\n", "")
    (base / "ray" / ".ready-ray").unlink()
    code, out, err = checkout.run(script="on_top", FAIL="yes")
    assert (code, out) == (1, "")
    assert "set-up failed" in err


@pytest.mark.skipif(shutil.which("flock") is None, reason="this system has no flock")
def test_two_at_once_set_up_once(checkout: Checkout) -> None:
    both = [checkout.start(), checkout.start()]
    outputs = [process.communicate()[0] for process in both]
    assert outputs == ["ran train\n"] * 2
    assert checkout.calls() == ["venv", "torch", "pip"]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("exit 1", "is not a Python 3.11 to 3.14 (it says: cannot be run)"),
        ('case "$2" in *ensurepip*) exit 1 ;; esac', "apt install python3-venv"),
    ],
)
def test_an_unsuitable_interpreter(checkout: Checkout, program: str, message: str) -> None:
    checkout.python.write_text(f"#!/bin/sh\n{program}\n")
    code, out, err = checkout.run()
    assert (code, out) == (1, "")
    assert message in err
    assert not (checkout.root / ".venv").exists()
