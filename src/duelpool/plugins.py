"""Tables of names that installed packages extend by entry points: strategies, measures, judges and panels.

A package names what it adds in its metadata, under `duelpool.strategies`, `duelpool.measures`, `duelpool.judges` or
`duelpool.panels`. Duelpool's own names come first and cost nothing: packages are looked for when another name is asked
for, or when a table is listed, and a plugin is imported when it is used. One that can't be used is left out of lists
with a warning; naming it raises `PluginError`, which says why.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from duelpool.errors import DuelpoolError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
_ABSENT: Any = object()


class PluginError(DuelpoolError):
    """An installed plugin that can't be used."""


class PluginWarning(UserWarning):
    """An installed plugin that is left out."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """What a package adds under a name; `problem` says why it can't be used, and is empty where it can."""

    kind: str
    name: str
    package: str  # name and version of the distribution
    place: str  # module:attribute
    problem: str = ""

    @property
    def message(self) -> str:
        """The problem in a sentence that names the plugin and its package."""
        return f"The {self.kind} '{self.name}' of the package {self.package} can't be used: {self.problem}"


@dataclass
class _Found:
    """The entry points under one name, and what was loaded from them."""

    entries: "list[EntryPoint]" = field(default_factory=list)
    loaded: Any = None
    problem: str | None = None  # None: not loaded yet


class PluginTable(dict[str, T]):
    """A table of Duelpool's own names, which installed packages extend.

    Looking up or asking for one of the own names imports nothing. Iterating yields the own names, then the plugins that
    can be used; each of the others is warned about once.
    """

    def __init__(self, kind: str, group: str, own: Mapping[str, T], check: Callable[[str, Any], str]) -> None:
        super().__init__(own)
        self.kind = kind
        self.group = group
        self._check = check
        self._found: dict[str, _Found] | None = None
        self._warned: set[str] = set()

    @property
    def own(self) -> tuple[str, ...]:
        """The names of Duelpool itself."""
        return tuple(super().__iter__())

    def forget(self) -> None:
        """Look for packages again when they are needed: after one was installed in a running session."""
        self._found = None
        self._warned.clear()

    def plugins(self) -> list[Plugin]:
        """Return all that packages add, usable or not, each loaded once."""
        listed = []
        for name, found in self._entries().items():
            problem = self._problem(name)
            listed += [
                Plugin(self.kind, name, _package(entry), entry.value, problem) for entry in found.entries
            ]
        return listed

    def _entries(self) -> dict[str, _Found]:
        if self._found is None:
            from importlib.metadata import entry_points  # takes longer than all that is here

            by_name: dict[str, _Found] = {}
            for entry in sorted(entry_points(group=self.group), key=lambda each: (each.name, _package(each))):
                by_name.setdefault(entry.name, _Found()).entries.append(entry)
            self._found = by_name
        return self._found

    def _problem(self, name: str) -> str:
        found = self._entries()[name]
        if found.problem is None:
            found.problem = self._load(name, found)
        return found.problem

    def _load(self, name: str, found: _Found) -> str:
        if super().__contains__(name):
            return f"Duelpool has a {self.kind} of this name itself. Its authors can give it another name."
        if len(found.entries) > 1:
            packages = " and ".join(map(_package, found.entries))
            return f"{packages} both have this name. Uninstall one of them."
        try:
            found.loaded = found.entries[0].load()
            return self._check(name, found.loaded)
        except (Exception, SystemExit) as error:  # whatever a package does when it is imported
            reason = str(error).strip().splitlines()
            return f"{type(error).__name__}{f': {reason[0]}' if reason else ''}. Update or uninstall the package."

    def _usable(self, name: str) -> Any:
        if problem := self._problem(name):
            plugin = Plugin(self.kind, name, _package(self._entries()[name].entries[0]), "", problem)
            raise PluginError(plugin.message, remedy="`duelpool plugins` lists what is installed.")
        return self._entries()[name].loaded

    def __missing__(self, name: str) -> T:
        if name not in self._entries():
            raise KeyError(name)
        loaded: T = self._usable(name)
        return loaded

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._entries()

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        for name in self._entries():
            if not self._problem(name):
                yield name
            elif name not in self._warned:
                self._warned.add(name)
                plugin = next(each for each in self.plugins() if each.name == name)
                warnings.warn(plugin.message, PluginWarning, stacklevel=2)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def get(self, name: str, default: Any = None) -> Any:
        """Return what has this name, or the default."""
        return self[name] if name in self else default  # noqa: SIM401 - this is what `get` does

    def keys(self) -> Any:
        """Return the names, those of usable plugins too."""
        return dict.fromkeys(self).keys()

    def values(self) -> Any:
        """Return what has a name, usable plugins too."""
        return {name: self[name] for name in self}.values()

    def items(self) -> Any:
        """Return names with what they mean, usable plugins too."""
        return {name: self[name] for name in self}.items()

    def copy(self) -> dict[str, T]:
        """Return Duelpool's own rows."""
        return {name: dict.__getitem__(self, name) for name in self.own}


def _package(entry: "EntryPoint") -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "unknown"


def lacks(kind: object, members: tuple[str, ...]) -> str:
    """Return the problem of a class that lacks members, or an empty text."""
    if not isinstance(kind, type):
        return f"it names {kind!r}, which is no class."
    missing = [name for name in members if getattr(kind, name, _ABSENT) is _ABSENT]
    return f"it has no {', '.join(missing)}." if missing else ""


def misnamed(name: str, kind: Any) -> str:
    """Return the problem of a class whose own name is another than that of its entry point, or an empty text."""
    return "" if kind.name == name else f"it calls itself '{kind.name}'."
