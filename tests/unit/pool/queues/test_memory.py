"""Shared memory without a name, in both variants."""

from __future__ import annotations

import os

import pytest

from sc2pool.errors import ConfigError
from sc2pool.platform import WINDOWS
from sc2pool.pool.queues import memory
from tests.unit.conftest import printed_by

pytestmark = pytest.mark.usefixtures("variant")


@pytest.fixture
def descriptor():
    made = memory.create()
    yield made
    os.close(made)


@pytest.mark.skipif(WINDOWS, reason="a worker gets a copy of it there, as test_pool.py has it")
def test_another_process_writes_and_we_read(descriptor):
    memory.claim(descriptor, 8192)
    mapped = memory.map_memory(descriptor, 8192)
    program = f"import mmap; mmap.mmap({descriptor}, 8192)[8000:8003] = b'abc'"
    printed_by(program, pass_fds=[descriptor])
    assert mapped[8000:8003] == b"abc"
    assert mapped[:8000] == bytes(8000)
    mapped.close()


def test_it_can_begin_with_a_message(descriptor):
    memory.write(descriptor, b"player")
    assert memory.read(descriptor, 6) == b"player"
    memory.claim(descriptor, 8192)
    assert memory.read(descriptor, 8192) == bytes(8192)


def test_it_has_no_name(descriptor, run_temp):
    assert WINDOWS or list(run_temp.glob("sc2pool-*")) == []  # there its last close deletes it
    assert not os.get_inheritable(descriptor)


def test_memory_that_cannot_be_claimed_is_a_config_error(descriptor, limited):
    """A limit on the size of files stands in for a machine without memory left."""
    refused = pytest.raises(ConfigError, match="cannot claim 8192 bytes of shared memory")
    with limited("FSIZE", 4096), refused:
        memory.claim(descriptor, 8192)
