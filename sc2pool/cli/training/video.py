"""A video of one episode, written while it is played.

Rules: the file appears when it is complete; an error of the disk is said, and ends only the video.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

from sc2pool.cli.stop import say
from sc2pool.pool.vec_pool import VecPool


class Video:
    """The first episode of the pool's first env.

    Args:
        path: the file to write; its suffix names the format.
        pool: renders rgb_array.
        fps: frames per second.
    """

    def __init__(self, path: Path, pool: VecPool, fps: float) -> None:
        self._path = path
        self._unfinished = path.with_name("unfinished-" + path.name)
        self._pool = pool
        self._fps = fps
        self._writer: Generator[None, Any, None] | None = None
        self._over = False

    def film(self, over: bool) -> None:
        """Add what the env shows now.

        Args:
            over: its episode has ended, so that it already shows the next one.
        """
        if self._over:
            return
        if over:
            self._finish()
            return
        (frame,) = self._pool.render([0])
        assert frame is not None
        try:
            if self._writer is None:
                self._writer = self._open(frame.shape[1], frame.shape[0])
            self._writer.send(frame.tobytes())
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        """Drop the video if its episode is not over."""
        if not self._over:
            self._drop()

    def _open(self, width: int, height: int) -> Generator[None, Any, None]:
        import imageio_ffmpeg  # noqa: PLC0415

        self._path.parent.mkdir(parents=True, exist_ok=True)
        writer: Generator[None, Any, None] = imageio_ffmpeg.write_frames(
            str(self._unfinished), (width, height), fps=self._fps, macro_block_size=2
        )
        writer.send(None)
        return writer

    def _finish(self) -> None:
        self._over = True
        try:
            if self._writer is not None:
                self._writer.close()
                self._unfinished.replace(self._path)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        say(f"cannot write {self._path}: {error.strerror or error}")
        self._drop()

    def _drop(self) -> None:
        self._over = True
        with suppress(OSError):
            if self._writer is not None:
                self._writer.close()
        with suppress(OSError):
            self._unfinished.unlink(missing_ok=True)
