"""`duelpool llm` and `duelpool prompt`: language models as judges; the options of `duelpool judge llm`."""

import os
from dataclasses import asdict, dataclass
from typing import Annotated, cast, get_args

import typer
from rich.table import Table

from duelpool.campaign import Campaign
from duelpool.campaign.runners.llm_figures import INTERVALS, CountedShare, ModelFigures, model_figures
from duelpool.campaign.runners.llm_judge import MOST_ITEMS, LlmJudge, Terms
from duelpool.campaign.runners.llm_replies import model_grades, model_preferences
from duelpool.cli.opening import opened
from duelpool.cli.options import CampaignOption, JsonOption, StoreArgument
from duelpool.cli.output import print_json, print_table, quiet_broken_pipe, tell
from duelpool.errors import BadParameter, UnknownName
from duelpool.files import Preferences, Qrels, write_preferences, write_qrels
from duelpool.judges.llm import PROMPTS, Endpoint, Prices, Prompt, parse_address, read_money, read_prompt
from duelpool.judges.llm.prompts import PromptKind
from duelpool.judges.llm.replies import ReplyFormat

KEY_VARIABLE = "DUELPOOL_LLM_KEY"
FORMS = ("prior", "predictor")


_COST, _REQUESTS = "Cost", "Requests"


@dataclass(frozen=True, slots=True)
class LLMOptions:
    """Options of a language model that judges."""

    url: Annotated[str | None, typer.Option(help="Its API, such as https://api.example.org/v1.")] = None
    model: Annotated[str | None, typer.Option(help="The model's name.")] = None
    assessor: Annotated[
        str | None, typer.Option(help="The pseudonym that it judges under. Default: llm-NAME.")
    ] = None
    key_from: Annotated[str, typer.Option(help="The environment variable that holds the API key.")] = (
        KEY_VARIABLE
    )
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A host that may be in a private network, or use plain http; may be repeated."),
    ] = None
    prompt: Annotated[
        str | None, typer.Option(help="A prompt template of your own; see `duelpool prompt`.")
    ] = None
    items_per_request: Annotated[
        int,
        typer.Option(
            min=2,
            max=MOST_ITEMS,
            help="More than 2: ask for the order of this many items, unfolded into pairs.",
        ),
    ] = 2
    list_prompt: Annotated[
        str | None, typer.Option(help="A template of your own for these; see `duelpool prompt list`.")
    ] = None
    price_in: Annotated[
        str | None, typer.Option(help="Price of a million tokens sent.", rich_help_panel=_COST)
    ] = None
    price_out: Annotated[
        str | None, typer.Option(help="Price of a million tokens received.", rich_help_panel=_COST)
    ] = None
    budget: Annotated[
        str | None, typer.Option(help="The most that this judge may cost in all.", rich_help_panel=_COST)
    ] = None
    at_once: Annotated[
        int, typer.Option(min=1, max=64, help="Questions in progress at once.", rich_help_panel=_REQUESTS)
    ] = 4
    tries: Annotated[
        int, typer.Option(min=1, help="Requests per question before it gives up.", rich_help_panel=_REQUESTS)
    ] = 6
    first_wait: Annotated[
        float,
        typer.Option(
            min=0, help="Seconds before the second request, doubled each time.", rich_help_panel=_REQUESTS
        ),
    ] = 1.0
    timeout: Annotated[
        float, typer.Option(min=0.01, help="Seconds to wait for a reply.", rich_help_panel=_REQUESTS)
    ] = 120.0
    reply_format: Annotated[
        str,
        typer.Option(
            help="How replies are held to their form: schema, json or none.", rich_help_panel=_REQUESTS
        ),
    ] = "schema"
    max_tokens: Annotated[
        int, typer.Option(min=1, help="The longest reply, in tokens.", rich_help_panel=_REQUESTS)
    ] = 64
    token_field: Annotated[
        str,
        typer.Option(
            help="The server's name for that: max_tokens or max_completion_tokens.", rich_help_panel=_REQUESTS
        ),
    ] = "max_tokens"
    temperature: Annotated[float, typer.Option(help="Below 0: not sent.", rich_help_panel=_REQUESTS)] = 0.0

    def enrol(self, campaign: Campaign) -> LlmJudge:
        """Enrol the model as an assessor of a campaign."""
        if not self.url:
            raise BadParameter("No API is named.", remedy="Give its URL: --url https://host/v1.")
        terms = self.terms(campaign)
        address = parse_address(self.url, tuple(self.allow_host or ()))
        endpoint = Endpoint(address, os.environ.get(self.key_from, ""), self.timeout)
        return LlmJudge.enrol(campaign, self.assessor or f"llm-{terms.model}", endpoint, terms)

    def terms(self, campaign: Campaign) -> Terms:
        """Return how the model is asked."""
        kind: PromptKind = "grade" if campaign.settings.stage == "grading" else "preference"
        usual = "answers" if kind == "preference" and campaign.live.goal.of_systems else kind
        for name, value, known in (
            ("form of reply", self.reply_format, get_args(ReplyFormat)),
            ("field", self.token_field, ("max_tokens", "max_completion_tokens")),
        ):
            if value not in known:
                raise UnknownName(name, value, known)
        return Terms(
            model=self.model or "",
            prompt=read_prompt(self.prompt, kind) if self.prompt else PROMPTS[usual],
            reply_format=cast("ReplyFormat", self.reply_format),
            max_tokens=self.max_tokens,
            token_field=self.token_field,
            temperature=None if self.temperature < 0 else self.temperature,
            prices=self._prices(),
            budget=None if self.budget is None else read_money(self.budget, "budget"),
            tries=self.tries,
            first_wait=self.first_wait,
            concurrency=self.at_once,
            items_per_request=self.items_per_request,
            list_prompt=read_prompt(self.list_prompt, "list") if self.list_prompt else PROMPTS["list"],
        )

    def _prices(self) -> Prices | None:
        if self.price_in is None and self.price_out is None:
            return None
        if self.price_in is None or self.price_out is None:
            raise BadParameter(
                "Only one of the two prices is given.", remedy="Give --price-in and --price-out."
            )
        return Prices.per_million(self.price_in, self.price_out)


