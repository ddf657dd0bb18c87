"""The packages: which may import which, and which modules load without extras."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import duelpool
import duelpool_reproduce

SOURCE = Path(duelpool.__file__).parent
REPRODUCE = Path(duelpool_reproduce.__file__).parent

GROUND = (
    "errors",
    "durable",
    "plugins",
    "seeds",
    "arrays",
    "compiling",
    "background",
    "shares",
    "frames",
    "labels",
    "records",
)
# From the lowest up: a package imports only those named here, all of which are above it in this table.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "errors": (),
    "durable": (),
    "plugins": ("errors",),
    "seeds": (),
    "arrays": (),
    "compiling": (),
    "background": (),
    "shares": ("arrays",),
    "frames": ("errors",),
    "labels": (),
    "records": ("errors", "frames"),
    "net": ("errors",),
    "files": GROUND,
    "pooling": (*GROUND, "files"),
    "preferences": (*GROUND, "files"),
    "strategies": GROUND,
    "measures": (*GROUND, "files", "preferences"),
    "judges": (*GROUND, "net", "files", "strategies"),
    "comparison": (*GROUND, "files", "measures"),
    "budget": (*GROUND, "files", "measures"),
    "deciders": (*GROUND, "files", "preferences", "strategies"),
    "simulation": (*GROUND, "files", "preferences", "strategies", "judges", "deciders"),
    "store": GROUND,
    "access": (*GROUND, "net", "store"),
    "panels": ("errors", "plugins", "net"),
    "campaign": (
        *GROUND,
        *("net", "files", "budget", "pooling", "preferences", "strategies", "judges", "deciders", "store"),
        "panels",
    ),
    "recruitment": (*GROUND, "store", "panels", "campaign"),
    "webhooks": (*GROUND, "net", "store", "access", "campaign"),
    "report": (*GROUND, "files"),
    "agreements": (*GROUND, "files", "preferences", "comparison", "store", "campaign", "report"),
    "evaluation": (*GROUND, "files", "preferences", "strategies", "measures", "comparison", "report"),
    "submissions": (*GROUND, "files", "comparison", "report", "evaluation"),
    "leaderboard": (
        *GROUND,
        *("files", "strategies", "measures", "comparison", "store", "campaign", "report", "evaluation"),
    ),
    "setup": (
        *GROUND,
        *(
            "files",
            "pooling",
            "strategies",
            "deciders",
            "preferences",
            "judges",
            "budget",
            "simulation",
            "store",
            "campaign",
            "leaderboard",
        ),
    ),
    "schemas": (*GROUND, "budget", "store", "leaderboard"),
    "client": ("errors", "durable"),
    "plots": (*GROUND, "files", "comparison", "budget", "agreements", "simulation", "evaluation"),
    "campaign_report": (
        *GROUND,
        *("judges", "store", "campaign", "report", "agreements", "evaluation", "leaderboard"),
    ),
    "web": (
        *GROUND,
        *("files", "pooling", "preferences", "strategies", "measures", "comparison", "simulation", "store"),
        *(
            "access",
            "panels",
            "campaign",
            "recruitment",
            "report",
            "agreements",
            "evaluation",
            "leaderboard",
            "setup",
            "webhooks",
        ),
    ),
    "adaptors": (*GROUND, "net", "files", "strategies", "measures", "judges", "evaluation"),
    "demo": (
        *GROUND,
        *("files", "budget", "campaign", "comparison", "evaluation", "leaderboard", "report"),
    ),
    "testing": (
        *GROUND,
        *("files", "strategies", "measures", "judges", "deciders", "store", "panels", "campaign"),
    ),
}
MAY_IMPORT["cli"] = tuple(MAY_IMPORT)  # the top layer imports all of them
MAY_IMPORT["api"] = tuple(room for room in MAY_IMPORT if room != "testing")  # what `import duelpool` offers
# What the distribution `duelpool-reproduce` may use of duelpool: no store, no campaign, no web.
REPRODUCE_MAY_IMPORT = (
    *GROUND,
    *("files", "pooling", "preferences", "strategies", "measures", "judges", "deciders", "comparison"),
    *("budget", "simulation", "report", "agreements", "evaluation", "plots", "demo"),
)
SQL_ROOMS = ("store", "access", "campaign", "recruitment", "webhooks", "testing")
"""The rooms that may import SQLAlchemy; all others call their functions."""
DOORS = {"__init__", "__main__"}  # the package's own modules may import any package


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_modules(path: Path) -> set[str]:
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: imports are absolute"
            whole = node.module == "duelpool"
            modules |= {f"duelpool.{alias.name}" for alias in node.names} if whole else {node.module}
    return modules


def imported_rooms(path: Path) -> set[str]:
    modules = imported_modules(path)
    return {name.split(".")[1] for name in modules if name.startswith("duelpool.")} - {"__version__"}


MODULES = sorted(SOURCE.rglob("*.py"))
REPRODUCE_MODULES = sorted(REPRODUCE.rglob("*.py"))


def test_table_is_ordered_from_the_lowest_layer_up() -> None:
    rooms = list(MAY_IMPORT)
    for at, (room, below) in enumerate(MAY_IMPORT.items()):
        assert set(below) <= set(rooms[:at]), f"{room} may import only rooms that stand above it in the table"


def test_table_lists_exactly_the_packages() -> None:
    assert {room_of(path) for path in MODULES} - DOORS == set(MAY_IMPORT)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_package_imports_only_lower_layers(path: Path) -> None:
    room = room_of(path)
    if room not in DOORS:
        strays = imported_rooms(path) - {room, *MAY_IMPORT[room]}
        assert not strays, f"{path.relative_to(SOURCE)} imports from {sorted(strays)}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_rooms_around_the_store_import_sqlalchemy(path: Path) -> None:
    if room_of(path) not in SQL_ROOMS:
        assert not {name for name in imported_modules(path) if name.split(".")[0] == "sqlalchemy"}


def test_only_the_reproduce_command_imports_the_experiments() -> None:
    importers = [path for path in MODULES if "duelpool_reproduce" in path.read_text(encoding="utf-8")]
    assert importers == [SOURCE / "cli" / "evaluation" / "reproduce.py"]


@pytest.mark.parametrize("path", REPRODUCE_MODULES, ids=lambda path: str(path.relative_to(REPRODUCE)))
def test_experiments_import_only_allowed_packages(path: Path) -> None:
    allowed = set(REPRODUCE_MAY_IMPORT)
    if path == REPRODUCE / "command.py":
        allowed.add("cli")  # processes and progress bars, as other long commands have them
    assert allowed <= set(MAY_IMPORT)
    strays = imported_rooms(path) - allowed
    assert not strays, f"{path.relative_to(REPRODUCE)} imports from {sorted(strays)}"


LONG_MODULES = {
    "duelpool/records.py": "the terms of the package, and the one table of what outcomes mean",
    "duelpool/campaign/settings/settings.py": "every setting of a campaign, declared once",
    "duelpool/campaign/views/status.py": "the one view of a campaign's state, from its records to its blocks",
}
"""Modules of more than 500 lines, each with the reason why it is one thing."""
ROOM_LINES = 3500
SAME_NAME: dict[str, str] = {}
"""Class names that the package defines more than once, each with the reason."""


@pytest.mark.parametrize("path", [*MODULES, *REPRODUCE_MODULES], ids=lambda path: str(path.name))
def test_long_modules_are_reviewed(path: Path) -> None:
    name = str(path.relative_to(next(home.parent for home in (SOURCE, REPRODUCE) if home in path.parents)))
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 500 or name in LONG_MODULES, (
        f"{name} has {lines} lines: split it, or add it to LONG_MODULES"
    )


def test_no_folder_holds_more_lines_than_a_room_may() -> None:
    """A larger room is the sum of named sub-rooms."""
    lines: Counter[Path] = Counter()
    for path in MODULES:
        lines[path.parent] += len(path.read_text(encoding="utf-8").splitlines())
    assert {str(folder) for folder, count in lines.items() if count > ROOM_LINES} == set()


def test_a_class_name_is_defined_once() -> None:
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    repeated = {name: where for name, where in places.items() if len(where) > 1}
    assert set(repeated) == set(SAME_NAME), repeated


SUB_ROOMS = ("settings", "log", "questions", "work", "views", "exports", "imports", "runners", "checks")
CAMPAIGN_MAY_IMPORT = {
    "settings": (),
    "events": (),
    "log": ("settings",),
    "questions": ("settings", "log", "work"),
    "work": ("settings", "events", "log", "views.tally"),
    "campaign": ("settings", "log", "questions", "work"),
    "views": ("settings", "log", "questions", "work", "campaign"),
    "exports": ("settings", "log", "views", "campaign"),
    "imports": ("settings", "log", "campaign", "views"),
    "runners": ("settings", "events", "log", "work.participants", "campaign", "views"),
    "checks": ("settings", "log", "work", "views", "campaign"),
}
"""What each sub-room of `campaign` imports from the others; `views.tally` stands below the rest of the views."""


@pytest.mark.parametrize(
    "path", sorted((SOURCE / "campaign").rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE))
)
def test_a_sub_room_of_the_campaign_imports_what_it_may(path: Path) -> None:
    own = path.relative_to(SOURCE / "campaign").parts[0].removesuffix(".py")
    if own == "__init__":
        return
    allowed = (own, *CAMPAIGN_MAY_IMPORT[own])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("duelpool.campaign"):
            below = (node.module or "").removeprefix("duelpool.campaign").removeprefix(".")
            names = [f"{below}.{alias.name}" if below else alias.name for alias in node.names]
            for name in names:
                assert name.startswith(allowed), f"{path.relative_to(SOURCE)} imports {name}"


def test_only_three_readers_parse_files_with_polars() -> None:
    readers = [
        path.name for path in MODULES if "pl.read_" in path.read_text() or "pl.scan_" in path.read_text()
    ]
    assert readers == ["columns.py", "packed.py", "tables.py"]


@pytest.mark.long
def test_every_module_imports_without_extras() -> None:
    """No optional package is needed for an import, nor a module that Windows lacks."""
    names = [
        ".".join(("duelpool", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        for path in MODULES
        if path.stem not in {"__main__", "env"}  # run, not imported: by Python, by Alembic
    ]
    optional = (
        *("ir_measures", "pytrec_eval", "hypothesis", "pytest", "psycopg", "distributed", "openai"),
        *("ir_datasets", "datasets", "pyterrier", "autojudge_base", "anywidget", "traitlets", "numba"),
    )
    posix = ("fcntl", "resource")
    code = (
        "import sys, importlib\n"
        f"for name in {(*optional, *posix, 'duelpool_reproduce')!r}: sys.modules[name] = None\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_insert_is_counted_by_its_rowcount() -> None:
    """PostgreSQL's is -1, whether the row was there already or not: ask for what was inserted, with `returning`."""
    counted = re.compile(r"on_conflict_do_nothing\(\)\)\s*\.rowcount")
    assert [path.name for path in MODULES if counted.search(path.read_text(encoding="utf-8"))] == []
