"""Self-play: what a run has in addition if its policy is trained against itself.

The folder snapshots has copies of the policy, made before the training and at intervals.
The file win_rates.csv has a row for each evaluation and opponent (see `opponents_of`).
The learning curve shows win rates, not returns, with a line for each opponent. One player wins what
the other player loses, so the mean return says nothing.

Rules: an evaluation has its own games, with the same seeds each time. All players sample their
actions as in training: the best policy of a game of two players is often a mixed one, which may
lose if it always plays its likeliest action. The evaluation has its own random numbers, so it does
not change the training. All opponents play in one pool and take turns. A match that a fault cut
short does not count. If a file cannot be written (a full disk), a message says so, and the training
continues. A resumed run continues `win_rates.csv`, but drops rows newer than the resumed model.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.ticker import PercentFormatter
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from sc2pool import SnapshotCallback, SnapshotStore
from sc2pool.cli.drawing import BLUE, GREEN, GREY, Label, add_labels, new_curve, save
from sc2pool.cli.play import Watcher, play_steps
from sc2pool.cli.stop import Stop, say
from sc2pool.cli.training.algorithms import LATEST_SHARE, MODES, SHARED
from sc2pool.cli.training.evaluation import SEED, filmed
from sc2pool.cli.training.options import TrainOptions
from sc2pool.cli.training.run_folder import (
    BEST_MODEL_FILE,
    SNAPSHOTS_FOLDER,
    WIN_RATES_FILE,
    keep_rows,
    read_rows,
    saved_steps,
    write_rows,
)
from sc2pool.errors import ConfigError
from sc2pool.integration import agents_of, resolve_task, save_model, yardsticks
from sc2pool.tasks.opponents.resolve import Opponent
from sc2pool.utilities import shown, why_not_ours


def begin_snapshots(options: TrainOptions, model: BaseAlgorithm) -> SnapshotCallback:
    """Return a callback that saves snapshots of the model into the run's folder, which must exist.

    The first snapshot is saved now, unless a resumed run has snapshots. Raises `ConfigError` if
    saving fails, or if another user can write into the folder: a loaded snapshot may run code.
    """
    assert options.snapshot_every is not None, "a run with self-play has it"
    store = store_of(options)
    store.drop_later(options.steps_done)
    try:
        store.folder.mkdir(exist_ok=True)
        for folder in (options.out, store.folder):
            if why := why_not_ours(folder.stat()):
                raise ConfigError(f"{folder}: snapshots are loaded from it, but {why}")
        # A new run's folder may have a snapshot of a run that was killed before it saved a model.
        if options.resume is None or not store.snapshots():
            store.add(model, options.steps_done)
    except OSError as error:
        raise ConfigError(
            f"{store.folder}: no snapshot can be saved ({error.strerror or error})"
        ) from error
    return SnapshotCallback(store, options.snapshot_every)


def how(options: TrainOptions) -> str:
    """A text for the banner, on the mode of self-play and on the evaluations."""
    mode = options.self_play
    plays = "both sides of each match" if mode == SHARED else f"against its own snapshots, {mode}"
    opponents = len(opponents_of(options))
    matches = matches_for(options.eval_episodes, opponents)
    last = matches_for(MORE_AT_THE_END * options.eval_episodes, opponents)
    every = f"{matches} matches every {options.eval_every:,} steps, {last} at the end"
    return f"{plays}\ntests   {every}"


def store_of(options: TrainOptions) -> SnapshotStore:
    """The run's snapshots, from which opponents are chosen by the run's mode."""
    rule: Any = options.self_play if options.self_play in MODES[1:] else MODES[1]
    return SnapshotStore(options.out / SNAPSHOTS_FOLDER, rule, latest_share=LATEST_SHARE)


def learns_against(options: TrainOptions) -> SnapshotStore | None:
    """The snapshots to train against; None if both sides learn, or if the task has one player."""
    return None if options.self_play in ("", SHARED) else store_of(options)


def opponents_of(options: TrainOptions) -> dict[str, Opponent]:
    """The opponents in evaluations: the first snapshot, and the task's scripted player if any."""
    return yardsticks(store_of(options), resolve_task(options.task))