# ---- figures


def llm(
    store: StoreArgument,
    form: Annotated[
        str | None,
        typer.Option("--as", help="Write the model's answers: prior (preferences) or predictor (qrels)."),
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="The file; .gz packs it.")] = "-",
    assessor: Annotated[str | None, typer.Option(help="Which model, where several judge.")] = None,
    campaign_name: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how a campaign's language models judge and what they cost, or write their answers as a prior.

    Examples:

      duelpool llm campaign.db

      duelpool llm campaign.db --as prior -o llm.prefs

      duelpool llm campaign.db --as predictor -o llm.qrels
    """
    if form is not None and form not in FORMS:
        raise UnknownName("form", form, FORMS)
    with quiet_broken_pipe(), opened(store, campaign_name) as campaign:
        if form is not None:
            rows = _write(campaign, form, output, assessor)
            if output != "-":
                tell(f"Wrote {rows:,} rows to {output}.")
            return
        figures = [each for each in model_figures(campaign) if assessor in {None, each.assessor}]
    if as_json:
        print_json([asdict(each) for each in figures])
    elif not figures:
        typer.echo("No language model has judged in this campaign.")
    else:
        for each in figures:
            _show(each, campaign.settings.currency)


def _write(campaign: Campaign, form: str, output: str, assessor: str | None) -> int:
    from duelpool.preferences.prior import prior_from_preferences

    judgments = model_preferences(campaign, assessor)
    if form == "prior":
        if not judgments:
            raise BadParameter("No model has compared a pair here.", remedy="Let one judge first.")
        write_preferences(output, Preferences.from_judgments(judgments))
        return len(judgments)
    grades = model_grades(campaign, assessor)
    if not grades:
        strengths = prior_from_preferences(Preferences.from_judgments(judgments)) if judgments else {}
        grades = {topic: shares_of_wins(scores) for topic, scores in strengths.items()}
    if not grades:
        raise BadParameter("No model has judged here.", remedy="Let one judge first.")
    write_qrels(output, Qrels.from_grades(grades))
    return sum(map(len, grades.values()))


def shares_of_wins(strengths: dict[str, float]) -> dict[str, float]:
    """Return each item's chance to win against an average one, in percent, as its predicted grade."""
    from scipy.special import expit

    return {item: round(100 * float(expit(strength))) for item, strength in strengths.items()}


