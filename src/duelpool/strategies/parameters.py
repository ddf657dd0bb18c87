"""Parameters from text: `NAME[:parameter=value,...]`, checked against a strategy's own constructor."""

import inspect
import math
import types
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin

from duelpool.errors import BadParameter

GIVEN_BY_CAMPAIGN = frozenset({"items", "seed", "topic", "cap"})

_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def at_least(**values: tuple[float | None, float]) -> None:
    """Refuse a value below its least one: `at_least(k=(k, 1))`, and an infinite one; None is no value, and passes."""
    for name, (value, least) in values.items():
        if value == math.inf:
            raise BadParameter(f"'{name}' is a finite number, not {value}.")
        if value is not None and not value >= least:
            raise BadParameter(f"'{name}' is at least {least}, not {value}.", remedy="Give a larger one.")


def parameters_of(maker: Callable[..., object]) -> dict[str, Any]:
    """Return what a strategy's user may set: parameter names with their annotated types."""
    known = inspect.signature(maker, eval_str=True).parameters
    return {name: p.annotation for name, p in known.items() if name not in GIVEN_BY_CAMPAIGN}


def split_spec(spec: str) -> tuple[str, dict[str, str]]:
    """Return the name and the parameters, still as text, of `NAME[:parameter=value,...]`."""
    name, _, text = spec.partition(":")
    parameters: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise BadParameter(
                f"'{part}' in '{spec}' gives no value.", remedy=f"Write it as {name}:parameter=value."
            )
        parameters[key.strip()] = value.strip()
    return name.strip(), parameters


def read_value(strategy: str, name: str, text: str, kind: Any) -> Any:
    """Return a parameter's value, read as the type that its constructor says."""
    options = get_args(kind) if get_origin(kind) in {Union, types.UnionType} else (kind,)
    if type(None) in options and text.lower() == "none":
        return None
    for option in options:
        if option is type(None):
            continue
        try:
            return _read_as(option, text)
        except (ValueError, KeyError):
            continue
    raise BadParameter(
        f"'{text}' isn't a value of {strategy}'s parameter '{name}'.",
        remedy=f"It takes {_described(options)}.",
    )


def _read_as(kind: Any, text: str) -> Any:
    if get_origin(kind) is Literal:
        return {str(choice): choice for choice in get_args(kind)}[text]
    if kind is bool:
        return _TRUTHS[text.lower()]
    if kind in {int, float, str}:
        return kind(text)
    raise ValueError(f"no way to write a {kind} as text")


def _described(options: tuple[Any, ...]) -> str:
    words = {
        int: "a whole number",
        float: "a number",
        str: "a text",
        bool: "true or false",
        type(None): "none",
    }
    parts = [
        " or ".join(str(choice) for choice in get_args(option))
        if get_origin(option) is Literal
        else words.get(option, "a value that only Python can give")
        for option in options
    ]
    return " or ".join(parts)
