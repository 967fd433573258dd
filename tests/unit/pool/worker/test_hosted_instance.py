"""An instance in its worker: what its trainer learns of its end."""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import closing
from pathlib import Path
from unittest import mock

from sc2pool.pool.ipc.channel import Channel
from sc2pool.pool.ipc.messages import Start
from sc2pool.pool.worker import hosted_instance
from sc2pool.pool.worker.hosted_instance import HostedInstance


def test_it_is_over_though_no_memory_is_left_for_its_last_words(tmp_path: Path) -> None:
    """Else it would read the next message, and fail, for ever."""
    loop = asyncio.SelectorEventLoop()
    ours, theirs = socket.socketpair()
    doorbells, spec = mock.Mock(), mock.Mock()
    spec.take.side_effect = MemoryError
    over: list[bool] = []
    loop.set_exception_handler(lambda *_: loop.stop())
    with closing(loop), closing(Channel(ours)) as trainers_end:
        hosted = HostedInstance(
            0,
            loop,
            doorbells,
            Channel(theirs),
            tmp_path,
            spec=spec,
            memory_fd=-1,
            is_over=over.append,
        )
        trainers_end.send(Start(sys.path))
        with mock.patch.object(hosted_instance, "describe", side_effect=MemoryError):
            loop.run_forever()
        loop.run_until_complete(hosted.end())
    assert over == [False]
