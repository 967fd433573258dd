"""`Film`, a film of one episode, and `Video`, which writes it while the episode is played.

Rules: the file appears when it is complete. An error of the disk is printed, and ends only the
film.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

from sc2pool.cli.stop import say
from sc2pool.integration import VecPool
from sc2pool.utilities import new_file


class Film(ABC):
    """The first episode of a pool's first env; the file's suffix names the format.

    Attributes:
        failed: whether the file could not be written; the error was printed.
    """

    def __init__(self, path: Path, pool: VecPool, fps: float) -> None:
        self._path = path
        self._pool = pool
        self._fps = fps
        self._over = False
        self.failed = False

    def begin(self, _observations: Any) -> None:
        """See `Watcher`."""
        self.film(False)

    def step(self, *played: Any) -> None:
        """See `Watcher`."""
        _, _, _, over, _ = played
        self.film(bool(over[0]))

    def film(self, over: bool) -> None:
        """Add the env's current frame.

        Args:
            over: True if the episode has ended; the env then already shows the next one, and the
                film is finished instead.
        """
        if self._over:
            return
        self._over = over
        frame = None if over else self._pool.render([0])[0]
        try:
            if over:
                self._finish()
            else:
                self._add(frame)
        except OSError as error:
            why, _, _ = (error.strerror or str(error)).partition("\n")
            say(f"cannot write {self._path}: {why}")
            self._over = self.failed = True
            self.close()

    @abstractmethod
    def _add(self, frame: Any) -> None: ...

    @abstractmethod
    def _finish(self) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Drop an unfinished film."""


class Video(Film):
    """A film as a video file."""

    def __init__(self, path: Path, pool: VecPool, fps: float) -> None:
        super().__init__(path, pool, fps)
        self._unfinished: Path | None = None
        self._writer: Generator[None, Any, None] | None = None

    def _add(self, frame: Any) -> None:
        if self._writer is None:
            self._writer = self._open(frame.shape[1], frame.shape[0])
        self._writer.send(frame.tobytes())

    def _open(self, width: int, height: int) -> Generator[None, Any, None]:
        import imageio_ffmpeg  # noqa: PLC0415

        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._unfinished = new_file(self._path)
        writer: Generator[None, Any, None] = imageio_ffmpeg.write_frames(
            str(self._unfinished), (width, height), fps=self._fps, macro_block_size=2
        )
        writer.send(None)
        return writer

    def _finish(self) -> None:
        if self._writer is not None and self._unfinished is not None:
            self._writer.close()
            _check(self._unfinished)
            self._unfinished.replace(self._path)

    def close(self) -> None:
        with suppress(OSError):
            if self._writer is not None:
                self._writer.close()
        if self._unfinished is not None:
            with suppress(OSError):
                self._unfinished.unlink(missing_ok=True)


def _check(path: Path) -> None:
    """Raise `OSError` unless the video can be opened.

    imageio-ffmpeg does not report ffmpeg's failure, for example on a full disk.
    """
    import imageio_ffmpeg  # noqa: PLC0415

    frames = imageio_ffmpeg.read_frames(str(path))
    try:
        next(frames)  # the generator's first item is the video's description
    except OSError as error:
        raise OSError("it was not finished") from error
    finally:
        frames.close()
