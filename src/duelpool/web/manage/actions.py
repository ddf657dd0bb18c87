"""The manager's actions: each can be previewed; `also` writes its entry in the audit log."""

from collections.abc import Callable

from duelpool.campaign.campaign import Also
from duelpool.campaign.runners.two_sources import refit
from duelpool.campaign.settings.changes import changed, changes
from duelpool.campaign.views.preview import preview_reinstatement, preview_retraction
from duelpool.errors import BadParameter
from duelpool.web.manage.dashboard import Dashboard
from duelpool.web.manage.schemas import (
    ActionEffect,
    ChangeSettings,
    ChangeState,
    Exclude,
    Reinstate,
    Retract,
    Rewind,
    SettingsChanged,
)


def _many(count: int, one: str) -> str:
    return f"{count:,} {one if count == 1 else one + 's'}"


def exclude(dashboard: Dashboard, asked: Exclude, also: Also | None = None) -> ActionEffect:
    """Exclude an assessor, or preview what no longer counts."""
    person = dashboard.watch.assessor(asked.assessor)
    if person.state == "excluded":
        raise BadParameter(f"'{asked.assessor}' is already excluded.", remedy="Reinstate them to undo it.")
    if asked.preview:
        effect = dashboard.campaign.preview_exclusion(asked.assessor)
    else:
        effect = dashboard.campaign.exclude(asked.assessor, asked.reason, also=also)
    verb = "Reopens" if asked.preview else "Reopened"
    sentence = (
        f"{verb} {_many(effect.opened, 'pair')}: {_many(effect.judgments, 'judgment')} on "
        f"{_many(effect.pairs, 'pair')} in {_many(effect.topics, 'topic')} no longer count. Closed phases stay "
        "closed, and finished work is paid."
    )
    return ActionEffect(
        "exclude",
        asked.preview,
        sentence,
        judgments=effect.judgments,
        pairs=effect.pairs,
        topics=effect.topics,
        opened=effect.opened,
    )


def reinstate(dashboard: Dashboard, asked: Reinstate, also: Also | None = None) -> ActionEffect:
    """Reinstate an assessor, or preview what counts again."""
    person = dashboard.watch.assessor(asked.assessor)
    if person.state != "excluded":
        raise BadParameter(f"'{asked.assessor}' isn't excluded.", remedy="There is nothing to undo.")
    if asked.preview:
        back = preview_reinstatement(dashboard.campaign, asked.assessor)
    else:
        back = dashboard.campaign.reinstate(asked.assessor, asked.reason, also=also)
    verb = "would count again" if asked.preview else "count again"
    return ActionEffect(
        "reinstate",
        asked.preview,
        f"{_many(back, 'judgment')} {verb}. The assessor can continue.",
        judgments=back,
    )


def retract(dashboard: Dashboard, asked: Retract, also: Also | None = None) -> ActionEffect:
    """Retract judgments, or preview which of them count."""
    dashboard.watch.topic(asked.topic)
    effect = preview_retraction(dashboard.campaign, asked.topic, asked.seqs)
    if not asked.preview:
        dashboard.campaign.retract(asked.topic, asked.seqs, asked.reason, also=also)
    verb = "Removes" if asked.preview else "Removed"
    sentence = (
        f"{verb} {_many(effect.judgments, 'judgment')} from every score. "
        f"{_many(effect.pairs, 'pair')} of an open phase may be asked again."
    )
    return ActionEffect(
        "retract",
        asked.preview,
        sentence,
        judgments=effect.judgments,
        pairs=effect.pairs,
        topics=bool(effect.judgments),
    )


def rewind(dashboard: Dashboard, asked: Rewind, also: Also | None = None) -> ActionEffect:
    """Open a closed phase again, or preview what is set aside."""
    dashboard.watch.topic(asked.topic)
    if asked.preview:
        aside = dashboard.campaign.preview_rewind(asked.topic, asked.phase)
    else:
        aside = dashboard.campaign.rewind(asked.topic, asked.phase, asked.reason, also=also)
    price = dashboard.watch.look().price
    cost = "" if price is None else f" They cost about {price * aside / 100:,.2f} {_currency(dashboard)}."
    verb = "Sets aside" if asked.preview else "Set aside"
    sentence = f"{verb} {_many(aside, 'judgment')} of later phases.{cost if aside else ''}"
    return ActionEffect("rewind", asked.preview, sentence, judgments=aside, topics=1)


def change_state(dashboard: Dashboard, asked: ChangeState, also: Also | None = None) -> ActionEffect:
    """Pause, close or open a campaign, or preview what follows."""
    status = dashboard.watch.look()
    leased = status.total("leased")
    still = f"{_many(leased, 'leased question')} may still be answered" if leased else "no question is leased"
    if not asked.preview:
        dashboard.campaign.set_state(asked.state, also=also)
    sentence = {
        "open": "The campaign is open: assessors get questions.",
        "paused": f"Assessors get no new questions; {still}.",
        "closed": f"The campaign has ended; {still}.",
    }[asked.state]
    return ActionEffect("state", asked.preview, sentence)


def change_settings(
    dashboard: Dashboard, asked: ChangeSettings, audit_entry: Callable[[str, str], Also] | None = None
) -> SettingsChanged:
    """Change settings, or preview the effects."""
    before = dashboard.campaign.settings
    after = changed(before, asked.settings)
    differences = changes(before, after)
    if differences and not asked.preview:
        names = ", ".join(each.name for each in differences)
        dashboard.campaign.change(
            after, also=audit_entry("settings", names) if audit_entry is not None else None
        )
        refit(dashboard.campaign)
        dashboard.watch.with_settings_of(dashboard.campaign)  # the next page shows a changed currency
    return SettingsChanged(asked.preview, list(differences), after.as_json())


def _currency(dashboard: Dashboard) -> str:
    return dashboard.campaign.settings.currency