def _show(figures: ModelFigures, currency: str) -> None:
    table = Table(
        title=f"{figures.assessor}: {figures.model}",
        title_justify="left",
        show_header=False,
        caption=INTERVALS,
        caption_justify="left",
    )
    table.add_column("what")
    table.add_column("figure", overflow="fold")
    money = f"{figures.spent:,.6f} {currency}"
    if figures.unknown:
        money += f" (of which {figures.unknown:,.6f} may not have been billed)"
    rows = [
        ("prompt", f"{figures.prompt} {figures.prompt_hash}"),
        (
            "pairs in both orders",
            f"{figures.pairs:,}{f' ({figures.listed:,} from lists)' if figures.listed else ''}",
        ),
        ("chooses another when the sides change", percent(figures.flips)),
        *(
            (
                ("... asked in pairs", percent(figures.flips_alone)),
                ("... asked in lists", percent(figures.flips_listed)),
            )
            if figures.listed
            else ()
        ),
        ("chooses the left side", percent(figures.left)),
        ("chooses the longer text", percent(figures.longer)),
        ("people choose the longer text", percent(figures.people_longer)),
        ("people agree", percent(figures.agreement)),
        *(
            (f"... when it is {each.confidence:.0%} sure", percent(each.agreement))
            for each in figures.by_confidence
        ),
        ("refused", percent(figures.refusals)),
        ("malformed after all tries", percent(figures.malformed)),
        ("items graded", f"{figures.graded:,}"),
        ("requests", f"{figures.requests:,}{f' ({figures.lists:,} for lists)' if figures.lists else ''}"),
        *((f"... {each.state}: {each.result}", f"{each.calls:,}") for each in figures.calls),
        ("tokens sent, received", f"{figures.tokens_in:,}, {figures.tokens_out:,}"),
        ("cost", money if figures.priced else "no prices are given"),
        (
            "left of the budget",
            "–" if figures.budget_left is None else f"{figures.budget_left:,.6f} {currency}",
        ),
    ]
    for what, figure in rows:
        table.add_row(what, figure)
    print_table(table)
    if figures.beside_people is not None:
        typer.echo(figures.beside_people.said)


def percent(share: CountedShare) -> str:
    """Return a share with its interval as text."""
    if share.share is None or share.low is None or share.high is None:
        return "–"
    return f"{share.share:.1%} ({share.low:.1%} to {share.high:.1%}) of {share.whole:,}"


# ---- the prompt


def prompt(
    kind: Annotated[str, typer.Argument(help=f"Which template: {', '.join(PROMPTS)}.")] = "preference",
    file: Annotated[str | None, typer.Option(help="A template of your own, shown as it is sent.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the prompt of a language model, with the version and the hash that the log records.

    Examples:

      duelpool prompt

      duelpool prompt list

      duelpool prompt --file mine.txt
    """
    if kind not in PROMPTS:
        raise UnknownName("prompt", kind, PROMPTS)
    shown: Prompt = read_prompt(file, PROMPTS[kind].kind) if file else PROMPTS[kind]
    if as_json:
        print_json({"name": shown.name, "version": shown.version, "hash": shown.hash, "text": shown.text})
        return
    typer.echo(f"{shown.title} {shown.hash}\n")
    typer.echo(shown.text.rstrip())
