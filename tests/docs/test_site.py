"""The documentation builds without a warning: links, anchors and the generated reference."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import sc2pool

ROOT = Path(__file__).parents[2]


def test_the_site_builds_without_a_warning(tmp_path: Path):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install '.[docs]'")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed")
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|link|img)[^>]+(?:src|href)="https?:[^"]*', page.read_text()
        )
        assert not [tag for tag in loaded if "canonical" not in tag], page
    reference = (site / "reference" / "index.html").read_text()
    missing = [name for name in sc2pool.__all__ if f'.{name}"' not in reference]
    assert not missing, "the reference lacks public names"
