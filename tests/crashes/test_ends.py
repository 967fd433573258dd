"""A command that is ended while it changes its files loses, doubles and damages nothing.

A command first runs undisturbed, and its changes are logged. Then it runs again for each chosen
change: at this change, it is killed, or killed in the middle of a write, or the disk becomes full.
The test checks the files, lets the command's second part run, and checks the files again.

A check fails with an AssertionError that begins with the kind of the damage: lost or doubled. Any
other exception means that the check cannot read a file, because the file is damaged ("torn").
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import imageio_ffmpeg
import minari
import mpyq
import optuna
import pytest
import yaml
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from sc2pool.cli.training.evaluation import EvaluationRow
from sc2pool.cli.training.run_folder import EpisodeRow, describe, read_rows, saved_steps
from sc2pool.cli.training.self_play import ResultLog
from sc2pool.foreign import read_table
from sc2pool.tasks.opponents.models import SavedModel
from sc2standin.version import BASE_BUILD
from tests.crashes.conftest import FILL, KILL, NOTHING, TEAR, Ended, Run
from tests.tiers import is_long

optuna.logging.set_verbosity(optuna.logging.ERROR)
LATEST = 1 << 60
"""A number of env steps that no training reaches."""


class Command(ABC):
    """A command that is tested, and the checks of its files.

    Args:
        folder: an empty folder for the files.
        game: the installation that is played.
    """

    program: ClassVar = "sc2pool"
    statuses: ClassVar = (0,)
    """Exit codes with which an undisturbed command may end."""

    def __init__(self, folder: Path, game: Path) -> None:
        self.folder, self.game = folder, game
        self.environment: dict[str, str] = {}

    @abstractmethod
    def begin(self) -> list[object]:
        """The arguments of the first part."""

    def resume(self) -> list[object]:
        """The arguments of the second part, which runs however the first part has ended."""
        return self.begin()

    @abstractmethod
    def check(self, ended: Ended) -> None:
        """Check the files of a part, however it has ended."""

    @abstractmethod
    def check_resumed(self, *, all_figures: bool) -> None:
        """Check the files after the undisturbed second part.

        Args:
            all_figures: whether every update's figures must exist; a full disk may prevent some.
        """


def flags(**options: object) -> list[object]:
    """Options of a command line."""
    return [
        part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)
    ]


def require_none_lost(what: str, before: Iterable[Any], after: Iterable[Any]) -> None:
    kept = list(after)
    missing = [one for one in before if one not in kept]
    assert not missing, f"lost: {what} {missing}"


def require_once(what: str, found: list[Any]) -> None:
    twice = [one for one in found if found.count(one) > 1]
    assert not twice, f"doubled: {what} {twice}"


def require_tidy(folder: Path) -> None:
    left = [path.name for path in folder.rglob("unfinished-*")]
    assert not left, f"left: {left}"


class Training(Command):
    """`train` with evaluations: 512 steps, and 256 more in the second part."""

    UPDATE_STEPS: ClassVar = 128

    def begin(self) -> list[object]:
        hyperparameters = self.folder.with_suffix(".yml")
        hyperparameters.write_text(
            f"default: {{n_steps: {self.UPDATE_STEPS}, batch_size: 64, n_epochs: 1, "
            "policy_kwargs: {net_arch: [8]}}"
        )
        fixed = flags(game=self.game, n=1, seed=1, hyperparameters=hyperparameters)
        return ["train", *self.options(), *fixed, "--out", self.folder]

    def options(self) -> list[object]:
        return flags(task="MoveToBeacon", steps=512, eval_every=256, eval_episodes=1)

    def resume(self) -> list[object]:
        models = [self.folder / name for name in ("model.zip", "best_model.zip")]
        saved = next((saved_steps(model) for model in models if model.exists()), None)
        self.resumed_from = saved or 0
        self.before = self.figures(self.resumed_from)
        if saved is None:
            return self.begin()
        return ["train", *flags(resume=self.folder, steps=self.total_steps())]

    def total_steps(self) -> int:
        return 768

    def figures(self, until: int) -> dict[str, list[Any]]:
        """The rows of the run's files, up to this number of env steps."""
        episodes = read_rows(self.folder / "episodes.csv", EpisodeRow)
        return {
            "updates": [steps for steps in self.updates() if steps <= until],
            "episodes": [one for one in episodes if one.total_steps <= until],
            "evaluations": [one for one in self.evaluations() if one.total_steps <= until],
        }

    def updates(self) -> list[int]:
        path = self.folder / "progress.csv"
        names, *rows = (list(read_table(path)) if path.exists() else []) or [[]]
        column = names.index("time/total_timesteps") if names else 0
        return [int(row[column]) for row in rows if row[column]]

    def evaluations(self) -> list[Any]:
        return read_rows(self.folder / "evaluations.csv", EvaluationRow)

    def quality(self) -> float | None:
        """The score of the saved best model in its evaluation; None without such a model."""
        steps = saved_steps(self.folder / "best_model.zip")
        of_best = [one.mean_return for one in self.evaluations() if one.total_steps == steps]
        return max(of_best, default=None)

    def check(self, ended: Ended) -> None:
        for model in (*self.folder.glob("[!u]*.zip"), *self.folder.glob("snapshots/step-*.zip")):
            SavedModel(model.stem, model).load()
        describe(self.folder)
        self.figures(0)
        check_image(self.folder / "learning_curve.png", needed=False)
        told = re.search(r"saved after ([\d,]+) steps", ended.said)
        if told is not None:
            steps = saved_steps(self.folder / "model.zip")
            assert steps == int(told[1].replace(",", "")), f"lost: the model, said {told[0]}"
        self.best = self.quality()
        if (self.folder / "best_model.zip").exists():
            assert self.best is not None, "lost: the evaluation of the best model"

    def check_resumed(self, *, all_figures: bool) -> None:
        require_tidy(self.folder)
        after = self.figures(LATEST)
        for what, before in self.before.items():
            require_none_lost(what, before, after[what])
        updates = self.updates()
        require_once("updates", updates)
        require_once("episodes", [one.total_steps for one in after["episodes"]])
        assert updates == sorted(updates), f"doubled: updates {updates}"
        if all_figures:
            own = [steps for steps in updates if steps > self.resumed_from]
            first = self.resumed_from + self.UPDATE_STEPS
            assert own == list(range(first, own[-1] + 1, self.UPDATE_STEPS)), f"lost: of {own}"
            events = EventAccumulator(str(self.folder)).Reload().Scalars("time/fps")
            shown = [one.step for one in events]
            assert shown == updates, f"lost: TensorBoard shows {shown} of {updates}"


