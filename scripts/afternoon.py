"""Run the commands that a new user may type, right and wrong ones, and check their output.

    python scripts/afternoon.py [FOLDER]

The commands run with this interpreter, on the stand-in: in a clone, or in an environment that has
only the wheel with its extras `train`, `contrib`, `video`, `minari`, `tune` and `completion`. Each
line shows how long a command took. The exit code is the number of commands with another result than
expected.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RIGHT = (
    ("tasks beacon", "MoveToBeaconImage"),
    ("play MoveToBeacon --episodes 2", r"mean return 2\d"),
    ("play random --task 3m --episodes 2 --gif a.gif", "over 2 episodes"),
    ("train --steps 4000 --n 2 --out run", "to see it play: sc2pool play run --watch"),
    ("play run --episodes 2 --replay a.SC2Replay --video a.mp4", "over 2 episodes"),
    ("replay a.SC2Replay", "MoveToBeacon, 1,920 loops"),
    ("replay a.SC2Replay b.gif --every 64", r"b\.gif: 31 frames"),
    ("train --resume run --steps 5000", "saved after 5,"),
    ("play MarineDuel --against scripted --episodes 2", r"won \d of 2 matches against scripted"),
    ("record scripted --steps 2000 --n 2", r"minari\.load_dataset"),
    ("record scripted --steps 3000 --n 2 --resume", "3,360 steps in 14 episodes"),
    ("tune --steps 2000 --trials 2 --n 2 --eval-episodes 2 --out search", "2 trials"),
    ("train --hyperparameters search/best.yml --steps 2000 --out tuned", "saved after 2,"),
    ("train defeatroaches --algo Maskable-PPO --steps 2000 --n 2", "saved after 2,"),
    ("--print-completion bash", "sc2pool"),
)
"""Commands that work, each with a pattern of its output."""
WRONG = (
    ("", "the following arguments are required: COMMAND"),
    ("trian", "did you mean train"),
    ("train --step 5 --algo", "expected one argument"),
    ("train --epsilon 3", "unknown argument --epsilon"),
    ("train Chess", "unknown task 'Chess'"),
    ("train MoveToBecon", "did you mean 'MoveToBeacon'"),
    ("train a --task b", "the task is given twice"),
    ("train --algo sac", "Box actions, and those of MoveToBeacon are Discrete"),
    ("train --algo dqn --task CollectMineralShards", "Discrete actions"),
    ("train --task nowhere:Task", "there is no module 'nowhere'"),
    ("train --n 0", "expected a whole number of at least 1"),
    ("train --eval-episodes 3", "give --eval-every"),
    ("train --out run", "already holds a run"),
    ("train --resume nothing", "no such file or folder"),
    ("train --hyperparameters wrong.yml", "is not YAML"),
    ("train --hyperparameters swosh.yml", "activation_fn 'nn.Swosh' is none of"),
    ("train --device cuda:9", "--device cuda:9: torch cannot use it"),
    ("train --game real", "no StarCraft II found"),
    ("train --game nowhere", "is no StarCraft II"),
    ("play", "the following arguments are required"),
    ("play nothing", "no pretrained policy of that name"),
    ("play run --task MarineDuel", "observes Box"),
    ("play run --against run/model.zip", "is for a task of two players"),
    ("play wrong.yml --task MoveToBeacon", "not a model that SB3 has saved"),
    ("play scripted --task 3m", "has no scripted player"),
    ("record random --dataset here", "expected an id such as"),
    ("record scripted --steps 100", "is in .* already"),
    ("tune --algo async-ppo", "tune knows ppo"),
    ("tune --steps 4000 --out search", "holds another search"),
    ("replay wrong.yml", "InvalidReplayData"),
    ("tasks chess", "no task with 'chess' in its name"),
    ("top --pid 1", "."),
)
"""Mistakes, each with a pattern of its message: exit code 2, at most three lines, no traceback."""


def main() -> int:
    temporary = tempfile.TemporaryDirectory()
    folder = Path(sys.argv[1] if sys.argv[1:] else temporary.name)
    folder.mkdir(exist_ok=True)
    (folder / "wrong.yml").write_text("[")
    (folder / "swosh.yml").write_text("default: {policy_kwargs: 'dict(activation_fn=nn.Swosh)'}")
    otherwise = 0
    for command, said in RIGHT:
        otherwise += not tried(folder, command, said, right=True)
    for command, said in WRONG:
        otherwise += not tried(folder, command, said, right=False)
    print(f"{len(RIGHT) + len(WRONG)} lines, {otherwise} came out otherwise")
    return otherwise


def tried(folder: Path, command: str, said: str, *, right: bool) -> bool:
    """True if the command had the expected result; prints a line, and its output otherwise."""
    environment = {**os.environ, "MINARI_DATASETS_PATH": str(folder / "datasets")}
    environment.pop("SC2PATH", None)
    began_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "sc2pool", *command.split()],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    taken_s = time.monotonic() - began_s
    output = done.stdout + done.stderr
    good = bool(re.search(said, output)) and "Traceback" not in output
    if right:
        good = good and done.returncode == 0
    else:
        complaint = [
            line for line in done.stderr.splitlines() if "playing the stand-in" not in line
        ]
        good = good and done.returncode == 2 and len(complaint) <= 3
    print(f"{'ok ' if good else 'NOT'} {taken_s:6.1f} s  sc2pool {command}", flush=True)
    if not good:
        print(output, flush=True)
    return good


if __name__ == "__main__":
    sys.exit(main())
