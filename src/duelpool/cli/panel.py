"""`duelpool panel`: what to paste where, and settling with the panel that people come from."""

import os
from typing import Annotated, Any

import typer
from rich.table import Table

from duelpool.campaign import Campaign
from duelpool.cli.helptext import command_group
from duelpool.cli.opening import (
    CampaignOption,
    JsonOption,
    StoreArgument,
    YesOption,
    audit_entry,
    confirmed,
    opened,
    working,
)
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
    look,
    plan,
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

UrlOption = Annotated[str, typer.Option(help="The address of the server, as people see it.")]
HERE = "http://127.0.0.1:8000"
DAYS = 60.0


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
    key = link_keys(store).key(campaign.id, "open", store.read(store.database.now), days=days)
    root = checked_root(url)
    return f"{root}/j/{campaign.id}/from/{name}?key={key}", f"{root}/hooks/{name}/{campaign.id}"


@panel.command()
def show(
    store: StoreArgument,
    url: UrlOption = HERE,
    days: Annotated[float, typer.Option(min=0.001, help="How long the link works, in days.")] = DAYS,
    campaign: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what to paste where: the study's link, its completion codes, the webhook, and who may take part.

    Examples:

      duelpool panel show campaign.db --url https://judge.example.org
    """
    with opened(store, campaign, writable=True) as found:
        pastes = _panel_of(found).guide(*_addresses(found, url, days))
        name = found.settings.panel
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
    campaign: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that the campaign and the panel fit together; nothing is changed.

    Examples:

      duelpool panel check campaign.db --url https://judge.example.org
    """
    with opened(store, campaign, writable=True) as found:
        chosen = _panel_of(found)
        findings = _findings(found, chosen, url)
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
            f"{len(wrong)} of {len(findings)} things are wrong.", remedy="Mend them, and check again."
        )


