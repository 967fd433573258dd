"""Evaluates the policy during a training: mean returns, the best model, and videos.

Rules: evaluations have their own games, so they do not interrupt the training's episodes. Every
evaluation has the same seeds, so that mean returns can be compared. The policy plays its best
actions and does not sample. Episodes that a fault cut short are left out of the means. If a file
cannot be written (a full disk), a message says so, and the training continues.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from math import inf
from typing import NamedTuple

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from sc2pool.cli.films import Video
from sc2pool.cli.play import Ended, play_episodes
from sc2pool.cli.stop import Stop, say
from sc2pool.cli.training.algorithms import ALGORITHMS
from sc2pool.cli.training.options import TrainOptions
from sc2pool.cli.training.run_folder import (
    BEST_MODEL_FILE,
    EVALUATIONS_FILE,
    VIDEOS_FOLDER,
    keep_rows,
    read_rows,
    saved_steps,
    write_rows,
)
from sc2pool.integration import PoolVecEnv, save_model

SEED = 1_000_003
"""The seed of all evaluations; a user is unlikely to choose this number for a training."""


class EvaluationRow(NamedTuple):
    """One row of `evaluations.csv`."""

    total_steps: int
    """The env steps for which the policy had been trained."""
    mean_return: float
    std_return: float
    mean_length: float
    """The mean length of an episode, in env steps."""
    episodes: int
    """The number of episodes that no fault cut short; the means are taken over these."""


class Evaluation(BaseCallback):
    """Evaluates the policy after every `eval_every` env steps, and after the training.

    Without `eval_every`, the policy is evaluated only after the training, to film a video. The
    caller closes `env`; for videos it must have `render_mode="rgb_array"`. A signal that `stop`
    receives also ends a running evaluation. `best` is the best model's row, or None before the
    first evaluation.
    """

    def __init__(self, env: VecEnv, options: TrainOptions, stop: Stop) -> None:
        super().__init__()
        self._env = env
        self._options = options
        self._stop = stop
        self._pauses_training = options.realtime and not ALGORITHMS[options.algo].plays_on
        self._path = options.out / EVALUATIONS_FILE
        rows = read_rows(self._path, EvaluationRow)
        # Take the saved model's row; a better row's model may be unsaved (full disk, killed run).
        best_steps = saved_steps(options.out / BEST_MODEL_FILE)
        of_best = [row for row in rows if row.total_steps == best_steps]
        self.best = max(of_best, key=lambda row: row.mean_return, default=None)
        # Drop rows newer than the resumed model, because their evaluations will be made again.
        self._rows = keep_rows(
            self._path,
            EvaluationRow,
            rows,
            lambda row: row.total_steps <= options.steps_done or row is self.best,
        )
        self._evaluated_at = -1
        self._every = inf if options.eval_every is None else options.eval_every
        self._next_at = options.steps_done + self._every

    def _on_step(self) -> bool:
        if self.num_timesteps >= self._next_at:
            self._next_at = self.num_timesteps + self._every
            self.evaluate()
        return True

    def _on_training_end(self) -> None:
        if self._stop.signal is None and self._evaluated_at < self.num_timesteps:
            self.evaluate()
            self.logger.dump(self.num_timesteps)

    def evaluate(self) -> None:
        self._evaluated_at = self.num_timesteps
        played = self._play()
        if self._stop.signal is not None:
            return
        whole = [one for one in played if one.whole]
        if not whole:
            say(f"evaluation at {self.num_timesteps:,} steps: no episode without a fault")
            return
        returns = np.array([one.episode_return for one in whole])
        row = EvaluationRow(
            self.num_timesteps,
            round(float(returns.mean()), 6),
            round(float(returns.std()), 6),
            round(float(np.mean([one.steps for one in whole])), 2),
            len(whole),
        )
        self.logger.record("eval/mean_reward", row.mean_return)  # SB3's callback uses this name
        self.logger.record("eval/mean_ep_length", row.mean_length)
        best = self.best is None or row.mean_return > self.best.mean_return
        say(
            f"evaluation at {row.total_steps:,} steps: mean return {row.mean_return:.2f} ± "
            f"{row.std_return:.2f} over {row.episodes} episodes{', the best so far' * best}"
        )
        try:
            # Write the row first, because a model without a row cannot be compared with later ones.
            write_rows(self._path, EvaluationRow, [*self._rows, row])
            self._rows.append(row)
            if best:
                save_model(self.model, self._options.out / BEST_MODEL_FILE)
                self.best = row
        except OSError as error:
            say(f"cannot save the evaluation to {self._options.out}: {error.strerror or error}")

    def _play(self) -> list[Ended]:
        if self._pauses_training:
            training = self.training_env.unwrapped
            assert isinstance(training, PoolVecEnv), "nothing else plays in real time"
            training.pause()  # the next step resumes the games
        self._env.seed(SEED)
        games, episodes = self._env.unwrapped, self._options.eval_episodes
        try:
            with filmed(self._env, self._options, self.num_timesteps) as films:
                played = play_episodes(
                    self._env,
                    self.model,
                    episodes,
                    deterministic=True,
                    watchers=films,
                    stop=self._stop,
                )
                return list(islice(played, episodes))  # episodes with a fault are not played again
        finally:
            if self._options.realtime and isinstance(games, PoolVecEnv):
                games.pause()


@contextmanager
def filmed(env: VecEnv, options: TrainOptions, steps: int) -> Iterator[list[Video]]:
    """Film the env's next episode if `options` asks for videos; yields at most one film."""
    games = env.unwrapped
    if not options.video or not isinstance(games, PoolVecEnv):
        yield []
        return
    path = options.out / VIDEOS_FOLDER / f"step-{steps}.mp4"
    with closing(Video(path, games.pool, float(games.pool.metadata["render_fps"]))) as video:
        yield [video]
