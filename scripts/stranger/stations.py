"""What a stranger tries in the first hour, as a table; each station says what it saw."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import psutil

from stranger.place import (
    Place,
    check,
    check_gone,
    read_until,
    small_disk,
    terminal,
    wait_for,
)

WIDTHS = (60, 80, 120, 200)
OWN_TASK = '''
import multiprocessing
import sys

from sc2pool import SubprocSC2VecEnv
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon


class Walk(MoveToBeacon):
    """A task of the script's own."""


def trial():
    env = SubprocSC2VecEnv(n=2, task=Walk)
    env.reset()
    for _ in range(5):
        env.step([0, 0])
    env.close()


if __name__ == "__main__":
    child = multiprocessing.get_context(sys.argv[1]).Process(target=trial)
    child.start()
    child.join()
    sys.exit(child.exitcode)
'''
PLAYING = """
import sys
import numpy as np
from sc2pool import SubprocSC2VecEnv

if __name__ == "__main__":
    env = SubprocSC2VecEnv(n=int(sys.argv[1]), task="DefeatRoaches", seed=1)
    env.reset()
    print("the games run", flush=True)
    while True:
        env.step(np.array([env.action_space.sample() for _ in range(env.num_envs)]))
"""
ODD_INPUT = """
import os
import numpy as np
from sc2pool import SC2VectorEnv, SubprocSC2VecEnv

if __name__ == "__main__":
    try:
        SubprocSC2VecEnv(n=1, config={"watchdog_interval_s": 1})
    except Exception as error:
        print(type(error).__name__, error)
    env = SubprocSC2VecEnv(n=1)
    env.reset()
    if os.fork() == 0:
        try:
            env.step([0])
        except Exception as error:
            print(type(error).__name__, error, flush=True)
        os._exit(0)
    os.wait()
    env.close()
"""


def installs_and_trains(place: Place) -> str:
    """A clone and one command."""
    began_s = time.monotonic()
    code, said = place.run("git", "clone", "--quiet", place.root, place.clone)
    check(code == 0, said)
    with place.start(place.clone / "scripts/train", "--n", "2", "--steps", "3e3") as training:
        said = read_until(training, "steps/s")
        first_line_s = time.monotonic() - began_s
        said += training.communicate()[0]
    check(training.returncode == 0, said)
    check("torch" in said, f"nothing is said of the build of torch: {said}")
    size = sum(path.stat().st_size for path in (place.clone / ".venv").rglob("*") if path.is_file())
    return f"{first_line_s:.0f} s to the first line of progress, .venv {size / 1e6:,.0f} MB"


def starts_children(place: Place) -> str:
    """A task of the script's own, in spawn and forkserver children."""
    script = place.folder / "search.py"
    script.write_text(OWN_TASK)
    for method in ("spawn", "forkserver"):
        code, said = place.run(place.python, script, method)
        check(code == 0, f"{method}: {said}")
    return "spawn and forkserver"


def reads_the_bar_in_small_terminals(place: Place) -> str:
    """The progress of a training."""
    for width in WIDTHS:
        out = place.folder / f"width-{width}"
        command = [place.sc2pool, "train", "--n", "2", "--steps", "100,000", "--out", out]
        with terminal(width, command, place.environment()) as screen:
            shown = wait_for(lambda: screen() if "episodes)" in screen() else "", "progress")
        for words in ("/ 100,000 steps", "left", "steps/s", "mean return"):
            check(words in shown, f"at {width} columns {words!r} is missing:\n{shown}")
        wait_for((out / "model.zip").exists, "the model is saved")
    return f"{', '.join(map(str, WIDTHS))} columns; a closed terminal saved the model"


def reads_top_in_small_terminals(place: Place) -> str:
    """The live table."""
    script = place.folder / "playing.py"
    script.write_text(PLAYING)
    with place.start(place.python, script, "8") as playing:
        try:
            read_until(playing, "the games run")
            for width in WIDTHS:
                command = [place.sc2pool, "top", "--pid", str(playing.pid)]
                with terminal(width, command, place.environment()) as screen:
                    shown = wait_for(lambda: screen() if "CPU" in screen() else "", "the table")
                for words in ("CPU", "FAULTS", "RETURN", "DefeatRoaches", "not StarCraft II"):
                    check(words in shown, f"at {width} columns {words!r} is missing:\n{shown}")
            top = f"{place.sc2pool} top --json --pid {playing.pid} | head -c 1"
            _, said = place.run("bash", "-c", top)
            check("Traceback" not in said and "Broken" not in said, said)
        finally:
            playing.kill()
    return f"{', '.join(map(str, WIDTHS))} columns; `top --json | head` is quiet"


def watches(place: Place) -> str:
    """The page, as pictures."""
    chromium = shutil.which("chromium")
    seen = []
    for n in (1, 8, 32):
        with place.start(place.python, place.folder / "playing.py", str(n)) as playing:
            try:
                read_until(playing, "the games run")
                with place.start(place.sc2pool, "watch", "--pid", str(playing.pid)) as watch:
                    try:
                        address = re.findall(r"http://\S+", read_until(watch, "http://"))[0]
                        with urllib.request.urlopen(address, timeout=10) as page:
                            check(b"<html" in page.read().lower(), "no page")
                        wait_for(lambda: shown_at(address, n), "the page shows all games")  # noqa: B023
                        if chromium:
                            seen.append(picture(chromium, address, place.keep / f"watch-{n}.png"))
                    finally:
                        watch.kill()
            finally:
                playing.kill()
    return f"look at {', '.join(seen)}" if seen else "no chromium: no pictures"


def shown_at(address: str, n: int) -> bool:
    """Whether a page shows n games."""
    with urllib.request.urlopen(f"{address}state", timeout=10) as answer:
        return len(json.load(answer)["views"]) == n


def picture(chromium: str, address: str, file: Path) -> str:
    """A picture of a page."""
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars"
    size = ("--window-size=1300,900", "--virtual-time-budget=4000")
    command = [chromium, *flags.split(), *size, f"--screenshot={file}", address]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return str(file)


def resumes(place: Place) -> str:
    """What cannot be resumed is refused before a game starts."""
    run = place.folder / "resumable"
    train = [place.sc2pool, "train", "--n", "1", "--task", "MoveToBeacon"]
    code, said = place.run(*train, "--steps", "200", "--out", run, "--algo", "a2c")
    check(code == 0, said)
    odd = place.folder / "odd.zip"
    odd.write_bytes(b"no zip")
    place.refused(*train, "--resume", odd, expected="not a model saved by training")
    moved = shutil.copy(run / "model.zip", place.folder / "moved.zip")
    place.refused(*train, "--resume", moved, expected="not a model of PPO")
    place.refused(*train, "--resume", run, "--algo", "ppo", expected="is a run of algo a2c")
    code, said = place.run(place.sc2pool, "train", "--resume", run, "--steps", "400")
    check(code == 0 and "from 2" in said, said)
    return "another algorithm and odd files are refused; its own run goes on"


def long_training(place: Place, out: Path) -> subprocess.Popen[str]:
    """A training that does not end by itself meanwhile."""
    return place.start(place.sc2pool, "train", "--n", "2", "--steps", "1e6", "--out", out)


def fills_the_disk(place: Place) -> str:
    """A disk that becomes full while a model is trained."""
    disk = place.folder / "disk"
    try:
        with small_disk(disk, "3m"):
            out = disk / "run"
            with long_training(place, out) as training:
                said = read_until(training, "steps/s")
                fill = ["dd", "if=/dev/zero", f"of={disk / 'rest'}"]
                subprocess.run(fill, check=False, capture_output=True)
                training.send_signal(signal.SIGINT)
                said += training.communicate()[0]
            check(training.returncode == 1, f"it ends with {training.returncode}: {said}")
            check("cannot save to" in said and "Traceback" not in said, said)
            check(not list(out.glob("unfinished-*")), "an unfinished file is left")
    except subprocess.CalledProcessError:
        return "skipped: this user cannot mount a small disk"
    return "said in one line, exit code 1"


def hangs_up(place: Place) -> str:
    """SIGHUP saves."""
    out = place.folder / "hung-up"
    with long_training(place, out) as training:
        said = read_until(training, "steps/s")
        children = psutil.Process(training.pid).children(recursive=True)
        training.send_signal(signal.SIGHUP)
        said += training.communicate()[0]
    check(training.returncode == 129, f"it ends with {training.returncode}: {said}")
    check((out / "model.zip").exists(), f"no model: {said}")
    check_gone(children)
    return "the model is saved, no process is left"


def interrupts_at_once(place: Place) -> str:
    """Ctrl-C within the first seconds of a command."""
    delays_s = [0.02, 0.05, 0.08, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
    for delay_s in delays_s:
        command = [place.sc2pool, "train", "--n", "1", "--out", place.folder / f"never-{delay_s}"]
        with place.start(*command) as training:
            time.sleep(delay_s)
            training.send_signal(signal.SIGINT)
            said, _ = training.communicate()
        check("Traceback" not in said, f"after {delay_s} s: {said}")
    return f"{len(delays_s)} instants from {delays_s[0]} to {delays_s[-1]} s, no traceback"


def gives_wrong_arguments(place: Place) -> str:
    """Answered in one line each, before a game starts."""
    train = [place.sc2pool, "train"]
    place.refused(*train, "--steps", "many", expected="expected a whole number")
    place.refused(*train, "--task", "MoveToBecon", expected="did you mean 'MoveToBeacon'")
    place.refused(*train, "--task", "nothing:Walk", expected="there is no module 'nothing'")
    place.refused(*train, "--algo", "sac", expected="plays Box actions")
    place.refused(*train, "--out", "/proc/run", expected="cannot be written to")
    place.refused(*train, "--hyperparameters", "none.yml", expected="cannot be read")
    place.refused(*train, "--game", "/none", expected="/none does not exist")
    taken = subprocess.Popen(
        [
            place.python,
            "-c",
            "import socket as s; x = s.create_server(('127.0.0.1', 8471)); "
            "print(flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with taken:
        assert taken.stdout is not None
        taken.stdout.readline()
        place.refused(place.sc2pool, "watch", "--port", "8471", expected="")
        taken.kill()
    return "eight of them"


def gives_odd_input(place: Place) -> str:
    """A dict for a config; a forked child that steps."""
    script = place.folder / "odd.py"
    script.write_text(ODD_INPUT)
    code, said = place.run(place.python, script)
    check(code == 0, said)
    for words in (
        "ConfigError config must be a PoolConfig",
        "ForkedPoolError this pool belongs to",
    ):
        check(words in said, f"{words!r} is missing: {said}")
    return "ConfigError and ForkedPoolError"


def chooses_algorithms(place: Place) -> str:
    """Other algorithms, hyperparameters of one's own, evaluations."""
    file = place.folder / "mine.yml"
    file.write_text("default: {n_timesteps: 300, n_envs: 2, n_steps: 32, learning_rate: lin_1e-3}")
    for algo in ("a2c", "dqn", "async-ppo"):
        out = place.folder / algo
        options = [] if algo == "dqn" else ["--hyperparameters", file]
        code, said = place.run(
            *(place.sc2pool, "train", "--algo", algo, "--out", out, "--steps", "300", "--n", "2"),
            *options,
            *("--eval-every", "200", "--eval-episodes", "2"),
        )
        check(code == 0 and "evaluation at" in said, said)
        check((out / "best_model.zip").exists(), f"{algo}: no best model")
    return "a2c, dqn, async-ppo"


def kills_a_game(place: Place) -> str:
    """A game is killed under a training."""
    out = place.folder / "killed"
    with long_training(place, out) as training:
        said = read_until(training, "steps/s")
        games = [
            child
            for child in psutil.Process(training.pid).children(recursive=True)
            if "standin" in " ".join(child.cmdline())
        ]
        games[0].kill()
        said += read_until(training, "cut short by faults")
        training.send_signal(signal.SIGINT)
        said += training.communicate()[0]
    check("a new game takes over" in said, f"nobody says that a new game takes over: {said}")
    return "a new game takes over, and it is said"


def installs_the_wheel_alone(place: Place) -> str:
    """A wheel, without the clone; the packages that it needs are the clone's."""
    wheels = place.folder / "wheels"
    pip = [place.python, "-m", "pip", "--disable-pip-version-check", "-q"]
    code, said = place.run(*pip, "wheel", "--no-deps", "-w", wheels, place.clone)
    check(code == 0, said)
    (wheel,) = wheels.glob("*.whl")
    alone = place.folder / "alone"
    code, said = place.run(place.python, "-m", "venv", alone)
    check(code == 0, said)
    code, said = place.run(alone / "bin/python", "-m", "pip", "-q", "install", "--no-deps", wheel)
    check(code == 0, said)
    (packages,) = alone.glob("lib/python*/site-packages")
    (below,) = (place.clone / ".venv").glob("lib/python*/site-packages")
    (packages / "below.pth").write_text(f"{below}\n")
    command = alone / "bin/sc2pool"
    code, said = place.run(command, "--version")
    check(code == 0 and said.startswith("sc2pool "), said)
    out = place.folder / "alone-run"
    code, trained = place.run(command, "train", "--n", "1", "--steps", "300", "--out", out)
    check(code == 0, trained)
    code, game = place.run(command, "standin", "path")
    check(code == 0 and Path(game.splitlines()[-1]).is_dir(), game)
    code, listed = place.run(command, "tasks", "--json")
    check(code == 0, listed)
    tasks = json.loads(listed[listed.index("{") if listed[:1] != "[" else 0 :])
    check(tasks, listed)
    return f"{wheel.name}: {said.strip()}, trains, has its game and its tasks"


STATIONS: dict[str, Callable[[Place], str]] = {
    "clone, install, train": installs_and_trains,
    "children": starts_children,
    "small terminals: train": reads_the_bar_in_small_terminals,
    "small terminals: top": reads_top_in_small_terminals,
    "watch": watches,
    "resume": resumes,
    "full disk": fills_the_disk,
    "hang-up": hangs_up,
    "Ctrl-C at once": interrupts_at_once,
    "wrong arguments": gives_wrong_arguments,
    "odd input": gives_odd_input,
    "algorithms": chooses_algorithms,
    "a game is killed": kills_a_game,
    "the wheel alone": installs_the_wheel_alone,
}
