"""`Film` records one episode; its subclasses `Video` and `GifFilm` write a video or a GIF file.

Rules: a video is written during the episode, a GIF at its end, and either file appears only when it
is complete. If the disk reports an error, it is printed, and the film ends, but the program
continues.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sc2pool.cli.stop import say
from sc2pool.integration import VecPool
from sc2pool.utilities import new_file, replacing

if TYPE_CHECKING:
    from PIL import Image


class Film(ABC):
    """A film of the first episode of a pool's first env, written to `path`.

    If the file cannot be written, the error is printed, and `failed` becomes True.
    """

    def __init__(self, path: Path, pool: VecPool, fps: float) -> None:
        self.path = path
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
        """Add the env's frame. If `over`, end the film: the frame is the next episode's first."""
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
            say(f"cannot write {self.path}: {why}")
            self._over = self.failed = True
            self.close()

    @abstractmethod
    def _add(self, frame: Any) -> None: ...

    @abstractmethod
    def _finish(self) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Release all resources, and drop the film if it is unfinished."""


class Video(Film):
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

        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._unfinished = new_file(self.path)
        writer: Generator[None, Any, None] = imageio_ffmpeg.write_frames(
            str(self._unfinished), (width, height), fps=self._fps, macro_block_size=2
        )
        writer.send(None)
        return writer

    def _finish(self) -> None:
        if self._writer is not None and self._unfinished is not None:
            self._writer.close()
            _check(self._unfinished)
            self._unfinished.replace(self.path)

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
        next(frames)  # the first item of `frames` describes the video
    except OSError as error:
        raise OSError("it was not finished") from error
    finally:
        frames.close()


MOST_FRAMES = 3_000
"""The most frames of a GIF, because all frames are in memory (0.3 MB each)."""
_LAST_FRAME_MS = 2000
"""How long a GIF shows its last frame before it starts again, in milliseconds."""
_LONGEST_FRAME_MS = 655_350
"""The longest duration of a frame: a GIF stores hundredths of a second in 16 bits."""


class GifFilm(Film):
    """A film as a GIF file, which is written at the episode's end."""

    def __init__(self, path: Path, pool: VecPool, fps: float) -> None:
        super().__init__(path, pool, fps)
        self._frames: list[Image.Image] = []

    def _add(self, frame: Any) -> None:
        if len(self._frames) >= MOST_FRAMES:
            raise OSError(f"the episode has more than {MOST_FRAMES:,} frames")
        self._frames.append(frame_of(frame))

    def _finish(self) -> None:
        write_picture(self.path, self._frames, self._fps)

    def close(self) -> None:
        self._frames.clear()


def frame_of(pixels: Any) -> Image.Image:
    """Convert a frame, uint8 (height, width, 3), to an image of at most 256 colours, for GIF."""
    from PIL import Image  # noqa: PLC0415

    return Image.fromarray(pixels).quantize(dither=Image.Dither.NONE)


def write_picture(path: Path, frames: Sequence[Image.Image], fps: float) -> None:
    """Write a GIF of one or more frames from `frame_of`, at `fps` frames/s; may raise `OSError`."""
    frame_ms = min(round(1000 / fps), _LONGEST_FRAME_MS)
    durations_ms = [frame_ms] * (len(frames) - 1) + [_LAST_FRAME_MS]
    first, *others = frames
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        first.save(unfinished, save_all=True, append_images=others, duration=durations_ms, loop=0)
