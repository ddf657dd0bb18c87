"""Options of a command as one record: each field of a dataclass is an option, declared once."""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, TypeVar, get_type_hints

Command = TypeVar("Command", bound=Callable[..., None])


def takes_records(command: Command) -> Command:
    """Let a command take dataclasses: typer sees an option for each field, the command gets the records.

    The fields are declared as typer's options are: `limit: Annotated[int | None, typer.Option(...)] = None`.
    """
    hints = get_type_hints(command, include_extras=True)
    records = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in records:
            parameters += _options_of(records[parameter.name])
        else:
            annotation = hints[parameter.name]
            parameters.append(parameter.replace(annotation=annotation, kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def with_records(**values: Any) -> None:
        made = {
            name: record(**{each.name: values.pop(each.name) for each in fields(record)})
            for name, record in records.items()
        }
        command(**values, **made)

    signature: Any = with_records  # typer reads both of what is set here
    signature.__signature__ = inspect.Signature(parameters, return_annotation=None)
    signature.__annotations__ = {each.name: each.annotation for each in parameters}
    return signature  # type: ignore[no-any-return]


def _options_of(record: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(record, include_extras=True)
    return [
        parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(record).parameters.values()
    ]
