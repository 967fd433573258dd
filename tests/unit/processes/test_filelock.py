"""Locks on files that lie in a folder of several users."""

from __future__ import annotations

import errno

import pytest

from sc2pool.platform import WINDOWS
from sc2pool.processes.filelock import try_lock


@pytest.mark.skipif(WINDOWS, reason="its folders are each user's own")
def test_a_link_in_the_place_of_a_lock_creates_no_file(tmp_path):
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError) as caught:
        try_lock(tmp_path / "lock")
    assert caught.value.errno == errno.ELOOP
    assert not (tmp_path / "elsewhere").exists()
