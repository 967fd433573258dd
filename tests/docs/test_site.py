"""The documentation builds without a warning, and its pages load nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import sc2pool

ROOT = Path(__file__).parents[2]
LOADS = {"script", "link", "img", "iframe", "source", "video", "audio", "object", "embed", "use"}
"""Elements that make a browser load a file by themselves; `a` does not."""
REMOTE = re.compile(r"(https?:)?//", re.IGNORECASE)
FETCHED_BY_THE_THEME = "mermaid"
"""The class of a drawing for which the theme's script loads a library from elsewhere."""


class Loaded(HTMLParser):
    """The addresses that a page makes the browser load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.classes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.classes.update(given.get("class", "").split())
        if tag in LOADS and given.get("rel") != "canonical":
            self.addresses += [given[name] for name in ("src", "href", "data") if name in given]
            self.addresses += [
                part.split()[0] for part in given.get("srcset", "").split(",") if part
            ]
        self.addresses += in_css(given.get("style", ""))


def in_css(text: str) -> list[str]:
    """The addresses that a style sheet loads."""
    found = re.findall(r"""(?:url\(|@import)\s*["']?([^"')\s;]+)""", text)
    return [address for address in found if not address.startswith("data:")]


def remote(page: str) -> list[str]:
    return [address for address in Loaded(page).addresses if REMOTE.match(address)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    for package in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(package, reason=f'{package} is missing: pip install ".[docs]"')
    folder: Path = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_reference_has_all_public_names(site: Path) -> None:
    reference = (site / "reference" / "index.html").read_text()
    missing = [name for name in sc2pool.__all__ if f'.{name}"' not in reference]
    assert not missing, "the reference lacks public names"


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 10
    for page in pages:
        assert remote(page.read_text()) == [], page
        assert FETCHED_BY_THE_THEME not in Loaded(page.read_text()).classes, page
    for sheet in site.rglob("*.css"):
        assert [one for one in in_css(sheet.read_text()) if REMOTE.match(one)] == [], sheet


def test_the_site_has_a_search_and_a_dark_mode(site: Path) -> None:
    start = (site / "index.html").read_text()
    assert 'data-md-component="search"' in start
    assert "prefers-color-scheme: dark" in start
    assert (site / "search" / "search_index.json").is_file()


def test_the_packages_description_is_no_page(site: Path) -> None:
    assert not (site / "package").exists()


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ('<link rel="stylesheet" href="https://a.b/c.css">', ["https://a.b/c.css"]),
        ("<script src='//a.b/c.js'></script>", ["//a.b/c.js"]),
        ('<img srcset="x.png 1x, http://a.b/c.png 2x">', ["http://a.b/c.png"]),
        ('<p style="background: url(http://a.b/c.png)">', ["http://a.b/c.png"]),
        ('<a href="https://a.b">a</a><img src="c.png"><link rel="canonical" href="//a">', []),
    ],
)
def test_resources_of_a_page_are_found(page: str, found: list[str]) -> None:
    assert remote(page) == found
