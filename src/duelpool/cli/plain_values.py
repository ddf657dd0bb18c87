"""Texts and numbers of the command line, taken as they are: typer's own conversion imports pydantic for each of them.

Where a value isn't plainly right, typer converts it as before, and says what is wrong with it.
"""

import re
from typing import Any

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


class _PlainFirst:
    """Converts the values of one parameter: plain ones here, all others by typer."""

    def __init__(self, parameter: Any) -> None:
        self.parameter = parameter
        self.by_typer = parameter.get_runtime_param

    def __call__(self) -> "_PlainFirst":
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value in the parameter's type."""
        described = self.parameter.type_descriptor
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        if described.parameter_info.parser is None:
            if several and _is_plain_list(value, described):
                return list(value)
            if not several and _is_plain(value, described):
                return int(value) if described.annotation is int else value
        return self.by_typer().coerce(value, param=param, ctx=ctx)


def _is_plain_list(value: Any, described: Any) -> bool:
    texts = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    return bool(texts and described.annotation == list[str] and not described.is_path)


def _is_plain(value: Any, described: Any) -> bool:
    wanted, rules = described.annotation, described.parameter_info
    if wanted is str:
        return isinstance(value, str) and not described.is_path
    if wanted is int:
        if type(value) is not int and not (isinstance(value, str) and _WHOLE.fullmatch(value)):
            return False
        number = int(value)
        return (rules.min is None or number >= rules.min) and (rules.max is None or number <= rules.max)
    if wanted is float:  # only a default: a written one is for typer to read
        return type(value) is float and rules.min is None and rules.max is None
    return False


def take_plain_values(parameters: list[Any]) -> None:
    """Let parameters take plain values without pydantic; older versions of typer don't use it, and stay as they are."""
    for parameter in parameters:
        converts = getattr(parameter, "get_runtime_param", None)
        if converts is not None and not isinstance(converts, _PlainFirst):
            parameter.get_runtime_param = _PlainFirst(parameter)
