"""The output of commands: durations, tables, words for a shell, progress, pictures, videos."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread
from PIL import Image
from rich.console import Console

from sc2pool import shell
from sc2pool.cli.drawing import draw_curve, references_for, rolling_mean, spread
from sc2pool.cli.films import Video, frame_of, write_picture
from sc2pool.cli.stop import check_said
from sc2pool.cli.table import NONE, duration, make_table, size
from sc2pool.cli.training.progress import Bar, Figures, Lines, open_display
from sc2pool.cli.training.run_folder import EpisodeRow
from sc2pool.shell import called, quoted
from sc2pool.tasks.registry import BUILT_IN, TASK_GROUPS, resolve_task
from tests.unit.conftest import printed_by

# ---- durations and sizes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.9, "0s"),
        (59, "59s"),
        (184, "3m04s"),
        (7500, "2h05m"),
        (273_600, "3d04h"),
        (math.inf, NONE),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("size_bytes", "text"), [(12_400_000, "12M"), (1_234_567_890, "1.2G")])
def test_size(size_bytes: int, text: str) -> None:
    assert size(size_bytes) == text


# ---- tables in a narrow terminal -----------------------------------------------------------------


def test_a_name_stays_in_one_piece_while_other_columns_are_folded() -> None:
    out = io.StringIO()
    name, space = "DefeatZerglingsAndBanelingsImage", "Box(0, 255, (4, 64, 64), uint8)"
    Console(file=out, width=60).print(make_table(("task", "observation"), [(name, space)]))
    assert name in out.getvalue()
    assert space not in out.getvalue()
    assert "".join(out.getvalue().split()).endswith("uint8)")


def test_a_cell_is_no_command_to_the_terminal() -> None:
    out = io.StringIO()
    Console(file=out, width=60).print(make_table(("task",), [("\x1b[2Jname\n",)]))
    assert r"\x1b[2Jname\n" in out.getvalue()
    assert "\x1b" not in out.getvalue()


# ---- words for a shell ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("windows", "path", "word"),
    [
        (False, "runs/first", "runs/first"),
        (False, "my runs/it's", """'my runs/it'"'"'s'"""),
        (True, r"runs\first", r"runs\first"),
        (True, r"C:\my runs\first", r'"C:\my runs\first"'),
    ],
)
def test_quoted(monkeypatch: pytest.MonkeyPatch, windows: bool, path: str, word: str) -> None:
    monkeypatch.setattr(shell, "WINDOWS", windows)
    assert quoted(Path(path)) == word


def test_a_program_of_an_environment_that_is_not_on_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The pip's path is printed, because the pip on the PATH may be another environment's."""
    clone, other = tmp_path / "my clone", tmp_path / "other"
    name = "pip.exe" if shell.WINDOWS else "pip"
    for folder in (clone / ".venv" / "bin", other):
        folder.mkdir(parents=True)
        (folder / name).touch(0o755)
    script = clone / ".venv" / "bin" / name
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(script.parent))
    monkeypatch.setattr("sys.executable", str(script.parent / "python"))
    monkeypatch.setenv("PATH", str(other))
    monkeypatch.chdir(tmp_path)
    assert called("pip") == quoted(script.relative_to(tmp_path))
    monkeypatch.chdir(clone)
    assert called("pip") == quoted(Path(".venv") / "bin" / name)
    assert called("nosuch") == f"{quoted(Path('.venv') / 'bin' / 'python')} -m nosuch"
    monkeypatch.chdir(other)
    assert called("pip") == quoted(script)
    monkeypatch.chdir(script.parent)
    assert called("pip") == quoted(script)
    monkeypatch.setenv("PATH", str(script.parent))
    assert called("pip") == "pip"


# ---- the progress of a training ------------------------------------------------------------------


def figures(**changed: float) -> Figures:
    base = {
        "steps": 1000,
        "total_steps": 4000,
        "steps_per_s": 1500.0,
        "mean_return": math.nan,
        "episodes": 0,
        "faults": 0,
    }
    return Figures(**(base | changed))


def test_a_line_says_it_all() -> None:
    assert str(figures()) == (
        "1,000 / 4,000 steps · 2s left · 1,500 steps/s · mean return – (0 episodes)"
    )
    assert "mean return 3.25 (7 episodes)" in str(figures(mean_return=3.25, episodes=7))
    assert "2 cut short by faults" in str(figures(faults=2))


