"""What the declaration of a setting says: its label, its meaning, and what a change of it does."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar

from pydantic_core import ErrorDetails

from duelpool.errors import BadParameter, DuelpoolError, UnknownName, known_names

Input: TypeAlias = Literal["tick", "ticks", "number", "choice", "line", "list", "text", "records"]
"""How a form asks for a setting."""

T = TypeVar("T")

_ABOUT = "setting"  # its place in a field's metadata
SHOWN_AT_MOST = 80  # characters of a value that is refused

_SCALARS: Mapping[str, tuple[str, Input]] = MappingProxyType(
    {
        "boolean": ("true or false", "tick"),
        "integer": ("a whole number", "number"),
        "number": ("a number", "number"),
        "string": ("a text", "line"),
    }
)


@dataclass(frozen=True, slots=True)
class Setting:
    """What the declaration of a setting says beside its type, range and default.

    A setting has either an `effect`, which says what a change does, or `fixed_because`, which says why it can't
    change while people judge. `choices` holds a label for each choice, `takes` says what to give where the type
    doesn't, `lines` is the height of a long text's input, `section` its place in the dashboard's form, and a
    `private` setting is left out of releases.
    """

    label: str
    help: str
    effect: str
    fixed_because: str
    section: str
    lines: int
    takes: str
    choices: Mapping[str, str]
    private: bool


def setting(
    default: T,
    label: str,
    help: str,  # noqa: A002
    *,
    effect: str = "",
    fixed_because: str = "",
    section: str = "",
    lines: int = 0,
    takes: str = "",
    choices: Mapping[str, str] = MappingProxyType({}),
    private: bool = False,
) -> T:
    """Declare a field of the settings: its default, and what `Setting` says of it."""
    about = Setting(label, help, effect, fixed_because, section, lines, takes, choices, private)
    return field(default=default, metadata={_ABOUT: about})


@dataclass(frozen=True, slots=True)
class SettingField:
    """A setting as forms, files, the API and the documentation take it, derived from its declaration."""

    name: str
    about: Setting
    default: Any
    schema: Mapping[str, Any]  # JSON schema of its values

    @property
    def changeable(self) -> bool:
        """Whether it may change while people judge."""
        return bool(self.about.effect)

    @property
    def optional(self) -> bool:
        """Whether it may be left without a value."""
        return "anyOf" in self.schema

    @property
    def _typed(self) -> Mapping[str, Any]:
        """The schema of a value that isn't null."""
        typed: Mapping[str, Any] = self.schema["anyOf"][0] if self.optional else self.schema
        return typed

    @property
    def least(self) -> int | None:
        """The smallest value of a number that has one."""
        return self._typed.get("minimum")

    @property
    def choices(self) -> tuple[str, ...]:
        """The values to choose from; of a list, those of its members."""
        members = self._typed.get("items", self._typed)
        return tuple(self.about.choices) or tuple(members.get("enum", ()))

    @property
    def input(self) -> Input:
        """How a form asks for it."""
        kind = self._typed.get("type")
        if kind == "array":
            texts = self._typed["items"].get("type") == "string"
            return "ticks" if self.choices else "list" if texts else "records"
        if self.choices:
            return "choice"
        return "text" if self.about.lines else _SCALARS[kind or "string"][1]

    @property
    def whole(self) -> bool:
        """Whether a number is a whole one."""
        return self._typed.get("type") == "integer"

    @property
    def takes(self) -> str:
        """What to give, in words."""
        if self.about.takes:
            return self.about.takes
        if self.choices:
            among = ", ".join(filter(None, self.choices))
            return f"a list of {among}" if self.input == "ticks" else f"one of {among}"
        if self.input in {"list", "records"}:
            return "a list of texts" if self.input == "list" else "a list"
        return _SCALARS[self._typed["type"]][0] + self._range() + (", or null" if self.optional else "")

    def _range(self) -> str:
        least, most, above = (self._typed.get(key) for key in ("minimum", "maximum", "exclusiveMinimum"))
        if above is not None:
            return f" above {above:g}"
        if least is None:
            return ""
        return f" from {least:g} on" if most is None else f" from {least:g} to {most:g}"


def declared(cls: type, schema: dict[str, Any]) -> Mapping[str, SettingField]:
    """Return every setting of the class, whose JSON schema is given, by name in the order of declaration."""
    kinds = schema.get("$defs", {})
    return MappingProxyType(
        {
            each.name: SettingField(
                each.name,
                each.metadata[_ABOUT],
                each.default,
                _without_references(schema["properties"][each.name], kinds),
            )
            for each in fields(cls)
        }
    )


def _without_references(schema: Any, kinds: Mapping[str, Any]) -> Any:
    """Return a schema with the definitions that it refers to in their places."""
    if isinstance(schema, list):
        return [_without_references(each, kinds) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "allOf" in schema and len(schema["allOf"]) == 1:  # older versions of pydantic refer by it
        return _without_references(schema["allOf"][0], kinds)
    if "$ref" in schema:
        return _without_references(kinds[schema["$ref"].rpartition("/")[2]], kinds)
    return {name: _without_references(value, kinds) for name, value in schema.items()}


def refusal(error: ErrorDetails, settings: Mapping[str, SettingField]) -> DuelpoolError:
    """Return the error that names a setting, its bad value and what to give instead."""
    name, value = str(error["loc"][0]), error["input"]
    if name not in settings:
        return UnknownName("setting", name, settings)
    if error["type"] == "value_error":  # a check's own words say what to give
        remedy = str(error["ctx"]["error"])
    elif error["type"] in {"literal_error", "enum"}:
        remedy = known_names(str(value), settings[name].choices)
    else:
        remedy = f"Give {settings[name].takes}."
    return BadParameter(f"'{name}' can't be {shown(value)}.", remedy=remedy)


def shown(value: Any) -> str:
    """Return a value as an error message shows it."""
    if isinstance(value, str):
        return f"'{value[:SHOWN_AT_MOST]}'"
    return repr(value)[:SHOWN_AT_MOST]
