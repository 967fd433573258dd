"""Bare shared memory and eventfds: the least cost of stepping n processes together.

In a step the trainer writes all actions into shared memory, rings n doorbells, waits for n rings,
and copies all rows. Each child waits for its ring, steps its env, writes its row, and rings back.

This baseline is a limit for comparisons, not a pool: nothing is checked, no process is watched, and
an exception hangs the batch. The trainer waits in the fastest way: for a single child with a
blocking read, and for several children with an edge-triggered epoll, which needs no read.
"""

from __future__ import annotations

import mmap
import os
import select
import struct
import sys
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from bench import child
from bench.baselines.empty import EmptyEnv

ONE = struct.pack("=Q", 1)


@dataclass(frozen=True)
class Board:
    """The memory that trainer and children share, as arrays of shape (n, …)."""

    actions: np.ndarray
    rewards: np.ndarray
    dones: np.ndarray
    observations: np.ndarray

    @classmethod
    def map(cls, memory_fd: int, n: int, observation_bytes: int) -> Board:
        """Map shared memory that already has the size of `board_bytes`."""
        memory = mmap.mmap(memory_fd, board_bytes(n, observation_bytes))
        actions = np.frombuffer(memory, np.int64, n)
        rewards = np.frombuffer(memory, np.float64, n, 8 * n)
        dones = np.frombuffer(memory, np.bool_, n, 16 * n)
        rows = np.frombuffer(memory, np.float32, n * observation_bytes // 4, 24 * n)
        return cls(actions, rewards, dones, rows.reshape(n, -1))


def board_bytes(n: int, observation_bytes: int) -> int:
    """The size of the shared memory in bytes; a done flag takes eight bytes to align the rows."""
    return n * (24 + observation_bytes)


class BareVec:
    """The trainer's part: makes the shared memory, and starts and steps the children."""

    def __init__(self, n: int, observation_bytes: int) -> None:
        self.n = n
        self._memory_fd = os.memfd_create("bare")
        os.ftruncate(self._memory_fd, board_bytes(n, observation_bytes))
        self._board = Board.map(self._memory_fd, n, observation_bytes)
        self._requests = [os.eventfd(0) for _ in range(n)]
        self._replies = [os.eventfd(0) for _ in range(n)]
        self._epoll = select.epoll()
        for doorbell in self._replies:
            self._epoll.register(doorbell, select.EPOLLIN | select.EPOLLET)
        self._children = []
        for row, doorbells in enumerate(zip(self._requests, self._replies, strict=True)):
            inherited = (self._memory_fd, *doorbells)
            arguments = (*inherited, row, n, observation_bytes)
            self._children.append(
                child.start("bench.baselines.bare", *arguments, pass_fds=inherited)
            )

    def reset(self) -> None:
        """Do nothing, because the children reset at their start."""

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Step all envs; returns copies of the observations, rewards and dones."""
        board = self._board
        board.actions[:] = actions
        for doorbell in self._requests:
            os.write(doorbell, ONE)
        if self.n == 1:
            os.read(self._replies[0], 8)
        else:
            missing = self.n
            while missing:
                missing -= len(self._epoll.poll())
        return board.observations.copy(), board.rewards.copy(), board.dones.copy()

    def close(self) -> None:
        """End the child processes."""
        for process in self._children:
            process.kill()
            process.wait()
        self._epoll.close()
        for descriptor in (self._memory_fd, *self._requests, *self._replies):
            os.close(descriptor)


def serve(arguments: list[str]) -> NoReturn:
    """Step an env whenever the doorbell rings, until this process is killed."""
    memory_fd, request, reply, row, n, size_bytes = map(int, arguments)
    board = Board.map(memory_fd, n, size_bytes)
    env = EmptyEnv(size_bytes)
    env.reset()
    while True:
        os.read(request, 8)
        observation, reward, terminated, truncated, _ = env.step(int(board.actions[row]))
        board.observations[row] = observation
        board.rewards[row] = reward
        board.dones[row] = terminated or truncated
        os.write(reply, ONE)


if __name__ == "__main__":
    serve(sys.argv[1:])