MORE_AT_THE_END = 5
"""The last evaluation has this many times as many matches as each earlier evaluation."""


def matches_for(games: int, opponents: int) -> int:
    """The matches of an evaluation: each opponent plays `games`, rounded up to an even number."""
    return (games + games % 2) * opponents


class MatchEvaluation(BaseCallback):
    """Plays matches before the training, after every `eval_every` env steps, and at the end.

    The opponents take turns. The caller closes the games.
    """

    def __init__(
        self, env: VecEnv, opponents: Sequence[str], options: TrainOptions, stop: Stop
    ) -> None:
        super().__init__()
        self._env = env
        self._opponents = opponents
        self._options = options
        self._stop = stop
        self.results = ResultLog(
            options.out / WIN_RATES_FILE,
            options.steps_done,
            saved_steps(options.out / BEST_MODEL_FILE),
        )
        self._agents = agents_of(resolve_task(options.task))
        assert options.eval_every is not None, "a run with self-play has it"
        self._every = options.eval_every
        self._next_at = options.steps_done + self._every

    def win_rates(self) -> dict[str, float]:
        return {name: row.win_rate for name, row in self.results.latest().items()}

    def outcome(self) -> str:
        return ", ".join(map(str, self.results.latest().values())) or "no match was played"

    def _on_training_start(self) -> None:
        if not self.results.rows:
            self.evaluate(self._options.eval_episodes)

    def _on_step(self) -> bool:
        if self.num_timesteps >= self._next_at:
            self._next_at = self.num_timesteps + self._every
            if self.num_timesteps < self._options.steps:
                self.evaluate(self._options.eval_episodes)
        return True

    def _on_training_end(self) -> None:
        if self._stop.signal is None:
            self.evaluate(MORE_AT_THE_END * self._options.eval_episodes)
            self.logger.dump(self.num_timesteps)

    def evaluate(self, games: int) -> None:
        """Play matches against each opponent, and record the results.

        `games` is rounded up to an even number, because the learner plays both sides.
        """
        matches = matches_for(games, len(self._opponents))
        filming = filmed(self._env, self._options, self.num_timesteps)
        with filming as films, torch.random.fork_rng():
            torch.manual_seed(SEED)
            found = play_matches(
                self.model,
                self._env,
                matches,
                agents=self._agents,
                stop=self._stop,
                watchers=films,
            )
        if found is None:
            return
        rows = [
            ResultRow(self.num_timesteps, name, sum(of.values()), of["win"], of["loss"])
            for name in self._opponents
            if (of := found.get(name))
        ]
        for row in rows:
            self.logger.record(f"self_play/win_rate/{row.opponent}", row.win_rate)
        words = ", ".join(map(str, rows)) or "no match ended"
        say(f"evaluation at {self.num_timesteps:,} steps: {words}")
        path = self._options.out / BEST_MODEL_FILE
        try:
            # Write the rows first, because a model without rows cannot be compared with later ones.
            # The steps in the best model's file say which rows belong to this model.
            before = self.results.quality(saved_steps(path))
            self.results.add(*rows)
            wins = sum(row.win_rate for row in rows)
            if rows and (before is None or wins > before):
                save_model(self.model, path)
        except OSError as error:
            say(f"cannot save the evaluation to {self._options.out}: {error.strerror or error}")


