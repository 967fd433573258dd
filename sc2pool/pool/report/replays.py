"""Writes the replays of chosen episodes as files into a folder of the user.

A file's name is, for example, `every-20260131-235959-env3-episode120-return26.SC2Replay`. The name
begins with the reason for the choice: the number of the episode (`every`), a return higher than all
earlier returns (`best`), or a failure of the user's code in the episode (`faulty`). Workers choose
episodes by number and send replays (`players.replays`). The trainer knows the returns of all envs
and finds the best episode.

For each reason the newest `keep` files of this pool stay. The pool never touches files that it has
not written. A file gets its name when it is complete. If a file cannot be written (a full disk),
the log has a warning.
"""

from __future__ import annotations

import logging
import os
import time
from collections import defaultdict, deque
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from sc2pool.config import ReplayPolicy
from sc2pool.errors import ConfigError
from sc2pool.players.replays import REPLAY, PlayedReplay

log = logging.getLogger("sc2pool")

SUFFIX = ".SC2Replay"


class ReplayFolder:
    """Creates a folder for one pool's replays; ConfigError if it cannot create the folder."""

    def __init__(self, policy: ReplayPolicy) -> None:
        self._policy = policy
        self._directory = Path(policy.dir)
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"no folder for replays at {self._directory}: {error}") from error
        self._best_return = -float("inf")
        self._kept: dict[str, deque[Path]] = defaultdict(deque)

    def settle(self, seat: str, info: dict[str, Any]) -> None:
        """Move the replay from an episode's last info to a file; put the file's path in its place.

        A replay that is not kept is removed from the info. An info without a replay stays as it is.
        """
        played = info.pop(REPLAY, None)
        if not isinstance(played, PlayedReplay):
            return
        if not played.data:
            log.warning("%s: the game sent no replay of episode %d", seat, played.episode)
            return
        is_best = played.by_return and played.episode_return > self._best_return
        if is_best:
            self._best_return = played.episode_return
        reason = "best" if is_best else "every" if played.by_number else None
        if reason is None:
            return
        name = f"{_place(seat)}-episode{played.episode}-return{played.episode_return:.6g}"
        path = self._write(reason, name, played.data)
        if path is not None:
            info[REPLAY] = path

    def keep_faulty(self, seat: str, episode: int | None, data: bytes) -> None:
        """Keep the replay of an episode in which the user's code failed.

        `data` is empty if the game could not send the replay. `episode` is None if no episode had
        begun.
        """
        if self._policy.faulty and data:
            number = "none" if episode is None else episode
            self._write("faulty", f"{_place(seat)}-episode{number}", data)

    def _write(self, reason: str, name: str, data: bytes) -> str | None:
        # Use the wall clock (which no deadline may use), because people read the name.
        stem = f"{reason}-{time.strftime('%Y%m%d-%H%M%S')}-{name}"
        part: Path | None = None
        try:
            path, part = self._claim(stem)
            part.write_bytes(data)
            part.rename(path)
        except OSError as error:
            log.warning("no replay in %s: %s", self._directory, str(error))
            if part is not None:
                with suppress(OSError):
                    part.unlink(missing_ok=True)
            return None
        kept = self._kept[reason]
        kept.append(path)
        while len(kept) > self._policy.keep:
            with suppress(OSError):
                kept.popleft().unlink(missing_ok=True)
        return str(path)

    def _claim(self, stem: str) -> tuple[Path, Path]:
        """A final and a temporary path for a new file; no other trainer gets these paths."""
        for number in count(1):
            path = self._directory / (stem + (f"-{number}" if number > 1 else "") + SUFFIX)
            part = path.with_name(path.name + ".part")
            if path.exists():
                continue
            with suppress(FileExistsError):
                os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
                return path, part
        raise AssertionError("numbers do not end")


def _place(seat: str) -> str:
    return seat.replace(" ", "")