class SelfPlay(Training):
    """`train --self-play` against snapshots: 128 steps, and 64 more in the second part."""

    UPDATE_STEPS: ClassVar = 64

    def options(self) -> list[object]:
        options = flags(task="MarineDuel", self_play="uniform", steps=128)
        return options + flags(snapshot_every=64, eval_every=128, eval_episodes=1)

    def total_steps(self) -> int:
        return 192

    def evaluations(self) -> list[Any]:
        return ResultLog(self.folder / "win_rates.csv", LATEST).rows

    def quality(self) -> float | None:
        steps = saved_steps(self.folder / "best_model.zip")
        return ResultLog(self.folder / "win_rates.csv", LATEST).quality(steps)


class Recording(Command):
    """`record`: three episodes, and two more in the second part."""

    ID: ClassVar = "crashes/scripted-v0"

    def __init__(self, folder: Path, game: Path) -> None:
        super().__init__(folder, game)
        self.environment = {"MINARI_DATASETS_PATH": str(folder)}

    def begin(self) -> list[object]:
        options = flags(task="MoveToBeacon", game=self.game, steps=700, n=1, seed=5)
        return ["record", "scripted", *options, "--dataset", self.ID]

    def resume(self) -> list[object]:
        self.before = self.episodes()
        return [*self.begin(), "--resume", "--steps", 1200]

    def episodes(self) -> list[bytes]:
        """The observations of each episode that Minari reads."""
        data = self.folder / self.ID / "data"
        if not data.exists():
            return []
        dataset = minari.MinariDataset(data)
        ids = [one["id"] for one in dataset.storage.get_episode_metadata(range(len(dataset)))]
        assert ids == list(range(len(dataset))), f"doubled: ids {ids}"
        return [one.observations.tobytes() for one in dataset.iterate_episodes()]

    def check(self, ended: Ended) -> None:
        episodes = self.episodes()
        require_once("episodes", episodes)
        told = re.search(r"steps in ([\d,]+) episode", ended.said)
        assert told is None or int(told[1]) == len(episodes), f"lost: episodes, said {told}"

    def check_resumed(self, *, all_figures: bool) -> None:
        require_tidy(self.folder / self.ID)
        episodes = self.episodes()
        require_none_lost("episodes", self.before, episodes)
        assert len(episodes) == 5, f"lost: {len(episodes)} of 5 episodes"


