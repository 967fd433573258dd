"""Checks what a player puts, and writes it into its views, if its space has a fixed layout.

Rule: an error names the part that is wrong by its path, with what was given and what was expected,
and begins with the name of its row if there are several.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from sc2pool.errors import ObservationError
from sc2pool.pool.queues.layout import Array, Leaf, Path, SpaceLayout, space_layout


def write_observation(
    layout: SpaceLayout, views: list[Array], observation: Any, strict: bool, name: str = ""
) -> None:
    """Copy an observation into its views.

    Args:
        strict: see below.
        name: of its row, with which an error begins.

    Raises:
        ObservationError: a part is missing or of another shape; where `strict`, also another
            dtype, or a value that is not finite.
    """
    try:
        parts = list(layout.parts(observation))
    except (KeyError, IndexError, TypeError) as error:
        raise _lacks_parts(name, (), observation, layout.space, error) from error
    for view, (leaf, part) in zip(views, parts, strict=True):
        view[...] = _array(leaf, part, strict, name, leaf.path)


def check_observation(space: spaces.Space[Any], observation: Any, path: Path = ()) -> None:
    """Check strictly, as `write_observation` does, an observation that is pickled.

    Args:
        space: with a part that has no fixed layout; such a part must be one of its elements.
        observation: of that space.
        path: of both, if they are parts.

    Raises:
        ObservationError: see above.
    """
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        for key, part in parts:
            try:
                value = observation[key]
            except (KeyError, IndexError, TypeError) as error:
                raise _lacks_parts("", path, observation, space, error) from error
            check_observation(part, value, (*path, key))
    elif leaves := space_layout(space, 0).leaves:
        _array(leaves[0], observation, True, "", path)
    elif not space.contains(observation):
        given = f"{observation!r:.80} of type {type(observation).__name__}"
        raise _wrong("", path, f"is {given}, expected an element of {space}")


def _array(leaf: Leaf, value: Any, strict: bool, name: str, path: Path) -> Array:
    """The value as an array that fits the leaf.

    Raises:
        ObservationError: it does not fit.
    """
    try:
        array = np.asarray(value)
    except ValueError as error:
        problem = f"does not form an array of shape {leaf.shape}: {error}"
        raise _wrong(name, path, problem) from error
    if array.shape != leaf.shape or (strict and array.dtype != leaf.dtype):
        given = f"has shape {array.shape} and dtype {array.dtype}"
        raise _wrong(name, path, f"{given}, expected shape {leaf.shape} and dtype {leaf.dtype}")
    if strict and array.dtype.kind == "f" and not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))[0].tolist()
        given = f"is not finite at index {bad}: {array[tuple(bad)]}"
        raise _wrong(name, path, f"{given}; expected finite values")
    return array


def write_mask(leaf: Leaf, view: Array, mask: Array, name: str = "") -> None:
    """Copy an action mask into its view; arguments as of `write_observation`.

    Raises:
        ObservationError: it has another shape or dtype, or the actions have no masks.
    """
    if leaf.shape == (0,):
        raise ObservationError(
            f"{name}action mask is {mask!r:.80}, expected none: only Discrete, MultiDiscrete and "
            "MultiBinary actions have masks"
        )
    try:
        value = np.asarray(mask)
    except ValueError as error:
        problem = f"does not form an array of shape {leaf.shape}: {error}"
        raise ObservationError(f"{name}action mask {problem}") from error
    if value.shape != leaf.shape or value.dtype != leaf.dtype:
        raise ObservationError(
            f"{name}action mask has shape {value.shape} and dtype {value.dtype}, "
            f"expected shape {leaf.shape} and dtype {leaf.dtype}"
        )
    view[...] = value


def _lacks_parts(
    name: str, path: Path, given: Any, space: spaces.Space[Any], error: Exception
) -> ObservationError:
    kind = type(given).__name__
    return _wrong(name, path, f"of type {kind} does not have the parts of {space}: {error!r}")


def _wrong(name: str, path: Path, problem: str) -> ObservationError:
    where = "".join(f"[{key!r}]" for key in path)
    return ObservationError(f"{name}observation{where} {problem}")
