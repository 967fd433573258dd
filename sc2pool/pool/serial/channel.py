"""A channel within one process: what `sc2pool.pool.ipc.channel` is between two.

Rule: each side gets objects of its own, as if they had travelled.
"""

from __future__ import annotations

import pickle
from collections import deque
from typing import Any

from sc2pool.pool.ipc.channel import Channel, ChannelClosedError
from sc2pool.pool.ipc.pickling import for_trainer
from sc2pool.pool.queues.doorbell import Doorbell


class LocalChannel(Channel):
    """One end; `pair` makes both. Sending never waits."""

    _peer: LocalChannel

    def __init__(self) -> None:
        self._inbox: deque[bytes] = deque()
        self._doorbell = Doorbell.create()
        """Rings once there is something to receive, or the end."""
        self._peer_closed = self._closed = False

    @classmethod
    def pair(cls) -> tuple[LocalChannel, LocalChannel]:
        """Both ends.

        Raises:
            OSError: the system has no descriptors left.
        """
        ours, theirs = cls(), cls()
        ours._peer, theirs._peer = theirs, ours
        return ours, theirs

    def fileno(self) -> int:
        return self._doorbell.listening

    def readable(self, timeout_s: float) -> bool:  # noqa: ARG002 - nothing comes while this waits
        return bool(self._inbox) or self._peer_closed

    def send(self, message: Any) -> None:
        if self._peer_closed:
            raise ChannelClosedError("the other side is gone")
        self._peer._inbox.append(for_trainer(message))
        self._peer._doorbell.ring()

    def receive(self) -> list[Any]:
        return [pickle.loads(data) for data in self._taken()]

    def skip(self) -> bytes:
        return b"".join(self._taken())

    def _taken(self) -> list[bytes]:
        self._doorbell.quiet()
        taken = list(self._inbox)
        self._inbox.clear()
        if self._peer_closed:
            if not taken:
                raise ChannelClosedError("end of file")
            self._doorbell.ring()  # the end comes next
        return taken

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if not self._peer._closed:
            self._peer._peer_closed = True
            self._peer._doorbell.ring()
        self._doorbell.close()