def play_matches(
    model: BaseAlgorithm,
    env: VecEnv,
    matches: int,
    *,
    agents: int,
    stop: Stop,
    watchers: Sequence[Watcher] = (),
) -> dict[str, Counter[str]] | None:
    """Play matches with actions that the model samples; returns each opponent's counts of results.

    The `matches` matches that begin first are counted, because the matches that end first are
    mostly short. Each game has `agents` rows, all played by the model. A signal that `stop`
    receives ends the matches; the function then returns None.
    """
    found: dict[str, Counter[str]] = defaultdict(Counter)
    env.seed(SEED)
    playing = list(range(env.num_envs // agents))
    begun, over = len(playing), 0
    for _, ends, infos in play_steps(env, model, watchers, stop, deterministic=False):
        for index in np.flatnonzero(ends[::agents]).tolist():
            if playing[index] < matches:
                over += 1
                info = infos[index * agents]
                if "sc2pool.result" in info:  # a match cut short by a fault has no result
                    found[info["sc2pool.opponent"]][info["sc2pool.result"]] += 1
            playing[index] = begun
            begun += 1
        if over >= matches:
            return found
    return None


class ResultRow(NamedTuple):
    """The matches of one evaluation against one opponent."""

    total_steps: int
    """The env steps for which the policy had been trained."""
    opponent: str
    games: int
    """The number of matches, without those that a fault cut short."""
    wins: int
    losses: int

    @property
    def win_rate(self) -> float:
        """Wins per match; ties, and matches that the time limit ended, count as not won."""
        return self.wins / self.games

    def __str__(self) -> str:
        return f"won {self.wins} of {self.games} against {self.opponent}"


class ResultLog:
    """The file `win_rates.csv` and its `rows`, in the order in which they were added.

    Rows after `steps_done`, the resumed model's env steps, are dropped, except the best model's.
    """

    def __init__(self, path: Path, steps_done: int = 0, best_steps: int | None = None) -> None:
        self._path = path
        self.rows = keep_rows(
            path,
            ResultRow,
            read_results(path),
            lambda row: row.total_steps <= steps_done or row.total_steps == best_steps,
        )

    def add(self, *rows: ResultRow) -> None:
        """Record an evaluation's rows; rows lost by an `OSError` are written by the next call."""
        self.rows.extend(rows)
        write_rows(self._path, ResultRow, self.rows)

    def latest(self) -> Mapping[str, ResultRow]:
        return {row.opponent: row for row in self.rows}

    def quality(self, steps: int | None) -> float | None:
        """The sum of the win rates in the evaluation after `steps`; None without this evaluation.

        If a resumed run has repeated an evaluation after the same number of steps, the better
        evaluation counts.
        """
        found: dict[str, list[float]] = defaultdict(list)
        for row in self.rows:
            if row.total_steps == steps:
                found[row.opponent].append(row.win_rate)
        return max(map(sum, zip(*found.values(), strict=False)), default=None)


def read_results(path: Path) -> list[ResultRow]:
    """The rows in a file; see `read_rows`."""
    rows = read_rows(path, ResultRow)
    for row in rows:
        if not (row.games >= 1 and min(row.wins, row.losses) >= 0):
            raise ConfigError(f"{path}: expected matches and how many were won, got {shown(row)}")
    return rows


_STYLES = ((BLUE, "-"), (GREEN, (0, (5, 2))))


def draw_win_rates(path: Path, rows: Sequence[ResultRow], title: str) -> None:
    """Draw the win rates into a PNG file; without rows, the picture has no lines."""
    figure, axes = new_curve(title, "matches won")
    labels = []
    opponents = list(dict.fromkeys(row.opponent for row in rows))
    for opponent, (colour, dashes) in zip(opponents, _STYLES, strict=False):
        those = sorted(row for row in rows if row.opponent == opponent)
        axes.plot(
            [row.total_steps for row in those],
            [row.win_rate for row in those],
            "o",
            color=colour,
            linestyle=dashes,
            linewidth=2.2,
            markersize=5,
            clip_on=False,
            zorder=4,
        )
        last = those[-1]
        text = f"against {opponent}:  {last.win_rate:.0%}"
        labels.append(Label(text, last.win_rate, colour, bold=True))
    axes.axhline(0.5, color=GREY, linewidth=1.0, linestyle=(0, (1, 1.5)))
    axes.set_xlim(0, max([1, *(row.total_steps for row in rows)]))
    axes.set_ylim(0, 1)
    add_labels(axes, labels)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    save(figure, path)
