from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sc2pool.cli.playing.picture import frame_of, write_picture


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
