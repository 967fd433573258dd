"""Checks what a player puts, and writes it into its views.

Rule: an error names the part that is wrong by its path, with what was given and what was expected,
and begins with the name of its row if there are several.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sc2pool.errors import ObservationError
from sc2pool.pool.queues.layout import Array, Leaf, SpaceLayout


def write_observation(
    layout: SpaceLayout, views: list[Array], observation: Any, strict: bool, name: str = ""
) -> None:
    """Copy an observation into its views.

    Args:
        layout: of the observation.
        views: of its leaves.
        observation: an element of the space.
        strict: see below.
        name: of its row, with which an error begins.

    Raises:
        ObservationError: a part is missing or of another shape; where `strict`, also another
            dtype, or a value that is not finite.
    """
    try:
        parts = list(layout.parts(observation))
    except (KeyError, IndexError, TypeError) as error:
        raise ObservationError(
            f"{name}observation of type {type(observation).__name__} does not have the parts of "
            f"{layout.space}: {error!r}"
        ) from error
    for view, (leaf, part) in zip(views, parts, strict=True):
        value = np.asarray(part)
        if value.shape != leaf.shape or (strict and value.dtype != leaf.dtype):
            raise ObservationError(
                f"{name}observation{_where(leaf)} has shape {value.shape} and dtype {value.dtype}, "
                f"expected shape {leaf.shape} and dtype {leaf.dtype}"
            )
        if strict and value.dtype.kind == "f" and not np.isfinite(value).all():
            bad = np.argwhere(~np.isfinite(value))[0].tolist()
            raise ObservationError(
                f"{name}observation{_where(leaf)} is not finite at index {bad}: "
                f"{value[tuple(bad)]}; expected finite values"
            )
        view[...] = value


def write_mask(leaf: Leaf, view: Array, mask: Array, name: str = "") -> None:
    """Copy an action mask into its view; arguments as of `write_observation`.

    Raises:
        ObservationError: it has another shape or dtype.
    """
    value = np.asarray(mask)
    if value.shape != leaf.shape or value.dtype != leaf.dtype:
        raise ObservationError(
            f"{name}action mask has shape {value.shape} and dtype {value.dtype}, "
            f"expected shape {leaf.shape} and dtype {leaf.dtype}"
        )
    view[...] = value


def _where(leaf: Leaf) -> str:
    return "".join(f"[{key!r}]" for key in leaf.path)
