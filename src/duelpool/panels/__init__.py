"""Panels, where paid workers come from: one module and one row of the table `PANELS` for each."""

from duelpool.errors import UnknownName
from duelpool.panels.base import Panel, PanelAccess, PanelSettings
from duelpool.panels.connect import Connect
from duelpool.panels.generic import Generic
from duelpool.panels.mturk import MechanicalTurk
from duelpool.panels.prolific import Prolific

__all__ = ["PANELS", "Panel", "PanelAccess", "PanelSettings", "make_panel"]

PANELS: dict[str, type[Panel]] = {
    "prolific": Prolific,
    "connect": Connect,
    "generic": Generic,
    "mturk": MechanicalTurk,
}
"""Every panel by its name."""


def make_panel(settings: PanelSettings, access: PanelAccess | None = None) -> Panel:
    """Return the panel that a campaign's settings name."""
    if settings.panel not in PANELS:
        raise UnknownName("panel", settings.panel, PANELS)
    return PANELS[settings.panel](settings, access or PanelAccess())
