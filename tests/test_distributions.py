"""The wheel and the source distribution contain every file, and the wheel works by itself.

Both distributions are built without a network, by the installed setuptools, from a copy of the
checkout. If Cython is not installed, the distributions lack the compiled step path.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

import sc2pool

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES = ("sc2pool", "sc2standin")
SOURCES = (*PACKAGES, "docs", "examples", "scripts", "tests", ".ci", ".github")
BUILD = "import sys; from setuptools import build_meta; build_meta.build_{}(sys.argv[1])"
IGNORED = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so", "*.pyd")


def build(kind: str, source: Path, out: Path) -> Path:
    """Build a distribution like pip, which runs the build backend in the source's folder."""
    out.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", BUILD.format(kind), str(out)],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    (built,) = out.iterdir()
    return built


def files(folder: Path, root: Path) -> set[str]:
    """The files below a folder of the checkout, except files that Python and compilers make."""
    return {
        path.relative_to(root).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".so", ".pyd")
    }


def unpack(wheel: Path, folder: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, because a build leaves files beside the sources."""
    copy: Path = tmp_path_factory.mktemp("checkout")
    for name in SOURCES:
        shutil.copytree(ROOT / name, copy / name, ignore=IGNORED)
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy(path, copy)
    return copy


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", checkout, tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def source(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution."""
    folder: Path = tmp_path_factory.mktemp("source")
    with tarfile.open(build("sdist", checkout, tmp_path_factory.mktemp("built"))) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    return unpacked


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path, tmp_path: Path) -> None:
    unpacked = unpack(wheel, tmp_path)
    wanted = {name for package in PACKAGES for name in files(ROOT / package, ROOT)}
    assert {Path(name).suffix for name in wanted} >= {
        ".py",
        ".md",
        ".SC2Map",
        ".jsonc",
        ".js",
        ".typed",
    }
    assert {name for package in PACKAGES for name in files(unpacked / package, unpacked)} == wanted
    for name in wanted:
        assert (unpacked / name).read_bytes() == (ROOT / name).read_bytes(), name
    (info,) = unpacked.glob("*.dist-info")
    assert (info / "licenses" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert {path.name for path in unpacked.iterdir()} == {*PACKAGES, info.name}


def test_the_source_distribution_holds_every_file(source: Path) -> None:
    for name in SOURCES:
        assert files(ROOT / name, ROOT) <= files(source / name, source)
    kept = {path.name for path in ROOT.iterdir() if path.is_file()} - {".git", ".gitignore"}
    assert kept <= {path.name for path in source.iterdir()}


def test_the_source_distribution_builds_the_same_wheel(
    wheel: Path, source: Path, tmp_path: Path
) -> None:
    again = build("wheel", source, tmp_path / "built")
    assert again.name == wheel.name
    assert contents(again) == contents(wheel)


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a distribution; of compiled files only the names, because they contain paths."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        compiled = {name for name in names if name.endswith((".so", ".dist-info/RECORD"))}
        return {name: b"" if name in compiled else archive.read(name) for name in names}


def test_the_unpacked_wheel_works_by_itself(wheel: Path, tmp_path: Path) -> None:
    unpacked = unpack(wheel, tmp_path / "unpacked")
    assert run(["--version"], unpacked) == f"sc2pool {sc2pool.__version__}\n"
    executable = Path(run(["standin", "install", str(tmp_path / "game")], unpacked).strip())
    assert str(unpacked) in executable.read_text()
    maps = {path.name for path in (tmp_path / "game" / "Maps").rglob("*.SC2Map")}
    assert "MoveToBeacon.SC2Map" in maps


def run(arguments: Iterable[str], package: Path) -> str:
    """The output of `sc2pool` from the package in this folder, without the checkout's modules."""
    program = f"import sys; sys.path.insert(0, {str(package)!r}); import sc2pool; "
    program += f"assert sc2pool.__file__.startswith({str(package)!r}); "
    program += "from sc2pool.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, *arguments],
        cwd=package.parent,
        env={"PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_description_of_the_package_has_no_links_into_the_repository() -> None:
    page = ROOT / PROJECT["readme"]
    links = re.findall(r"\]\(([^)]+)\)", page.read_text())
    assert links
    assert [link for link in links if not link.startswith("https://")] == []
