"""`SelfPlay`: what a run has more if the policy is trained against itself.

snapshots/       copies of the policy, at equal distances; the first is from before the training
win_rates.csv    matches against the first snapshot and the scripted player
the curve        shows these win rates instead of returns
"""

from __future__ import annotations

from pathlib import Path

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from sc2pool import SnapshotCallback
from sc2pool.cli.stop import Stop
from sc2pool.cli.training.run_folder import BEST_MODEL_FILE, WIN_RATES_FILE, saved_steps
from sc2pool.cli.training.self_play.curve import draw_win_rates
from sc2pool.cli.training.self_play.matches import (
    MORE_AT_THE_END,
    MatchEvaluation,
    matches_for,
)
from sc2pool.cli.training.self_play.opponents import store_of, yardsticks
from sc2pool.cli.training.self_play.results import ResultLog
from sc2pool.cli.training.settings.options import TrainOptions
from sc2pool.cli.training.settings.self_play import SHARED
from sc2pool.errors import ConfigError
from sc2pool.foreign import why_not_ours


class SelfPlay:
    """The additions to one run, whose folder exists.

    Args:
        options: of the run.
        model: that learns; its first snapshot is saved here, unless the run has one already.

    Raises:
        ConfigError: the snapshot cannot be saved; or another user can put snapshots into the
            folder, which may run code of theirs when they are loaded.
    """

    def __init__(self, options: TrainOptions, model: BaseAlgorithm) -> None:
        self._options = options
        self._store = store_of(options)
        self._results = ResultLog(
            options.out / WIN_RATES_FILE,
            options.steps_done,
            saved_steps(options.out / BEST_MODEL_FILE),
        )
        self._store.drop_later(options.steps_done)
        try:
            self._store.folder.mkdir(exist_ok=True)
            for folder in (options.out, self._store.folder):
                if why := why_not_ours(folder.stat()):
                    raise ConfigError(f"{folder}: snapshots are loaded from it, but {why}")
            # A run that begins may find the first snapshot of one that was killed before it saved.
            if options.resume is None or not self._store.snapshots():
                self._store.add(model, options.steps_done)
        except OSError as error:
            raise ConfigError(
                f"{self._store.folder}: no snapshot can be saved ({error.strerror or error})"
            ) from error

    def callbacks(self, evaluation_env: VecEnv, stop: Stop) -> list[BaseCallback]:
        """The callbacks beside the learning."""
        options = self._options
        assert options.snapshot_every is not None, "a run with self-play has it"
        names = list(yardsticks(options))
        return [
            SnapshotCallback(self._store, options.snapshot_every),
            MatchEvaluation(evaluation_env, names, options, stop, self._results),
        ]

    def win_rates(self) -> dict[str, float]:
        """Of the newest evaluation, by opponent."""
        return {name: row.win_rate for name, row in self._results.latest().items()}

    def draw(self, path: Path, title: str) -> None:
        """Write the learning curve."""
        draw_win_rates(path, self._results.rows, title)

    def outcome(self) -> str:
        """The newest evaluation in words."""
        return ", ".join(map(str, self._results.latest().values())) or "no match was played"


def how(options: TrainOptions) -> str:
    """The mode and the evaluations in words, for the banner."""
    mode = options.self_play
    plays = "both sides of each match" if mode == SHARED else f"against its own snapshots, {mode}"
    opponents = len(yardsticks(options))
    matches, last = (
        matches_for(games, opponents)
        for games in (options.eval_episodes, MORE_AT_THE_END * options.eval_episodes)
    )
    every = f"{matches} matches every {options.eval_every:,} steps, {last} at the end"
    return f"{plays}\ntests   {every}"
