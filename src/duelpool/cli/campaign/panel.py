"""`duelpool panel`: set up the panel that workers come from, and settle their payments with it."""

import os
import re
from typing import Annotated, Any

import typer
from rich.table import Table

from duelpool.campaign import Campaign
from duelpool.cli.helptext import command_group
from duelpool.cli.opening import audit_entry, confirmed, opened, recorded, working
from duelpool.cli.options import CampaignOption, JsonOption, StoreArgument, YesOption
from duelpool.cli.output import print_json, print_table
from duelpool.errors import BadParameter, DuelpoolError
from duelpool.net.addresses import checked_root
from duelpool.panels import Panel, PanelAccess, make_panel
from duelpool.panels.base import ApiPanel, PanelError, StudyCheck, SubmissionStatus, decimal_of, variable_of
from duelpool.recruitment.erasure import erase
from duelpool.recruitment.payments import Payment, answer
from duelpool.recruitment.reports import StatusChange
from duelpool.recruitment.settlement import (
    Settled,
    SettlementPlan,
    carry_out_plan,
    plan,
    settlement_state,
    totals,
    unknown_submissions,
)
from duelpool.recruitment.settlement import reconcile as take_over
from duelpool.recruitment.submissions import submissions

panel = command_group(
    "Work with the panel that paid people come from: Prolific, Connect or any other.",
    "duelpool panel show campaign.db --url https://judge.example.org",
    "duelpool panel settle campaign.db",
)

UrlOption = Annotated[str, typer.Option(help="The public URL of the server.")]
HERE = "http://127.0.0.1:8000"
DAYS = 60.0
_NUMBER = re.compile("[0-9]{1,18}")


def _panel_of(campaign: Campaign) -> Panel:
    settings = campaign.settings
    if not settings.panel:
        raise BadParameter(
            f"Campaign {campaign.name} has no panel.",
            remedy="Set panel in its settings: `duelpool change STORE --settings FILE`.",
        )
    return make_panel(settings.panel_settings, PanelAccess.from_environment(settings.panel, os.environ))


def _addresses(campaign: Campaign, url: str, days: float) -> tuple[str, str]:
    from duelpool.web.access.links import link_keys

    store, name = campaign.store, campaign.settings.panel
    key = link_keys(store).key(campaign.id, "open", store.now(), days=days)
    root = checked_root(url)
    return f"{root}/j/{campaign.id}/from/{name}?key={key}", f"{root}/hooks/{name}/{campaign.id}"


