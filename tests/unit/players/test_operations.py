"""What `get_attr`, `env_method` and their like do to an env with wrappers, and to any object."""

from __future__ import annotations

from types import SimpleNamespace

import gymnasium
import pytest
from gymnasium import spaces

from sc2pool.players.operations import (
    OPERATIONS,
    env_method,
    get_attr,
    has_attr,
    is_wrapped,
    qualified,
    render,
    set_attr,
)


class Bottom(gymnasium.Env):
    action_space = observation_space = spaces.Discrete(2)
    level = 1

    def double(self, number: int, *, plus: int = 0) -> int:
        return 2 * number + plus

    def render(self) -> str:
        return f"level {self.level}"


class Middle(gymnasium.Wrapper):
    own = "middle"


class Top(Middle):
    pass


@pytest.fixture
def env() -> gymnasium.Env:
    return gymnasium.wrappers.TimeLimit(Top(Bottom()), 5)


def test_attributes_are_found_through_the_wrappers(env):
    assert get_attr(env, "level") == 1
    assert get_attr(env, "own") == "middle"
    assert has_attr(env, "level")
    assert not has_attr(env, "nothing")
    with pytest.raises(AttributeError):
        get_attr(env, "nothing")


def test_attributes_are_set_where_they_are(env):
    set_attr(env, "level", 2)
    assert env.unwrapped.level == 2
    set_attr(env, "own", "changed")
    assert env.env.own == "changed"
    set_attr(env, "new", 3)
    assert get_attr(env, "new") == 3


def test_methods_are_called_where_they_are(env):
    assert env_method(env, "double", (4,), {"plus": 1}) == 9
    assert render(env) == "level 1"
    with pytest.raises(TypeError, match=r"level of <TimeLimit.*Bottom.* must be a method, got 1"):
        env_method(env, "level", (), {})


def test_wrappers_are_known_by_name_and_by_what_they_derive_from(env):
    limit = gymnasium.wrappers.TimeLimit
    asked = (limit, Top, Middle, Bottom, gymnasium.wrappers.RecordEpisodeStatistics)
    assert [is_wrapped(env, qualified(cls)) for cls in asked] == [True, True, True, False, False]
    assert not is_wrapped(Bottom(), qualified(Top))


def test_a_plain_object_is_a_target_too():
    target = SimpleNamespace(level=1)
    set_attr(target, "level", 2)
    assert get_attr(target, "level") == 2
    assert has_attr(target, "level")
    assert not has_attr(target, "nothing")
    assert env_method(target, "__eq__", (target,), {}) is True
    assert not is_wrapped(target, qualified(Top))


def test_every_operation_has_its_name():
    assert all(name in (run.__name__, "is_wrapped", "render") for name, run in OPERATIONS.items())
