"""Clause 8: pictures, where the envs draw any."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tests.contract.conftest import without_workers
from tests.contract.envs import Counting, Drawing

pytestmark = without_workers


def test_pictures_are_tiled(vec):
    made = vec(*(partial(Drawing, colour) for colour in (10, 20, 30)))
    assert made.render_mode == "rgb_array"
    made.reset()
    images = made.get_images()
    assert [image.shape for image in images] == [(4, 6, 3)] * 3
    tiled = made.render()
    assert tiled.shape == (8, 12, 3)
    corners = tiled[0, 0, 0], tiled[0, 6, 0], tiled[4, 0, 0], tiled[4, 6, 0]
    assert corners == (10, 20, 30, 0)
    np.testing.assert_array_equal(made.render(mode="rgb_array"), tiled)
    with pytest.warns(UserWarning, match="render"):
        assert made.render(mode="something_else") is None


def test_without_pictures_there_is_a_warning_and_none_for_each(vec):
    made = vec(Counting, Counting)
    made.reset()
    with pytest.warns(UserWarning, match="render mode is None"):
        assert made.get_images() == [None, None]
    with pytest.warns(UserWarning, match="no `render_mode`"):
        assert made.render() is None