def _findings(campaign: Campaign, chosen: Panel, url: str) -> list[StudyCheck]:
    settings = campaign.settings
    found = [
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
        found.append(StudyCheck("the address", "" if url.startswith("https://") else "it is not https"))
    if isinstance(chosen, ApiPanel):
        variable = variable_of(settings.panel)
        secret = os.environ.get(f"{variable}_SECRET")
        found.append(StudyCheck("the webhook's secret", "" if secret else f"{variable}_SECRET is not set"))
        try:
            arrival = f"{url}/j/{campaign.id}/from/{settings.panel}" if url else ""
            with working("Asking the panel"):
                found += chosen.check(arrival)
        except DuelpoolError as error:
            found.append(StudyCheck("the panel answers", str(error)))
    return found


@panel.command()
def reconcile(
    store: StoreArgument, yes: YesOption = False, campaign: CampaignOption = None, as_json: JsonOption = False
) -> None:
    """Ask the panel for the status of every submission, and take it over; what has ended frees its pairs.

    Without --yes it only says what would change.

    Examples:

      duelpool panel reconcile campaign.db

      duelpool panel reconcile campaign.db --yes
    """
    with opened(store, campaign, writable=True) as found:
        chosen = _panel_of(found)
        with working("Asking the panel"):
            changes = take_over(found, chosen, carry_out=False)
            unknown = unknown_submissions(found, chosen)
        if as_json and not yes:
            print_json({"changes": [_as_json(each) for each in changes], "done": False})
            return
        if not as_json:
            _show_changes(changes)
            for submission in unknown:
                typer.echo(
                    f"The panel doesn't know the submission of {submission.assessor}: nobody pays for it."
                )
        if changes and confirmed(f"Take over {len(changes)} changes?", yes):
            with working("Taking it over"):
                changes = take_over(found, chosen, carry_out=True)
            found.write(audit_entry(found, "panel reconcile", changes=len(changes)))
            if as_json:
                print_json({"changes": [_as_json(each) for each in changes], "done": True})
            else:
                typer.echo(f"Took over {len(changes)} changes.")
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
    table = Table(
        "assessor", "before", "now", "what follows", title="Changed at the panel", title_justify="left"
    )
    for each in changes:
        said = each.said if each.after is SubmissionStatus.OTHER else str(each.after)
        table.add_row(each.assessor, str(each.before or "not known"), said, "; ".join(each.effects))
    print_table(table)


@panel.command()
def settle(
    store: StoreArgument,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--answer", metavar="N=paid|unpaid", help="Your word on payments of which nobody else knows."
        ),
    ] = None,
    reason: Annotated[str, typer.Option(help="How you know; it stands in the book.")] = "",
    yes: YesOption = False,
    campaign: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Pay what is due, each of it once: a plan first, and with --yes what it says.

    A payment of which nobody knows whether it was made is never made again. It is a question to you: look at the
    panel's site, and answer with --answer.

    Examples:

      duelpool panel settle campaign.db

      duelpool panel settle campaign.db --yes

      duelpool panel settle campaign.db --answer 12,13=paid --reason "seen in the billing page" --yes
    """
    answers = _answers(given or ())
    with opened(store, campaign, writable=True) as found:
        chosen = _panel_of(found)
        if answers:
            _take_answers(found, answers, reason, yes, as_json)
            return
        with working("Asking the panel"):
            changes = take_over(found, chosen, carry_out=yes)
            planned = plan(found, chosen)
        before = look(found, planned)
        if not as_json:
            if changes:
                _show_changes(changes)
            _show_plan(found, chosen, before)
        done = bool(_steps(planned)) and confirmed(f"Pay {_money(planned.due, found)}?", yes)
        after = before
        if done:
            with working("Settling"):
                if not yes:
                    take_over(found, chosen, carry_out=True)
                    if plan(found, chosen) != planned:
                        raise BadParameter(
                            "The panel tells something else than a moment ago.",
                            remedy="Look at the plan again.",
                        )
                found.write(audit_entry(found, "panel settle", due=_money(planned.due, found)))
                after = carry_out_plan(found, chosen, planned)
        _report(found, chosen, after, done=done, as_json=as_json)


def _answers(given: Any) -> dict[int, bool]:
    found: dict[int, bool] = {}
    for each in given:
        numbers, _, word = each.partition("=")
        if word not in ("paid", "unpaid") or not all(part.strip().isdigit() for part in numbers.split(",")):
            raise BadParameter(f"'{each}' is no answer.", remedy="Write 12=paid, 12=unpaid or 12,13=paid.")
        found |= {int(part): word == "paid" for part in numbers.split(",")}
    return found


def _take_answers(
    campaign: Campaign, answers: dict[int, bool], reason: str, yes: bool, as_json: bool
) -> None:
    asked = {each.id: each for each in look(campaign).questions}
    if not as_json:
        for number, was_paid in answers.items():
            if number in asked:
                word = "was paid" if was_paid else "was not paid, and may be paid again"
                typer.echo(f"Payment {number} of {_money(asked[number].amount, campaign)} {word}.")
    if unknown := sorted(set(answers) - set(asked)):
        raise BadParameter(
            f"Payment {unknown[0]} is no open question.", remedy="See `duelpool panel settle` for those."
        )
    if confirmed("Write this down?", yes):
        taken = answer(campaign.store, campaign.id, answers, reason)
        said = ", ".join(f"{number} {'paid' if paid else 'unpaid'}" for number, paid in answers.items())
        campaign.write(audit_entry(campaign, "panel answer", payments=said, reason=reason))
        if as_json:
            print_json({"answered": {each.id: each.state for each in taken}})
        else:
            typer.echo(f"Wrote down {len(taken)} answers.")


def _steps(planned: SettlementPlan) -> int:
    return len(planned.intents) + len(planned.covered) + len(planned.returns)


def _money(amount: int, campaign: Campaign) -> str:
    return f"{decimal_of(amount)} {campaign.settings.currency}"


def _show_plan(campaign: Campaign, chosen: Panel, found: Settled) -> None:
    planned = found.plan
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
        typer.echo(f"To note: the panel has approved {covered.submission.assessor}.")
    for submission in planned.returns:
        typer.echo(f"To ask: {submission.assessor} stopped early and should return the place.")
    for submission, amount in planned.waiting:
        typer.echo(
            f"Waiting: {_money(amount, campaign)} to {submission.assessor}, "
            f"who is {submission.status or 'not known'} there."
        )
    for submission, why in planned.to_review:
        typer.echo(f"Look: {submission.assessor}, the panel's {submission.external}: {why}.")
    for submission in unknown_submissions(campaign, chosen):
        typer.echo(
            f"Look: {submission.assessor} came by a link that the panel hasn't given out; nobody pays for it."
        )
    if planned.elsewhere:
        typer.echo(
            f"Not by this panel: {_money(planned.elsewhere, campaign)} to people who came another way."
        )
    if not _steps(planned):
        typer.echo("Nothing is to be paid now.")


def _names(campaign: Campaign) -> dict[str, str]:
    found = campaign.read(lambda tx: submissions(tx, campaign.settings.panel))
    return {submission.id: submission.assessor for submission in found}


def _evidence(chosen: Panel, payment: Payment) -> str:
    if not isinstance(chosen, ApiPanel) or not payment.external:
        return ""
    try:
        shown = [decimal_of(each) for each in chosen.bonuses(payment.external)]
    except PanelError as error:
        return f"the panel can't be asked: {error.problem}"
    return f"the panel shows bonuses of {', '.join(shown)}" if shown else "the panel shows no bonus"


def _report(campaign: Campaign, chosen: Panel, found: Settled, *, done: bool, as_json: bool) -> None:
    added = totals(campaign)
    if as_json:
        print_json(
            {
                "done": done,
                "currency": campaign.settings.currency,
                "due": found.plan.due,
                "planned": [
                    {"kind": each.kind, "amount": each.amount, "fee": each.fee} for each in found.plan.intents
                ],
                "questions": [
                    {"payment": each.id, "kind": each.kind, "amount": each.amount, "state": each.state}
                    for each in found.questions
                ],
                "payments": {state: list(sums) for state, sums in found.payments.items()},
                "totals": added,
            }
        )
        return
    for state, (number, amount) in sorted(found.payments.items()):
        typer.echo(f"{state}: {number} payments, {_money(amount, campaign)}")
    typer.echo(
        f"The ledger has {_money(added['ledger'], campaign)} for people and {_money(added['fees'], campaign)} of fees; "
        f"{_money(added['paid'], campaign)} is paid."
    )
    for each in found.questions:
        batch = f", the panel's batch {each.batch}" if each.batch else ""
        state = {"by-hand": "is yours to pay"}.get(each.state, "may or may not have been paid")
        typer.echo(
            f"Question {each.id}: {each.kind} of {_money(each.amount, campaign)} to {each.assessor} {state} "
            f"(the panel's {each.external}{batch}). {_evidence(chosen, each)} {each.note}".rstrip()
        )
    if found.questions:
        numbers = ",".join(str(each.id) for each in found.questions)
        typer.echo(
            f"Look at the panel's site, then: duelpool panel settle STORE --answer {numbers}=paid (or unpaid)"
        )


@panel.command()
def reject(
    store: StoreArgument,
    assessor: Annotated[str, typer.Argument(help="Whose work is not paid, by pseudonym.")],
    category: Annotated[str, typer.Option(help="The panel's category, such as FAILED_INSTRUCTIONS.")],
    message: Annotated[str, typer.Option(help="What they are told, in 100 characters or more.")],
    yes: YesOption = False,
    campaign: CampaignOption = None,
) -> None:
    """Reject somebody's work at the panel: it is not paid, and its judgments are taken out. This is for good.

    Failed test pairs alone are a reason to leave judgments out, which has happened already, not to refuse the pay.

    Examples:

      duelpool panel reject campaign.db v-0a1b2c --category NO_DATA --message "..."
    """
    with opened(store, campaign, writable=True) as found:
        chosen = _panel_of(found)
        if not isinstance(chosen, ApiPanel):
            raise BadParameter("This panel can't be asked.", remedy="Reject the work on its site.")
        own = found.read(lambda tx: submissions(tx, found.settings.panel, assessor))
        waiting = [submission for submission in own if submission.status is SubmissionStatus.SUBMITTED]
        if not waiting:
            raise BadParameter(
                f"Nothing of '{assessor}' waits for a review.", remedy="See `duelpool panel reconcile`."
            )
        typer.echo(f"{assessor} would not be paid, and is told: {message}")
        if confirmed("Reject for good?", yes):
            found.write(audit_entry(found, "panel reject", assessor=assessor, category=category))
            chosen.reject(waiting[-1].external, category, message)
            take_over(found, chosen, carry_out=True)
            typer.echo(f"Rejected the work of {assessor}.")


@panel.command()
def forget(
    store: StoreArgument,
    assessor: Annotated[
        list[str] | None,
        typer.Option(help="Whom to forget, by pseudonym; may be repeated. Default: everybody."),
    ] = None,
    yes: YesOption = False,
    campaign: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Erase who people are: the panel's ids of them and of their stays. Judgments, pay and pseudonyms stay.

    Examples:

      duelpool panel forget campaign.db

      duelpool panel forget campaign.db --assessor v-0a1b2c --yes
    """
    with opened(store, campaign, writable=True) as found:
        people = None if not assessor else set(assessor)
        would = erase(found, people, carry_out=False)
        if not as_json:
            typer.echo(f"To forget: {len(would.erased)} people.")
            if would.unsettled:
                typer.echo(f"Kept until they are paid: {', '.join(would.unsettled)}.")
        done = bool(would.erased) and confirmed("Erase who they are?", yes)
        if done:
            would = erase(found, people, carry_out=True)
            found.write(audit_entry(found, "panel forget", people=len(would.erased)))
    if as_json:
        print_json({"done": done, "erased": list(would.erased), "unsettled": list(would.unsettled)})
    elif done:
        typer.echo(f"Forgot {len(would.erased)} people.")