class Tuning(Command):
    """`tune`: two trials, and a third one in the second part."""

    def begin(self) -> list[object]:
        options = flags(game=self.game, trials=2, steps=64, n=1, eval_episodes=1, seed=3)
        return ["tune", "MoveToBeacon", *options, "--out", self.folder]

    def resume(self) -> list[object]:
        self.before = self.values()
        return [*self.begin(), "--trials", 3]

    def study(self) -> optuna.Study | None:
        storage = f"sqlite:///{self.folder / 'study.db'}"
        if not (self.folder / "study.db").exists():
            return None
        names = optuna.get_all_study_names(storage)
        return optuna.load_study(study_name=names[0], storage=storage) if names else None

    def values(self) -> list[float]:
        study = self.study()
        return [one.value for one in study.trials if one.value is not None] if study else []

    def check(self, ended: Ended) -> None:
        if (self.folder / "best.yml").exists():
            (section,) = yaml.safe_load((self.folder / "best.yml").read_text()).values()
            assert section["learning_rate"] > 0
        told = re.findall(r"trial \d+: mean return", ended.said)
        values = self.values()
        assert len(values) >= len(told), f"lost: trials, said {len(told)}, has {len(values)}"

    def check_resumed(self, *, all_figures: bool) -> None:
        require_tidy(self.folder)
        study = self.study()
        assert study is not None
        assert self.values()[: len(self.before)] == self.before, "lost: trials"
        finished = [one for one in study.trials if one.state.is_finished()]
        assert len(finished) == 3, f"lost: {len(finished)} of 3 trials"
        (section,) = yaml.safe_load((self.folder / "best.yml").read_text()).values()
        rate = study.best_trial.params["learning_rate"]
        assert section["learning_rate"] == rate, "lost: the best trial"


def check_image(path: Path, *, needed: bool = True) -> None:
    """Raise an exception unless the picture can be read."""
    if needed or path.exists():
        with Image.open(path) as image:
            image.load()


class Writing(Command):
    """A command that replaces earlier files by new ones.

    Attributes:
        readers: for each file's name, the function that raises an exception if the file is damaged.
    """

    OLD: ClassVar = b"an earlier file"
    readers: ClassVar[dict[str, Callable[[Path], object]]]

    def __init__(self, folder: Path, game: Path) -> None:
        super().__init__(folder, game)
        for name in self.readers:
            (folder / name).write_bytes(self.OLD)

    def check(self, ended: Ended) -> None:
        for name, read in self.readers.items():
            path = self.folder / name
            assert path.exists(), f"lost: {name}"
            if path.read_bytes() != self.OLD:
                read(path)
            else:
                assert not self.has_written(ended), f"lost: the new {name}"

    def has_written(self, ended: Ended) -> bool:
        """True if the command reports that it has written its files."""
        return ended.status in self.statuses

    def check_resumed(self, *, all_figures: bool) -> None:
        """Check nothing more, because `check` has checked all files."""


