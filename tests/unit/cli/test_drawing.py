"""Parts of all pictures."""

from __future__ import annotations

from pathlib import Path

from tests.unit.conftest import printed_by


def test_no_settings_are_taken_from_the_current_folder(tmp_path: Path) -> None:
    """They may be another user's, and have LaTeX run."""
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\n")
    program = "import sc2pool.cli.drawing, matplotlib; print(matplotlib.rcParams['text.usetex'])"
    assert printed_by(program, cwd=tmp_path) == "False\n"