def test_lines_come_at_once_and_then_seldom(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    lines.show(figures())
    lines.show(figures(steps=2000))
    assert capsys.readouterr().out.count("\n") == 1


@pytest.mark.parametrize(("term", "display"), [("xterm", Bar), ("dumb", Lines)])
def test_a_terminal_that_cannot_redraw_gets_lines(
    monkeypatch: pytest.MonkeyPatch, term: str, display: type[object]
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("TERM", term)
    with open_display() as shown:
        assert type(shown) is display


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_nothing_is_cut_on_a_terminal_of_any_width(width: int) -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=width, force_terminal=True, color_system=None)
    large = figures(steps=1_400_000, total_steps=1_500_000, mean_return=-123.45, episodes=12_345)
    with Bar(console) as bar:
        bar.show(Figures(**(vars(large) | {"faults": 123})))
    shown = " ".join(screen.getvalue().split())
    for part in ("1,400,000 / 1,500,000 steps", "-123.45", "12,345 episodes", "123 cut short", "━"):
        assert part in shown


def test_a_terminal_that_is_gone_ends_no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Path("/dev/full").open("w")  # noqa: SIM115 - closing it raises as well
    with Bar(Console(file=gone, width=80, force_terminal=True)) as bar:
        bar.show(figures())
    monkeypatch.setattr("sys.stdout", gone)
    Lines().show(figures())
    with pytest.raises(OSError, match="No space left on device"):
        check_said()  # every command calls this function at its end
    with suppress(OSError):
        gone.close()


# ---- parts of all pictures -----------------------------------------------------------------------


def test_no_settings_are_taken_from_the_current_folder(tmp_path: Path) -> None:
    """Settings of matplotlib in the working directory are ignored, because they may run LaTeX."""
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\n")
    program = "import sc2pool.cli.drawing, matplotlib; print(matplotlib.rcParams['text.usetex'])"
    assert printed_by(program, cwd=tmp_path) == "False\n"


# ---- the learning curve --------------------------------------------------------------------------


def episodes(count: int) -> list[EpisodeRow]:
    return [EpisodeRow(240 * (k + 1), float(k % 30), 240, 0.1 * k) for k in range(count)]


def test_pictures_of_sensible_size_that_show_the_episodes(tmp_path):
    path = tmp_path / "curve.png"
    pictures = []
    for count, task in ((0, "Melee"), (1, "MoveToBeacon"), (250, "MoveToBeacon")):
        draw_curve(path, episodes(count), "a title", "a game", references_for(resolve_task(task)))
        pictures.append(imread(path))
        height, width = pictures[-1].shape[:2]
        assert width >= 800
        assert height >= 500
    assert not np.array_equal(*pictures[1:])
    assert [file.name for file in tmp_path.iterdir()] == ["curve.png"]


def test_published_scores_are_only_shown_for_the_task_that_they_are_of():
    """A user's task with a built-in name gets no published scores: its reward may differ."""
    names = [task for task in BUILT_IN if references_for(resolve_task(task))]
    assert names == list(TASK_GROUPS["mini-games"])
    own = type("MoveToBeacon", (resolve_task("MoveToBeacon"),), {"reward": lambda _: -1.0})
    assert references_for(own) == []


def test_the_mean_begins_with_what_there_is():
    values = np.array([1.0, 3.0, 5.0, 7.0])
    assert rolling_mean(values, 2).tolist() == [1.0, 2.0, 4.0, 6.0]
    assert rolling_mean(values[:0], 2).tolist() == []


@pytest.mark.parametrize("heights", [[], [0.5], [0.5, 0.5, 0.51], [0.1, 0.13, 0.16, 0.9, 0.92]])
def test_labels_keep_their_distance_and_order(heights):
    places = spread(heights, gap=0.05)
    assert len(places) == len(heights)
    assert all(np.diff(places) > 0.05 - 1e-9)
    assert sum(places) == pytest.approx(sum(heights))


def test_labels_far_apart_stay_where_they_are():
    assert spread([0.1, 0.5, 0.9], gap=0.05) == [0.1, 0.5, 0.9]


# ---- the picture of an episode -------------------------------------------------------------------


def test_a_picture_that_cannot_be_written_leaves_the_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, frame = tmp_path / "a.gif", frame_of(np.zeros((4, 4, 3), np.uint8))
    write_picture(path, [frame], fps=2.0)
    earlier = path.read_bytes()

    def half(_: Any, file: Path, **__: Any) -> None:
        file.write_bytes(earlier[:10])
        raise OSError("No space left on device")

    monkeypatch.setattr(Image.Image, "save", half)
    with pytest.raises(OSError, match="No space"):
        write_picture(path, [frame, frame], fps=2.0)
    assert path.read_bytes() == earlier
    assert [one.name for one in tmp_path.iterdir()] == ["a.gif"]


# ---- videos --------------------------------------------------------------------------------------


class Pool:
    """A stub with the part of a pool that a video needs."""

    def render(self, envs: list[int]) -> list[Any]:
        return [np.zeros((48, 64, 3), np.uint8) for _ in envs]


def test_a_video_that_ffmpeg_could_not_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cut-off video is an error; ffmpeg reports no error if the disk is full at the end."""
    pytest.importorskip("imageio_ffmpeg")

    def write_frames(path: str, *_: Any, **__: Any) -> Iterator[None]:
        Path(path).write_bytes(b"\0\0\0\x20ftypisom")
        while True:
            yield

    monkeypatch.setattr("imageio_ffmpeg.write_frames", write_frames)
    film = Video(tmp_path / "a.mp4", Pool(), fps=2.0)  # type: ignore[arg-type]
    film.film(False)
    film.film(True)
    assert film.failed
    assert capsys.readouterr().out == f"cannot write {tmp_path}/a.mp4: it was not finished\n"
    assert not list(tmp_path.iterdir())


def test_a_video_that_is_finished(tmp_path: Path) -> None:
    pytest.importorskip("imageio_ffmpeg")
    film = Video(tmp_path / "a.mp4", Pool(), fps=2.0)  # type: ignore[arg-type]
    for over in (False, False, True):
        film.film(over)
    assert not film.failed
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]
