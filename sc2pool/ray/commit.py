"""The commit that this package was made from, so that nodes can compare more than a version."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

import sc2pool

_GIT_S = 10.0
"""How long git may take: a checkout may lie on a network's disk."""


def commit_of(root: Path) -> str | None:
    """The commit of a checkout, "-dirty" after it if tracked files differ from it.

    Returns:
        None if `root` is no checkout, or if git is missing or fails.
    """
    if not (root / ".git").exists():  # a package installed into a folder of another project's
        return None
    # Without locks: a checkout on a network's disk may be another node's, too.
    command = ["git", "--no-optional-locks", "describe", "--always", "--dirty"]
    command += ["--abbrev=12", "--exclude=*"]
    try:
        told = subprocess.run(
            command, cwd=root, capture_output=True, text=True, check=True, timeout=_GIT_S
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout.strip()


@cache
def installed_commit() -> str | None:
    """The commit of this process's package, asked for once; None if it came from a package index.

    A checkout's is git's. That of `pip install git+https://…` was kept by pip:
    https://packaging.python.org/en/latest/specifications/direct-url/.
    """
    commit = commit_of(Path(sc2pool.__file__).parents[1])
    if commit is not None:
        return commit
    try:
        kept = metadata.distribution("sc2pool").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    source = json.loads(kept or "{}").get("vcs_info", {})
    given = source.get("commit_id")
    return None if given is None else str(given)[:12]
