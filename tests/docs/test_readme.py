"""The README's links lead to files and headings that exist; mkdocs checks those of `docs/` only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINKS = re.findall(r"\]\((?!https?:)([^)\s]+)\)", (ROOT / "README.md").read_text())


def anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and mkdocs make them of plain words."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("link", sorted(set(LINKS)))
def test_a_link_leads_somewhere(link: str) -> None:
    path, _, anchor = link.partition("#")
    page = ROOT / (path or "README.md")
    assert page.exists()
    assert not anchor or anchor in anchors(page.read_text())


def test_the_release_of_torch_whose_sizes_are_given_is_the_tested_one() -> None:
    pinned = re.search(
        r"^torch==(\d+\.\d+)\.", (ROOT / "constraints.txt").read_text(), re.MULTILINE
    )
    measured = re.search(r"\| torch (\d+\.\d+) \|", (ROOT / "docs" / "index.md").read_text())
    assert pinned is not None
    assert measured is not None
    assert measured[1] == pinned[1]


def test_the_first_screen_says_what_is_proven() -> None:
    first_screen = " ".join((ROOT / "README.md").read_text().splitlines()[:25])
    assert "Proven on its stand-in only: no StarCraft II binary was available" in first_screen
