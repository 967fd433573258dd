"""`SnapshotStore`: earlier policies of the learner, in a folder, as its opponents.

    trainer   store.add(model, steps)   at equal distances; first before the training
              rates = store.win_rates()
              rates.note(infos)         after each step
              rates.save()              now and then
    worker    who plays this episode: chosen among the files that are there when it begins

    step-0.zip, step-20000.zip, …   SB3's format, with the env steps the policy was trained for
    win_rates.json                  the learner's win rate against each; see `results`

Rules: files appear and are replaced in one piece, because workers read them at any time. The first
snapshot is never removed; which one is chosen depends on the episode's seed, or on its number if it
has none, on the files and on nothing else.
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
_NAME = re.compile("step-(0|[1-9][0-9]*)")  # as `add` writes it: nothing else is ours
_TRIES = 5
"""Choices before a worker gives up: the trainer may remove a file between choosing and loading."""


@dataclass(frozen=True)
class SnapshotStore:
    """A folder of the learner's snapshots, and the rule by which an episode's opponent is chosen.

    Args:
        folder: made with the first snapshot.
        rule: "latest"; "uniform", each snapshot as often; "prioritised", those more often that the
            learner wins less against: with a weight of (1 − win rate)^power. That is prioritised
            fictitious self-play (Vinyals et al., Grandmaster level in StarCraft II using
            multi-agent reinforcement learning, Nature 575, 2019, equation for f_hard).
        power: of "prioritised".
        latest_share: of the episodes, this share is against the newest snapshot, and only the
            others follow the rule.
        most: how many snapshots are kept. With one more, every second one is removed, but neither
            the first nor the newest.

    Raises:
        ConfigError: an unknown rule, or a number out of range.
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
        """Those in the folder, in the order of their steps."""
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
            steps: env steps that it has been trained for.

        Raises:
            OSError: it cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        snapshot = self._snapshot(steps)
        assert isinstance(snapshot.source, Path)
        save_model(model, snapshot.source)
        present = self.snapshots()
        if len(present) > self.most:
            for old in present[1:-1:2]:
                with suppress(PermissionError):  # Windows removes no file that a worker reads
                    _remove(old)
        return snapshot

    def drop_later(self, steps: int) -> None:
        """Remove the snapshots of more than these env steps, for a run that continues from
        there."""
        for snapshot in self.snapshots():
            if steps_of(snapshot) > steps:
                _remove(snapshot)

    def win_rates(self) -> WinRates:
        """The learner's win rates, for the trainer to continue; one object for a training."""
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
            with suppress(ConfigError):  # the trainer, which writes it, has said so
                scores = read_scores(self.folder / WIN_RATES_FILE)
        weights = self.weights([snapshot.name for snapshot in present], scores)
        return present[int(draws_of(episode).choice(len(present), p=weights))]

    def weights(self, names: Sequence[str], scores: Mapping[str, Score]) -> NDArray[np.float64]:
        """How probable each snapshot is.

        Args:
            names: of the snapshots, the newest last.
            scores: against some of them.
        """
        newest = np.zeros(len(names))
        newest[-1] = 1.0
        if self.rule == "latest":
            return newest
        weights = np.ones(len(names))
        if self.rule == "prioritised":
            rates = [scores.get(name, Score()).win_rate for name in names]
            hard = (1.0 - np.array(rates)) ** self.power
            if hard.sum() > 0:  # else the learner beats all of them
                weights = hard
        shared = self.latest_share * newest + (1 - self.latest_share) * weights / weights.sum()
        return shared / shared.sum()  # type: ignore[no-any-return]

    def _snapshot(self, steps: int) -> SavedModel:
        name = f"step-{steps}"
        return SavedModel(name, self.folder / f"{name}.zip")


def steps_of(snapshot: SavedModel) -> int:
    """Env steps that a snapshot was trained for."""
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
        """A snapshot that the store chooses.

        Raises:
            ConfigError: there is none, or it has other spaces.
        """
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
    """Plays each episode with the store's first snapshot, which may not be there yet."""

    store: SnapshotStore
    action_space: spaces.Space[Any]
    name: str = "first"

    def begin(self, episode: Episode) -> tuple[str, QueuePair]:
        present = self.store.snapshots()
        if not present:
            raise ConfigError(f"no snapshot in {self.store.folder}")
        policy = present[0].load()
        return self.name, model_pair(policy, self.action_space, episode)
