"""The documentation builds, and all files, headings, commands and checks that it names exist.

mkdocs checks the links in `docs/`; these tests check the links in the README. The built pages must
load nothing from other servers. The workflow and the hooks must run the checks of `scripts/lint`
and `scripts/test`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import sc2pool
from sc2pool import integration, utilities

from .pages import commands

ROOT = Path(__file__).parents[2]
LOADS = {"script", "link", "img", "iframe", "source", "video", "audio", "object", "embed", "use"}
"""HTML elements for which a browser loads a file without a click; a link (`a`) needs a click."""
REMOTE = re.compile(r"(https?:)?//", re.IGNORECASE)
HEADING = re.compile("<h3[^>]*>(.*?)</h3>", re.DOTALL)
FETCHED_BY_THE_THEME = "mermaid"
"""The CSS class of a drawing for which the theme's script loads a library from another server."""


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


def test_the_page_integration_describes_each_name(site: Path) -> None:
    """Each name has a heading on the page, and a docstring in its own module."""
    page = (site / "integration" / "index.html").read_text()
    headings = {re.sub("<.*?>", "", one).split()[0] for one in HEADING.findall(page)}
    package = pytest.importorskip("griffe").load("sc2pool", search_paths=[ROOT])
    for door in (integration, utilities):
        for name, home in door._HOMES.items():
            assert name in headings, name
            is_module = home.endswith(f".{name}")
            own_name = (home if is_module else f"{home}.{name}").removeprefix("sc2pool.")
            assert package[own_name].docstring, own_name


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


PAGES = ("CONTRIBUTING.md", "docs/architecture.md", "tests/README.md")
"""Pages for developers."""
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()
STARTS = (
    ROOT,
    ROOT / "sc2pool",
    ROOT / "sc2pool/pool/instances",
    ROOT / "scripts/chaos/attacks",
)
"""A path on a page is relative to one of these folders."""


def exists(path: str) -> bool:
    return any((start / path).exists() for start in STARTS)


@pytest.mark.parametrize("name", PAGES)
def test_every_file_that_a_page_names_exists(name: str) -> None:
    page, folder = (ROOT / name).read_text(), (ROOT / name).parent
    named = set(re.findall(r"`([\w./-]+(?:\.py|\.md|\.yml|/))`", page))
    assert sorted(path for path in named if not exists(path)) == []
    linked = set(re.findall(r"\]\((?!http)([^)#]+)", page))
    assert sorted(path for path in linked if not (folder / path).exists()) == []


def test_every_file_on_the_way_of_a_step_exists() -> None:
    start, end = "## How a step travels", "## The compiled step path"
    drawing = ARCHITECTURE[ARCHITECTURE.index(start) : ARCHITECTURE.index(end)]
    modules = re.findall(r"\b((?:pool|envs|game|tasks|protocol)/[\w/]+)(?= )", drawing)
    assert len(modules) > 15
    assert sorted(path for path in modules if not exists(f"{path}.py")) == []


def test_every_room_is_in_the_architecture() -> None:
    start, end = "## Rooms", "## How a step travels"
    layout = ARCHITECTURE[ARCHITECTURE.index(start) : ARCHITECTURE.index(end)]
    rooms = {path.parent.name for path in (ROOT / "sc2pool").glob("*/__init__.py")}
    rooms |= {path.parent.name for path in (ROOT / "sc2pool/pool").glob("*/__init__.py")}
    assert rooms <= set(re.findall(r"^ +(\w+)/ ", layout, re.MULTILINE))


def test_the_paths_in_their_commands_exist() -> None:
    pages = [(ROOT / name).read_text() for name in PAGES]
    words = [word for page in pages for command in commands(page) for word in command]
    paths = [word for word in words if re.match(r"(\./)?(scripts|tests)/", word)]
    assert len(paths) > 3
    assert [path for path in paths if not exists(path)] == []


@pytest.mark.parametrize(("page", "at_least"), [("faults.md", 20), ("security.md", 10)])
def test_the_tests_that_a_page_names_exist(page: str, at_least: int) -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", (ROOT / "docs" / page).read_text()))
    assert len(named) > at_least
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_files_that_the_stand_ins_page_names_exist() -> None:
    room = ROOT / "sc2standin"
    page = (room / "README.md").read_text()
    named = set(re.findall(r"`([a-z_]\w*(?:/\w+)+\.[a-z]+)`", page))
    assert len(named) > 15
    assert [name for name in sorted(named) if not ((room / name).exists() or exists(name))] == []


LINKS = re.findall(r"\]\((?!https?:)([^)\s]+)\)", (ROOT / "README.md").read_text())


def anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and mkdocs derive them from plain words."""
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
    first_screen, *_ = (ROOT / "README.md").read_text().split("\n## ")
    assert "Proven on its stand-in only: no StarCraft II binary was available" in first_screen


def load(path: str) -> Any:
    yaml = pytest.importorskip("yaml", reason="mkdocs, which brings it, is not installed")
    return yaml.safe_load((ROOT / path).read_text())


def test_the_workflow_runs_the_scripts() -> None:
    jobs = load(".github/workflows/ci.yml")["jobs"]
    runs = {name: job["steps"][-1]["run"] for name, job in jobs.items()}
    assert runs == {
        "lint": "./scripts/lint --all",
        "fast": "./scripts/test",
        "all": "bash .ci/run",
        "portable": "./scripts/test",
        "wine": "./scripts/test --windows",
        "windows": "python -m pytest --tier=windows",
        "macos": "./scripts/test",
    }
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == "exec ./scripts/test --all"


def test_the_quick_tests_run_on_every_supported_python() -> None:
    job = load(".github/workflows/ci.yml")["jobs"]["fast"]
    assert job["steps"][-1]["env"] == {"PYTHON": "python${{ matrix.python }}"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    low, high = (part.lstrip(">=<") for part in project["requires-python"].split(","))
    minors = range(int(low.split(".")[1]), int(high.split(".")[1]))
    assert job["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in minors]


def test_the_hooks_are_the_checks_of_scripts_lint() -> None:
    (repo,) = load(".pre-commit-config.yaml")["repos"]
    hooks = [hook["entry"].removeprefix(".venv/bin/") for hook in repo["hooks"]]
    script = (ROOT / "scripts" / "lint").read_text().splitlines()
    checks = script[script.index("PATH=$venv/bin:$PATH") + 1 :]
    assert hooks == checks[: len(hooks)]
    assert "--all" in checks[len(hooks)]
