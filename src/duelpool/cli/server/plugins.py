"""`duelpool plugins`: what installed packages add, and whether it keeps the contracts."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.table import Table

from duelpool.cli.output import print_json, print_table, tell
from duelpool.errors import UnknownName
from duelpool.judges import JUDGES
from duelpool.measures import MEASURES
from duelpool.panels import PANELS
from duelpool.plugins import Plugin, PluginTable
from duelpool.strategies import STRATEGIES

BROKEN = 1  # the exit code where something can't be used
TABLES: tuple[PluginTable[Any], ...] = (STRATEGIES, MEASURES, JUDGES, PANELS)


def plugins(
    name: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Only these; all of them by default.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Hold each to its contract, which takes some seconds.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the strategies, measures, judges and panels that installed packages add.

    The exit code is 1 where one can't be used, or breaks its contract.

    Examples:

    duelpool plugins

    duelpool plugins my-strategy --check
    """
    listed = [plugin for table in TABLES for plugin in table.plugins()]
    wanted = set(name or ())
    if unknown := sorted(wanted - {plugin.name for plugin in listed}):
        raise UnknownName("plugin", unknown[0], {plugin.name for plugin in listed})
    states = [
        (plugin, plugin.problem or (_broken(plugin) if check else ""))
        for plugin in listed
        if not wanted or plugin.name in wanted
    ]
    if as_json:
        print_json([_row(plugin, problem) for plugin, problem in states])
    elif not states:
        tell(
            "No installed package adds a strategy, measure, judge or panel. The page 'Plugins' has a template."
        )
    else:
        _show(states, check)
    if any(problem for _, problem in states):
        raise typer.Exit(BROKEN)


def _broken(plugin: Plugin) -> str:
    """Return the promise that a plugin breaks, or an empty text."""
    from duelpool import testing

    contracts: dict[str, Callable[[str], None]] = {
        "strategy": testing.strategy_contract,
        "measure": testing.measure_contract,
        "judge": testing.judge_contract,
        "panel": testing.panel_contract,
    }
    try:
        contracts[plugin.kind](plugin.name)
    except testing.ContractError as error:
        return f"it breaks its contract: {error}"
    except Exception as error:  # of a package's own code
        return f"its contract ends with {type(error).__name__}: {error}"
    return ""


def _row(plugin: Plugin, problem: str) -> dict[str, str]:
    return {
        "kind": plugin.kind,
        "name": plugin.name,
        "package": plugin.package,
        "place": plugin.place,
        "problem": problem,
    }


def _show(states: list[tuple[Plugin, str]], checked: bool) -> None:
    table = Table(title="Plugins", title_justify="left")
    for column in ("kind", "name", "package", "state"):
        table.add_column(column, overflow="fold")
    for plugin, problem in states:
        state = f"not usable: {problem}" if problem else "keeps its contract" if checked else "usable"
        table.add_row(plugin.kind, plugin.name, plugin.package, state)
    print_table(table)
