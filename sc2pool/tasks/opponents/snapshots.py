"""`SnapshotStore`: a folder of the learner's earlier policies, as opponents of the learner.

The trainer calls `store.add(model, steps)` before the training and then regularly. The trainer also
calls `rates = store.win_rates()` once, `rates.note(infos)` after each step, and `rates.save()`
regularly. A worker chooses each episode's opponent among the files that exist when the episode
begins.

The files `step-0.zip`, `step-20000.zip` and so on are models in SB3's format, named by the env
steps for which the policy was trained. `win_rates.json` has the learner's win rate against each
snapshot (see `results`).

Rules: files are created and replaced atomically, because workers read them at any time. The first
snapshot is never removed. The choice depends only on the files and on the episode's seed, or on the
episode's number if it has no seed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sc2pool.config import is_number
from sc2pool.errors import ConfigError
from sc2pool.tasks.opponents.models import Saveable, SavedModel, draws_of, model_pair, save_model
from sc2pool.tasks.opponents.results import Score, WinRates, read_scores
from sc2pool.tasks.player import Episode
from sc2pool.tasks.queue_pair import QueuePair

Rule = Literal["latest", "uniform", "prioritised"]
RULES: Final[tuple[Rule, ...]] = get_args(Rule)
WIN_RATES_FILE = "win_rates.json"
_NAME = re.compile("step-(0|[1-9][0-9]*)")  # the names that `add` gives; other files are ignored
_TRIES = 5
"""A worker chooses at most this often: the trainer may remove a chosen file before it is loaded."""


@dataclass(frozen=True)
class SnapshotStore:
    """A folder of the learner's snapshots, and the rule by which an episode's opponent is chosen.

    Args:
        folder: the snapshots' folder, which is created with the first snapshot.
        rule: "latest" is always the newest snapshot, "uniform" gives all snapshots the same
            probability, and "prioritised" gives each snapshot the weight (1 − win rate)^power, so
            that strong opponents play more often. "prioritised" is prioritised fictitious
            self-play: f_hard of Vinyals et al., Grandmaster level in StarCraft II using multi-agent
            reinforcement learning, Nature 575, 2019.
        power: the exponent of "prioritised".
        latest_share: the share of episodes against the newest snapshot; in all other episodes,
            the rule chooses.
        most: the number of snapshots that are kept; if one more is added, every second snapshot is
            removed, except the first and the newest.

    Raises:
        ConfigError: the rule is unknown, or a number is out of range.
    """

    folder: Path
    rule: Rule = "uniform"
    power: float = 2.0
    latest_share: float = 0.0
    most: int = 50

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder).absolute())
        if self.rule not in RULES:
            raise ConfigError(f"rule must be one of {', '.join(RULES)}, got {self.rule!r}")
        if not (is_number(self.power) and 0 < self.power < np.inf):
            raise ConfigError(f"power must be above 0, got {self.power!r}")
        if not (is_number(self.latest_share) and 0 <= self.latest_share <= 1):
            raise ConfigError(f"latest_share must be from 0 to 1, got {self.latest_share!r}")
        if type(self.most) is not int or self.most < 3:
            raise ConfigError(f"most must be a whole number of at least 3, got {self.most!r}")

    def snapshots(self) -> list[SavedModel]:
        """The snapshots in the folder, in the order of their steps."""
        try:
            found = [path for path in self.folder.glob("step-*.zip") if path.is_file()]
        except OSError:
            return []
        names = [_NAME.fullmatch(path.stem) for path in found]
        steps = sorted(int(name[1]) for name in names if name)
        return [self._snapshot(step) for step in steps]

    def add(self, model: Saveable, steps: int) -> SavedModel:
        """Save a snapshot of the model, and thin out the folder if it is full.

        Args:
            steps: the env steps for which the model has been trained.

        Raises:
            OSError: the file cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        snapshot = self._snapshot(steps)
        assert isinstance(snapshot.source, Path)
        save_model(model, snapshot.source)
        present = self.snapshots()
        if len(present) > self.most:
            for old in present[1:-1:2]:
                with suppress(PermissionError):  # Windows cannot remove a file that is being read
                    _remove(old)
        return snapshot

    def drop_later(self, steps: int) -> None:
        """Before a run continues at `steps` env steps, remove the snapshots with more steps."""
        for snapshot in self.snapshots():
            if steps_of(snapshot) > steps:
                _remove(snapshot)

    def win_rates(self) -> WinRates:
        """The learner's win rates, for the trainer to update. Call this once per training."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return WinRates(self.folder / WIN_RATES_FILE)

    def choose(self, episode: Episode) -> SavedModel:
        """The opponent of this episode.

        Raises:
            ConfigError: the folder has no snapshot.
        """
        present = self.snapshots()
        if not present:
            raise ConfigError(
                f"no snapshot in {self.folder}: call store.add(model, 0) before the first reset"
            )
        scores: Mapping[str, Score] = {}
        if self.rule == "prioritised":
            with suppress(ConfigError):  # the trainer reports a damaged file
                scores = read_scores(self.folder / WIN_RATES_FILE)
        weights = self.weights([snapshot.name for snapshot in present], scores)
        return present[int(draws_of(episode).choice(len(present), p=weights))]

    def weights(self, names: Sequence[str], scores: Mapping[str, Score]) -> NDArray[np.float64]:
        """The probability of each snapshot.

        Args:
            names: the snapshots' names, the newest last.
            scores: the scores against some of the snapshots.
        """
        newest = np.zeros(len(names))
        newest[-1] = 1.0
        if self.rule == "latest":
            return newest
        weights = np.ones(len(names))
        if self.rule == "prioritised":
            rates = [scores.get(name, Score()).win_rate for name in names]
            hard = (1.0 - np.array(rates)) ** self.power
            if hard.sum() > 0:  # the sum is 0 if the learner beats all snapshots
                weights = hard
        shared = self.latest_share * newest + (1 - self.latest_share) * weights / weights.sum()
        return shared / shared.sum()  # type: ignore[no-any-return]

    def _snapshot(self, steps: int) -> SavedModel:
        name = f"step-{steps}"
        return SavedModel(name, self.folder / f"{name}.zip")


def steps_of(snapshot: SavedModel) -> int:
    """The env steps for which a snapshot was trained."""
    found = _NAME.fullmatch(snapshot.name)
    assert found is not None, "the store has named it"
    return int(found[1])


def _remove(snapshot: SavedModel) -> None:
    assert isinstance(snapshot.source, Path)
    snapshot.source.unlink(missing_ok=True)


@dataclass(frozen=True)
class SnapshotOpponent:
    """Plays each episode with a snapshot of the store."""

    store: SnapshotStore
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]

    def begin(self, episode: Episode) -> tuple[str, QueuePair]:
        """The name and the queue pair of a chosen snapshot; ConfigError if no snapshot fits."""
        for _ in range(_TRIES):
            chosen = self.store.choose(episode)
            try:
                chosen.check_spaces(self.observation_space, self.action_space)
                policy = chosen.load()
            except ConfigError:
                if isinstance(chosen.source, Path) and not chosen.source.exists():
                    continue
                raise
            return chosen.name, model_pair(policy, self.action_space, episode)
        raise ConfigError(f"the snapshots in {self.store.folder} vanish before they can be loaded")


@dataclass(frozen=True)
class FirstOpponent:
    """Plays each episode with the store's first snapshot, which may be added later."""

    store: SnapshotStore
    action_space: spaces.Space[Any]

    def begin(self, episode: Episode) -> tuple[str, QueuePair]:
        present = self.store.snapshots()
        if not present:
            raise ConfigError(f"no snapshot in {self.store.folder}")
        return "first", model_pair(present[0].load(), self.action_space, episode)
