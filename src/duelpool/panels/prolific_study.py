"""A study at Prolific: how to set it up for a campaign, and checks that it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from duelpool.panels.base import PanelSettings, Paste, StudyCheck, WorkOutcome, decimal_of

PLACEHOLDERS = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
CURRENCIES = ("GBP", "USD")
CODES: Mapping[WorkOutcome, tuple[str, str, str]] = {
    WorkOutcome.COMPLETED: (
        "COMPLETED",
        "MANUALLY_REVIEW",
        "`duelpool panel settle` approves it",
    ),
    WorkOutcome.FAILED_TESTS: (
        "FAILED_ATTENTION_CHECK",
        "MANUALLY_REVIEW",
        "their judgments are left out, and they are approved and paid all the same",
    ),
    WorkOutcome.STOPPED_EARLY: (
        "OTHER",
        "REQUEST_RETURN",
        "they return the place, and are paid for what they did as a bonus",
    ),
    WorkOutcome.NO_WORK: (
        "OTHER",
        "REQUEST_RETURN",
        "there was nothing to judge; they return the place",
    ),
}
"""The completion codes of a study: their type at Prolific, its action, and what Duelpool does."""


@dataclass(frozen=True, slots=True)
class ProlificStudy:
    """The settings of a study that a campaign depends on."""

    reward: int | None
    currency: str
    url: str
    codes: Mapping[str, tuple[str, ...]]  # to their actions
    status: str


def study_of(data: Any) -> ProlificStudy:
    """Read a study from Prolific's answer; missing values are left empty."""
    row = data if isinstance(data, dict) else {}
    reward = row.get("reward")
    codes: dict[str, tuple[str, ...]] = {}
    for each in row.get("completion_codes") or ():
        if isinstance(each, dict) and isinstance(each.get("code"), str):
            actions = each.get("actions") or ()
            codes[each["code"]] = tuple(
                str(action.get("action", "")) for action in actions if isinstance(action, dict)
            )
    currency = row.get("presentment_currency_code") or row.get("currency_code") or ""
    return ProlificStudy(
        round(reward) if isinstance(reward, int | float) and not isinstance(reward, bool) else None,
        str(currency),
        str(row.get("external_study_url") or ""),
        codes,
        str(row.get("status") or ""),
    )


def guide(settings: PanelSettings, arrival: str, hook: str, variable: str) -> list[Paste]:
    """Return what to paste where, and what to choose."""
    pastes = [
        Paste("Study link", f"{arrival}&{PLACEHOLDERS}", "choose: I'll use URL parameters on this link"),
        Paste("Reward", f"{decimal_of(settings.reward)} {settings.currency}", "for one assignment"),
    ]
    for outcome, (kind, action, note) in CODES.items():
        code = settings.code(outcome)
        distinct = code and (outcome is WorkOutcome.COMPLETED or code != settings.complete)
        what = code if distinct else "as when completed" if code else "no code is set"
        pastes.append(Paste(f"Completion code, {outcome}", what, f"{kind}, {action}: {note}"))
    return [
        *pastes,
        Paste("Webhook, submission.status.change", hook, f"its secret goes into {variable}_SECRET"),
        Paste("API token", f"{variable}_TOKEN", "an environment variable, nowhere else"),
        Paste("Who may take part", "fluent in the language of the texts", "Screeners: Languages"),
        Paste(
            "Who may take part",
            "approval rate 95 or more, 20 submissions or more",
            "Screeners: Participation",
        ),
        Paste("Who may take part", "nobody from your earlier studies of these topics", "Screeners: Exclude"),
        Paste("Who may take part", "desktop and tablet", "phones work, and judge more slowly"),
        Paste("Places per person", "one", "further assignments of a submission are paid as bonuses"),
    ]


def compare(settings: PanelSettings, study: ProlificStudy, arrival: str) -> list[StudyCheck]:
    """Check that a study is set up as the campaign needs it."""
    checks = [_reward(settings, study), _link(study, arrival)]
    if study.currency:
        problem = (
            ""
            if study.currency == settings.currency
            else f"the study pays in {study.currency}, the campaign counts in {settings.currency}"
        )
        checks.append(StudyCheck("the currency", problem))
    for outcome, (_, action, _) in CODES.items():
        code = settings.code(outcome)
        if not code:
            continue
        actions = study.codes.get(code)
        problem = ""
        if actions is None:
            problem = f"the study has no code {code}"
        elif outcome is not WorkOutcome.COMPLETED and code == settings.complete:
            pass
        elif "AUTOMATICALLY_APPROVE" in actions and action != "MANUALLY_REVIEW":
            problem = f"code {code} approves by itself: workers would be paid in full for a part"
        checks.append(StudyCheck(f"the code for {outcome}", problem))
    return checks


def _reward(settings: PanelSettings, study: ProlificStudy) -> StudyCheck:
    if study.reward is None:
        return StudyCheck("the reward", "Prolific doesn't say it")
    if study.reward == settings.reward:
        return StudyCheck("the reward")
    return StudyCheck(
        "the reward",
        f"the study pays {decimal_of(study.reward)}, the campaign promises {decimal_of(settings.reward)}",
    )


def _link(study: ProlificStudy, arrival: str) -> StudyCheck:
    what = "the study link"
    if not study.url:
        return StudyCheck(what, "the study has none")
    theirs, ours = urlsplit(study.url), urlsplit(arrival)
    if ours.netloc and (theirs.netloc, theirs.path) != (ours.netloc, ours.path):
        return StudyCheck(what, f"it leads to {theirs.netloc}{theirs.path}")
    if theirs.scheme != "https":
        return StudyCheck(what, "it is not https")
    query = parse_qs(theirs.query)
    missing = [name for name in ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID", "key") if name not in query]
    return StudyCheck(what, f"it lacks {', '.join(missing)}" if missing else "")