@panel.command()
def show(
    store: StoreArgument,
    url: UrlOption = HERE,
    days: Annotated[float, typer.Option(min=0.001, help="How long the link works, in days.")] = DAYS,
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what to enter at the panel: the study's link, completion codes, webhook and screening.

    Examples:

      duelpool panel show campaign.db --url https://judge.example.org
    """
    with opened(store, campaign_name, writable=True) as campaign:
        pastes = _panel_of(campaign).guide(*_addresses(campaign, url, days))
        name = campaign.settings.panel
    if as_json:
        print_json([{"where": each.where, "what": each.what, "note": each.note} for each in pastes])
        return
    typer.echo(f"Panel {name}")
    for each in pastes:
        typer.echo(f"\n{each.where}{f' ({each.note})' if each.note else ''}\n  {each.what}")


@panel.command()
def check(
    store: StoreArgument,
    url: UrlOption = "",
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the campaign's panel settings; nothing is changed.

    Examples:

      duelpool panel check campaign.db --url https://judge.example.org
    """
    with opened(store, campaign_name, writable=True) as campaign:
        chosen = _panel_of(campaign)
        findings = _findings(campaign, chosen, url)
    wrong = [each for each in findings if each.problem]
    if as_json:
        print_json([{"what": each.what, "problem": each.problem} for each in findings])
    else:
        for each in findings:
            typer.echo(
                f"{'wrong' if each.problem else 'ok   '}  {each.what}{': ' if each.problem else ''}{each.problem}"
            )
    if wrong:
        raise BadParameter(
            f"{len(wrong)} of {len(findings)} checks failed.", remedy="Correct the settings, and check again."
        )


def _findings(campaign: Campaign, chosen: Panel, url: str) -> list[StudyCheck]:
    settings = campaign.settings
    checks = [
        StudyCheck("the panel", "it has closed" if chosen.frozen else ""),
        StudyCheck(
            "people judge in assignments", "" if settings.judges == "crowd" else "judges is not crowd"
        ),
        StudyCheck(
            "the completion code",
            "" if settings.completion_code or settings.completion_url else "there is none",
        ),
    ]
    if url:
        url = checked_root(url)
        checks.append(StudyCheck("the address", "" if url.startswith("https://") else "it is not https"))
    if isinstance(chosen, ApiPanel):
        variable = variable_of(settings.panel)
        secret = os.environ.get(f"{variable}_SECRET")
        checks.append(StudyCheck("the webhook's secret", "" if secret else f"{variable}_SECRET is not set"))
        try:
            arrival = f"{url}/j/{campaign.id}/from/{settings.panel}" if url else ""
            with working("Asking the panel"):
                checks += chosen.check(arrival)
        except DuelpoolError as error:
            checks.append(StudyCheck("the panel answers", str(error)))
    return checks


@panel.command()
def reconcile(
    store: StoreArgument,
    yes: YesOption = False,
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Update every submission to its status at the panel; ended ones free their pairs for other workers.

    Without --yes it only shows what would change.

    Examples:

      duelpool panel reconcile campaign.db

      duelpool panel reconcile campaign.db --yes
    """
    with opened(store, campaign_name, writable=True) as campaign:
        chosen = _panel_of(campaign)
        with working("Asking the panel"):
            changes = take_over(campaign, chosen, carry_out=False)
            unknown = unknown_submissions(campaign, chosen)
        if as_json and not yes:
            print_json({"changes": [_as_json(each) for each in changes], "done": False})
            return
        if not as_json:
            _show_changes(changes)
            for submission in unknown:
                typer.echo(
                    f"The panel doesn't know the submission of {submission.assessor}, and doesn't pay for it."
                )
        if changes and confirmed(f"Apply {len(changes)} changes?", yes):
            with working("Applying"):
                changes = take_over(campaign, chosen, carry_out=True)
            campaign.write(audit_entry(campaign, "panel reconcile", changes=len(changes)))
            if as_json:
                print_json({"changes": [_as_json(each) for each in changes], "done": True})
            else:
                typer.echo(f"Applied {len(changes)} changes.")
        elif as_json:
            print_json({"changes": [], "done": True})


def _as_json(change: StatusChange) -> dict[str, Any]:
    return {
        "assessor": change.assessor,
        "before": change.before,
        "after": change.after,
        "effects": list(change.effects),
    }


def _show_changes(changes: list[StatusChange]) -> None:
    if not changes:
        typer.echo("Nothing has changed at the panel.")
        return
    table = Table("assessor", "before", "now", "effects", title="Changed at the panel", title_justify="left")
    for each in changes:
        status = each.raw_status if each.after is SubmissionStatus.OTHER else str(each.after)
        table.add_row(each.assessor, str(each.before or "not known"), status, "; ".join(each.effects))
    print_table(table)


@panel.command()
def settle(
    store: StoreArgument,
    answer_texts: Annotated[
        list[str] | None,
        typer.Option("--answer", metavar="N=paid|unpaid", help="Whether payments in doubt were made."),
    ] = None,
    reason: Annotated[str, typer.Option(help="How you know, for the record.")] = "",
    yes: YesOption = False,
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Pay what is due, each payment once: shows a plan first, and carries it out with --yes.

    A payment that may or may not have been made is never repeated. Check it on the panel's site, and say with
    --answer whether it was made.

    Examples:

      duelpool panel settle campaign.db

      duelpool panel settle campaign.db --yes

      duelpool panel settle campaign.db --answer 12,13=paid --reason "seen in the billing page" --yes
    """
    answers = _answers(answer_texts or ())
    with opened(store, campaign_name, writable=True) as campaign:
        chosen = _panel_of(campaign)
        if answers:
            _take_answers(campaign, answers, reason, yes, as_json)
            return
        with working("Asking the panel"):
            changes = take_over(campaign, chosen, carry_out=yes)
            planned = plan(campaign, chosen)
        before = settlement_state(campaign, planned)
        if not as_json:
            if changes:
                _show_changes(changes)
            _show_plan(campaign, chosen, before)
        done = bool(_steps(planned)) and confirmed(f"Pay {_money(planned.due, campaign)}?", yes)
        after = before
        if done:
            with working("Settling"):
                if not yes:
                    take_over(campaign, chosen, carry_out=True)
                    if plan(campaign, chosen) != planned:
                        raise BadParameter(
                            "The panel's answer has changed since the plan was made.",
                            remedy="Run the command again and check the new plan.",
                        )
                with recorded(campaign, "panel settle", due=_money(planned.due, campaign)):
                    after = carry_out_plan(campaign, chosen, planned)
        _report(campaign, chosen, after, done=done, as_json=as_json)


def _answers(answer_texts: Any) -> dict[int, bool]:
    answers: dict[int, bool] = {}
    for each in answer_texts:
        numbers, _, word = each.partition("=")
        if word not in ("paid", "unpaid") or not all(
            _NUMBER.fullmatch(part.strip()) for part in numbers.split(",")
        ):
            raise BadParameter(f"'{each}' isn't an answer.", remedy="Write 12=paid, 12=unpaid or 12,13=paid.")
        answers |= {int(part): word == "paid" for part in numbers.split(",")}
    return answers


def _take_answers(
    campaign: Campaign, answers: dict[int, bool], reason: str, yes: bool, as_json: bool
) -> None:
    asked = {each.id: each for each in settlement_state(campaign).questions}
    if not as_json:
        for number, was_paid in answers.items():
            if number in asked:
                word = "was paid" if was_paid else "was not paid, and may be paid again"
                typer.echo(f"Payment {number} of {_money(asked[number].amount, campaign)} {word}.")
    if unknown := sorted(set(answers) - set(asked)):
        raise BadParameter(
            f"Payment {unknown[0]} isn't in doubt.",
            remedy="`duelpool panel settle` lists the payments in doubt.",
        )
    if confirmed("Record this?", yes):
        taken = answer(campaign.own_store, answers, reason)
        payments = ", ".join(f"{number} {'paid' if paid else 'unpaid'}" for number, paid in answers.items())
        campaign.write(audit_entry(campaign, "panel answer", payments=payments, reason=reason))
        if as_json:
            print_json({"answered": {each.id: each.state for each in taken}})
        else:
            typer.echo(f"Recorded {len(taken)} answers.")


def _steps(planned: SettlementPlan) -> int:
    return len(planned.intents) + len(planned.covered) + len(planned.returns)


def _money(amount: int, campaign: Campaign) -> str:
    return f"{decimal_of(amount)} {campaign.settings.currency}"


def _show_plan(campaign: Campaign, chosen: Panel, settlement: Settled) -> None:
    planned = settlement.plan
    names = _names(campaign)
    if planned.intents:
        table = Table("assessor", "how", title="To pay", title_justify="left")
        table.add_column("amount", justify="right")
        table.add_column("fee", justify="right")
        for each in planned.intents:
            how = each.kind if each.state == "planned" else f"a question: {each.note}"
            table.add_row(names.get(each.submission, ""), how, decimal_of(each.amount), decimal_of(each.fee))
        print_table(table)
    for covered in planned.covered:
        typer.echo(f"To record: the panel has approved {covered.submission.assessor}.")
    for submission in planned.returns:
        typer.echo(f"To request: {submission.assessor} stopped early and should return the submission.")
    for submission, amount in planned.waiting:
        typer.echo(
            f"Waiting: {_money(amount, campaign)} to {submission.assessor}, status {submission.status or 'not known'}."
        )
    for submission, why in planned.to_review:
        typer.echo(f"To check: {submission.assessor}, the panel's {submission.external}: {why}.")
    for submission in unknown_submissions(campaign, chosen):
        typer.echo(
            f"To check: {submission.assessor} used a link that the panel didn't give out; the panel doesn't pay for it."
        )
    if planned.elsewhere:
        typer.echo(
            f"Not by this panel: {_money(planned.elsewhere, campaign)} to people who didn't come from it."
        )
    if not _steps(planned):
        typer.echo("Nothing is due now.")


def _names(campaign: Campaign) -> dict[str, str]:
    known = campaign.read(lambda tx: submissions(tx, campaign.settings.panel))
    return {submission.id: submission.assessor for submission in known}


def _evidence(chosen: Panel, payment: Payment) -> str:
    if not isinstance(chosen, ApiPanel) or not payment.external:
        return ""
    try:
        shown = [decimal_of(each) for each in chosen.bonuses(payment.external)]
    except PanelError as error:
        return f"the panel can't be asked: {error.problem}"
    return f"the panel shows bonuses of {', '.join(shown)}" if shown else "the panel shows no bonus"


def _report(campaign: Campaign, chosen: Panel, settlement: Settled, *, done: bool, as_json: bool) -> None:
    added = totals(campaign)
    if as_json:
        print_json(
            {
                "done": done,
                "currency": campaign.settings.currency,
                "due": settlement.plan.due,
                "planned": [
                    {"kind": each.kind, "amount": each.amount, "fee": each.fee}
                    for each in settlement.plan.intents
                ],
                "questions": [
                    {"payment": each.id, "kind": each.kind, "amount": each.amount, "state": each.state}
                    for each in settlement.questions
                ],
                "payments": {state: list(sums) for state, sums in settlement.payments.items()},
                "totals": added,
            }
        )
        return
    for state, (number, amount) in sorted(settlement.payments.items()):
        typer.echo(f"{state}: {number} payments, {_money(amount, campaign)}")
    typer.echo(
        f"The ledger has {_money(added['ledger'], campaign)} for people and {_money(added['fees'], campaign)} of fees; "
        f"{_money(added['paid'], campaign)} is paid."
    )
    for each in settlement.questions:
        batch = f", the panel's batch {each.batch}" if each.batch else ""
        state = {"by-hand": "must be paid by hand"}.get(each.state, "may or may not have been paid")
        typer.echo(
            f"Question {each.id}: {each.kind} of {_money(each.amount, campaign)} to {each.assessor} {state} "
            f"(the panel's {each.external}{batch}). {_evidence(chosen, each)} {each.note}".rstrip()
        )
    if settlement.questions:
        numbers = ",".join(str(each.id) for each in settlement.questions)
        typer.echo(
            f"Check the panel's site, then: duelpool panel settle STORE --answer {numbers}=paid (or unpaid)"
        )


@panel.command()
def reject(
    store: StoreArgument,
    assessor: Annotated[str, typer.Argument(help="The pseudonym of the worker.")],
    category: Annotated[str, typer.Option(help="The panel's category, such as FAILED_INSTRUCTIONS.")],
    message: Annotated[str, typer.Option(help="The message to the worker, 100 characters or more.")],
    yes: YesOption = False,
    campaign_name: CampaignOption = None,
) -> None:
    """Reject a worker's submission: it is not paid, and its judgments no longer count. This can't be undone.

    Failed test pairs alone are no reason to refuse the pay: their judgments are left out already.

    Examples:

      duelpool panel reject campaign.db v-0a1b2c --category NO_DATA --message "..."
    """
    with opened(store, campaign_name, writable=True) as campaign:
        chosen = _panel_of(campaign)
        if not isinstance(chosen, ApiPanel):
            raise BadParameter("This panel has no API.", remedy="Reject the work on its site.")
        own = campaign.read(lambda tx: submissions(tx, campaign.settings.panel, assessor))
        waiting = [submission for submission in own if submission.status is SubmissionStatus.SUBMITTED]
        if not waiting:
            raise BadParameter(
                f"'{assessor}' has no submission that waits for review.",
                remedy="See `duelpool panel reconcile`.",
            )
        typer.echo(f"{assessor} will not be paid. The message: {message}")
        if confirmed("Reject? This can't be undone.", yes):
            with recorded(campaign, "panel reject", assessor=assessor, category=category):
                chosen.reject(waiting[-1].external, category, message)
            take_over(campaign, chosen, carry_out=True)
            typer.echo(f"Rejected the submission of {assessor}.")


@panel.command()
def forget(
    store: StoreArgument,
    assessor: Annotated[
        list[str] | None,
        typer.Option(help="An assessor to forget, by pseudonym; may be repeated. Default: all."),
    ] = None,
    yes: YesOption = False,
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Erase the panel's ids of people and submissions. Judgments, pay and pseudonyms submission.

    Examples:

      duelpool panel forget campaign.db

      duelpool panel forget campaign.db --assessor v-0a1b2c --yes
    """
    with opened(store, campaign_name, writable=True) as campaign:
        people = None if not assessor else set(assessor)
        would = erase(campaign, people, carry_out=False)
        if not as_json:
            typer.echo(f"To forget: {len(would.erased)} people.")
            if would.unsettled:
                typer.echo(f"Kept until they are paid: {', '.join(would.unsettled)}.")
        done = bool(would.erased) and confirmed("Erase their ids?", yes)
        if done:
            would = erase(campaign, people, carry_out=True)
            campaign.write(audit_entry(campaign, "panel forget", people=len(would.erased)))
    if as_json:
        print_json({"done": done, "erased": list(would.erased), "unsettled": list(would.unsettled)})
    elif done:
        typer.echo(f"Forgot {len(would.erased)} people.")
