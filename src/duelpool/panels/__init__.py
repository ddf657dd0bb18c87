"""Panels, where paid workers come from: one module and one row of the table `PANELS` for each."""

from typing import Any

from duelpool.errors import UnknownName
from duelpool.panels.base import Panel, PanelAccess, PanelSettings
from duelpool.panels.connect import Connect
from duelpool.panels.generic import Generic
from duelpool.panels.mturk import MechanicalTurk
from duelpool.panels.prolific import Prolific
from duelpool.plugins import PluginTable, lacks, misnamed

__all__ = ["PANELS", "Panel", "PanelAccess", "PanelSettings", "make_panel"]

_OWN: dict[str, type[Panel]] = {
    "prolific": Prolific,
    "connect": Connect,
    "generic": Generic,
    "mturk": MechanicalTurk,
}
_MEMBERS = ("name", "frozen", "example", "arrive", "completion", "reconcile", "settle", "fee", "guide")


def _problem_of(name: str, made: Any) -> str:
    """Return why a class of a package can't be used as a panel; an empty text where it can."""
    return lacks(made, _MEMBERS) or misnamed(name, made)


PANELS: PluginTable[type[Panel]] = PluginTable("panel", "duelpool.panels", _OWN, _problem_of)
"""Every panel by its name; installed packages add theirs by the entry point `duelpool.panels`."""


def make_panel(settings: PanelSettings, access: PanelAccess | None = None) -> Panel:
    """Return the panel that a campaign's settings name."""
    if settings.panel not in PANELS:
        raise UnknownName("panel", settings.panel, PANELS)
    return PANELS[settings.panel](settings, access or PanelAccess())