class Playing(Writing):
    """`play` with a replay, a video and a GIF."""

    readers: ClassVar = {
        "a.SC2Replay": lambda path: mpyq.MPQArchive(str(path)).extract(),
        "a.gif": check_image,
        "a.mp4": lambda path: list(imageio_ffmpeg.read_frames(str(path))),
    }

    def begin(self) -> list[object]:
        replay, gif, video = (self.folder / name for name in self.readers)
        files = flags(replay=replay, gif=gif, video=video)
        return ["play", "3m", *flags(game=self.game, episodes=1), *files]


class Measuring(Writing):
    """`bench --png`."""

    readers: ClassVar = {"a.png": check_image}

    def begin(self) -> list[object]:
        options = flags(game=self.game, n=1, seconds=0.2, spares=0, png=self.folder / "a.png")
        return ["bench", "MoveToBeacon", *options]


class Examining(Writing):
    """`doctor --full`, with so little time that it reports a failure."""

    statuses: ClassVar = (1,)
    readers: ClassVar = {
        f"doctor-Base{BASE_BUILD}.json": lambda path: json.loads(path.read_text()),
        f"doctor-Base{BASE_BUILD}.txt": lambda path: path.read_bytes().rindex(b"\n", -1),
    }

    def begin(self) -> list[object]:
        return ["doctor", "--full", *flags(timeout=2, game=self.game, out=self.folder)]

    def has_written(self, ended: Ended) -> bool:
        return "the report is in" in ended.complaints  # exit code 1 may come without a report


class Installing(Command):
    """`sc2standin install`."""

    program: ClassVar = "sc2standin"

    def begin(self) -> list[object]:
        tempers = "all" if is_long() else "recorded"  # the same tempers as in `standin_dir`
        return ["install", self.folder / "game", "--temper", tempers]

    def check(self, ended: Ended) -> None:
        found, whole = contents(self.folder / "game"), contents(self.game)
        torn = [name for name in found if name in whole and found[name] != whole[name]]
        assert not torn, f"torn: {torn}"

    def check_resumed(self, *, all_figures: bool) -> None:
        require_none_lost("files", contents(self.game), contents(self.folder / "game"))


def contents(root: Path) -> dict[str, bytes]:
    """The content of each file below a folder, by the path in the folder."""
    files = [path for path in root.rglob("*") if path.is_file()]
    return {os.fspath(path.relative_to(root)): path.read_bytes() for path in files}


LASTING: list[type[Command]] = [Training, SelfPlay, Recording, Tuning]
COMMANDS = [*LASTING, Playing, Measuring, Examining, Installing]
ACTIONS = {"killed": KILL, "killed within": TEAR, "full": FILL}
MOST_OTHERS = 16
"""The number of changes that a test tries besides renames; a fixed seed draws them."""
YEAR_S = 365 * 86_400
pytestmark = pytest.mark.timeout(3600)

New = Callable[[type[Command]], Command]


@pytest.fixture
def new(tmp_path: Path, standin_dir: Path) -> New:
    """Makes a command whose folder is empty."""

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
        AssertionError: the files are damaged; the message begins with the kind of the damage.
    """
    ended = run_part(run, command, command.begin(), action=action, change=change, clock_s=clock_s)
    if action == FILL:
        assert ended.status >= 0, f"odd: {ended}"
    else:  # a run with fewer changes ends undisturbed
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
    """Call a check, and report any error except AssertionError as a damaged file."""
    try:
        checks()
    except AssertionError:
        raise
    except Exception as error:
        files = sorted(path.name for path in command.folder.rglob("*"))
        raise AssertionError(f"torn: {error!r}, of {files}") from error


def instants(changes: list[str], action: int) -> list[int]:
    """The numbers of the changes to try; for `KILL`, all renames and a random sample of the rest.

    For a kill within a write, and for a full disk, a random sample of the writes is tried.
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
    """The wall clock jumps between the command's two parts."""
    command = new(kind)
    play(run, command, clock_s=clocks[0])
    play_on(run, command, clock_s=clocks[1])
