"""What the errors say of themselves."""

from __future__ import annotations

import pytest

from sc2pool.errors import FaultKind, GameFault


def test_a_fault_of_an_env_of_the_user_needs_no_kind() -> None:
    fault = GameFault("the window is gone")
    assert (fault.kind, fault.detail) == (FaultKind.GAME_EXITED, "the window is gone")
    assert str(fault) == "game-exited: the window is gone"


def test_a_kind_by_its_value() -> None:
    assert GameFault("hung", "no reply").kind is FaultKind.HUNG
    with pytest.raises(ValueError, match="'hangs' is not a valid FaultKind"):
        GameFault("hangs", "no reply")
