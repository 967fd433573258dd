"""Evaluations of a policy that is trained against itself: matches against fixed opponents.

Rules: games of their own are played, with the same seeds every time; all draw their actions as in
training, because between two players the best policy is often a mixed one, and its likeliest action
alone may lose; the random numbers are the evaluation's own, so the training goes on as without it;
all opponents play in one pool and take turns; a match that a fault cut short does not count; what
cannot be written (a full disk) is said, and the training goes on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from sc2pool.cli.stop import Stop, say
from sc2pool.cli.training.evaluation import SEED, filmed
from sc2pool.cli.training.run_folder import BEST_MODEL_FILE, saved_steps
from sc2pool.cli.training.self_play.results import ResultLog, ResultRow
from sc2pool.cli.training.settings.algorithms import ALGORITHMS
from sc2pool.cli.training.settings.options import TrainOptions
from sc2pool.tasks.opponents.models import save_model
from sc2pool.tasks.opponents.results import OPPONENT, RESULT
from sc2pool.tasks.registry import resolve
from sc2pool.tasks.teams.team_task import agents_of

MORE_AT_THE_END = 5
"""The last evaluation has five times as many matches as each of the others."""


def matches_for(games: int, opponents: int) -> int:
    """The matches of an evaluation: of each opponent one more if the games are odd."""
    return (games + games % 2) * opponents


class MatchEvaluation(BaseCallback):
    """Plays matches before the training, each time that `eval_every` env steps are done, and after.

    The opponents of the games take turns; the games are closed by the caller.
    """

    def __init__(
        self,
        env: VecEnv,
        opponents: Sequence[str],
        options: TrainOptions,
        stop: Stop,
        results: ResultLog,
    ) -> None:
        super().__init__()
        self._env = env
        self._opponents = opponents
        self._options = options
        self._stop = stop
        self._results = results
        self._agents = agents_of(resolve(options.task))
        assert options.eval_every is not None, "a run with self-play has it"
        self._every = options.eval_every
        self._next_at = options.steps_done + self._every

    def _on_training_start(self) -> None:
        if not self._results.rows:
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
        """Play matches against each opponent, and record what came of them.

        Args:
            games: against each; one more if it is odd, because the learner plays both sides.
        """
        matches = matches_for(games, len(self._opponents))
        filming = filmed(self._env, self._options, self.num_timesteps)
        with filming as film, torch.random.fork_rng():
            torch.manual_seed(SEED)
            found = play_matches(
                self.model,
                self._env,
                matches,
                agents=self._agents,
                masks=ALGORITHMS[self._options.algo].uses_masks,
                stop=self._stop,
                film=film,
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
            # The rows first: a model without its rows could not be compared with later ones. The
            # file of the best model says which rows belong to it.
            before = self._results.quality(saved_steps(path))
            self._results.add(*rows)
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
    masks: bool,
    stop: Stop,
    film: Callable[[bool], None],
) -> dict[str, Counter[str]] | None:
    """Play matches with actions that the model draws.

    Those that begin first are counted, not those that end first: otherwise short matches would
    count more often than they are played.

    Args:
        env: games in which only the model learns.
        agents: how many rows each game has.
        masks: whether the model wants action masks.
        film: called after every step of the first env, with whether its match is over.

    Returns:
        For each opponent, how often each result came; None if stopped.
    """
    found: dict[str, Counter[str]] = defaultdict(Counter)
    env.seed(SEED)
    seen: Any = env.reset()
    playing = list(range(env.num_envs // agents))
    begun, over = len(playing), 0
    state = None
    starts = np.ones(env.num_envs, bool)
    while over < matches:
        if stop.signal is not None:
            return None
        more: dict[str, Any] = (
            {"action_masks": np.stack(env.env_method("action_masks"))} if masks else {}
        )
        actions, state = model.predict(seen, state=state, episode_start=starts, **more)
        seen, _, starts, infos = env.step(actions)
        film(bool(starts[0]))
        for index in np.flatnonzero(starts[::agents]).tolist():
            if playing[index] < matches:
                over += 1
                info = infos[index * agents]
                if RESULT in info:  # a fault's has none
                    found[info[OPPONENT]][info[RESULT]] += 1
            playing[index] = begun
            begun += 1
    return found
