"""`get_attr`, `set_attr`, `env_method` and similar calls on a player's target, in its worker.

The target is a gymnasium env with its wrappers, or a task object. gymnasium's own
`get_wrapper_attr` and `set_wrapper_attr` are used if the target has them. Rule: a call imports no
modules, so a wrapper class is identified by its qualified name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def get_attr(target: Any, name: str) -> Any:
    """The attribute of the target or of an env that it wraps."""
    if hasattr(target, "get_wrapper_attr"):
        return target.get_wrapper_attr(name)
    return getattr(target, name)


def has_attr(target: Any, name: str) -> bool:
    """True if `get_attr` would find the attribute."""
    try:
        get_attr(target, name)
    except AttributeError:
        return False
    return True


def set_attr(target: Any, name: str, value: Any) -> None:
    """Set the attribute on the object that has it; if no object has it, on the outermost object."""
    if hasattr(target, "set_wrapper_attr"):
        target.set_wrapper_attr(name, value)
    else:
        setattr(target, name, value)


def env_method(target: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a method of the target or of an env that it wraps."""
    method = get_attr(target, name)
    if not callable(method):
        raise TypeError(f"{name} of {target!r} must be a method, got {method!r:.80}")
    return method(*args, **kwargs)


def call(target: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a method, or get an attribute, as gymnasium's `VectorEnv.call` does."""
    attribute = get_attr(target, name)
    return attribute(*args, **kwargs) if callable(attribute) else attribute


def is_wrapped(target: Any, qualified_name: str) -> bool:
    """True if a wrapper in the chain is an instance of the class or of a subclass."""
    while hasattr(target, "env"):
        if qualified_name in map(qualified, type(target).__mro__):
            return True
        target = target.env
    return False


def qualified(cls: type) -> str:
    """A class's module and qualified name."""
    return f"{cls.__module__}.{cls.__qualname__}"


def render(target: Any) -> Any:
    """Return the result of the env's `render`, such as a frame."""
    return target.render()


OPERATIONS: dict[str, Callable[..., Any]] = {
    operation.__name__: operation
    for operation in (get_attr, has_attr, set_attr, env_method, call, is_wrapped, render)
}
