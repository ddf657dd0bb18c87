"""`duelpool judge`: anyone, or anything, judges."""

import getpass
import shlex
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from itertools import count
from typing import Annotated

import typer

from duelpool.campaign import Campaign
from duelpool.campaign.runners.judging_session import Sat, Sitting, Worked, in_turns, work_assignments
from duelpool.campaign.views.status import status
from duelpool.cli.frame import print_json
from duelpool.cli.model import KEY_VARIABLE, ModelOptions, sit
from duelpool.cli.opening import CampaignOption, JsonOption, StoreArgument, opened
from duelpool.cli.workers import progress_bar
from duelpool.demo import load_collection
from duelpool.errors import BadParameter, UnknownName
from duelpool.judges import JUDGES, make_judges
from duelpool.judges.base import JudgeModel
from duelpool.judges.command import CommandJudge
from duelpool.judges.live import LiveJudge, SimulatedPerson, TopicJudges, Utilities
from duelpool.judges.terminal import TerminalJudge
from duelpool.store import holdings
from duelpool.strategies.parameters import split_spec

KINDS = ("terminal", "simulated", "replay", "command", "llm")
DEMO = "demo"  # people who know our own collection
LLM = "A language model (--judge llm)"
ENDINGS = {
    "done": "Every topic has all that it needs.",
    "nothing": "There is nothing more for this judge now.",
    "skipped": "Only skipped questions are left for this judge.",
    "stopped": "Stopped.",
    "limit": "The limit is reached.",
    "budget": "The budget can't bear another request.",
    "trouble": "Some questions got no answer; start again to ask them once more.",
}


def judge(
    store: StoreArgument,
    kind: Annotated[str, typer.Option("--judge", help=f"Who judges: {', '.join(KINDS)}.")] = "terminal",
    assessor: Annotated[
        str | None,
        typer.Option(help="The pseudonym to judge under. Default: your login, or the judge's kind."),
    ] = None,
    topic: Annotated[list[str] | None, typer.Option(help="Judge only this topic; may be repeated.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many judgments.")] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="simulated: how people see the items: bt:sd=1 (default), case-a:q=.8, demo. llm: its name."
        ),
    ] = None,
    file: Annotated[
        str | None, typer.Option(help="replay: the file of real preferences to draw answers from.")
    ] = None,
    assessors: Annotated[
        int | None, typer.Option(min=1, help="simulated, replay: how many people. Default: 8; a crowd: any.")
    ] = None,
    careless: Annotated[
        float, typer.Option(min=0, max=1, help="simulated, replay: the share who flip a coin.")
    ] = 0.0,
    each: Annotated[int, typer.Option(min=1, help="In a crowd: the most assignments of one person.")] = 3,
    pace: Annotated[
        float, typer.Option(min=0, help="simulated, replay: seconds to wait after each answer.")
    ] = 0.0,
    command: Annotated[
        str | None, typer.Option(help="command: the program, which reads questions and writes outcomes.")
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.01, help="command, llm: seconds for one answer.")] = 120.0,
    patience: Annotated[int, typer.Option(min=1, help="command, llm: failures in a row before it ends.")] = 3,
    url: Annotated[
        str | None, typer.Option(help="Its API, such as https://api.example.org/v1.", rich_help_panel=LLM)
    ] = None,
    key_from: Annotated[
        str,
        typer.Option(help="The environment variable that holds the API key.", rich_help_panel=LLM),
    ] = KEY_VARIABLE,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A host that may be in a private network, or http.", rich_help_panel=LLM),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option(help="A template of your own; see `duelpool prompt`.", rich_help_panel=LLM)
    ] = None,
    price_in: Annotated[
        str | None, typer.Option(help="Price of a million tokens sent.", rich_help_panel=LLM)
    ] = None,
    price_out: Annotated[
        str | None, typer.Option(help="Price of a million tokens received.", rich_help_panel=LLM)
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="The most that this judge may cost in all.", rich_help_panel=LLM)
    ] = None,
    at_once: Annotated[int, typer.Option(min=1, max=64, help="Questions at once.", rich_help_panel=LLM)] = 4,
    tries: Annotated[int, typer.Option(min=1, help="Requests before it gives up.", rich_help_panel=LLM)] = 6,
    first_wait: Annotated[
        float,
        typer.Option(min=0, help="Seconds before a second try, doubled each time.", rich_help_panel=LLM),
    ] = 1.0,
    reply_format: Annotated[
        str, typer.Option(help="What holds it to the form: schema, json or none.", rich_help_panel=LLM)
    ] = "schema",
    max_tokens: Annotated[int, typer.Option(min=1, help="The longest reply.", rich_help_panel=LLM)] = 64,
    token_field: Annotated[
        str, typer.Option(help="max_tokens, or max_completion_tokens.", rich_help_panel=LLM)
    ] = "max_tokens",
    temperature: Annotated[float, typer.Option(help="Below 0: not sent.", rich_help_panel=LLM)] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Fixes what simulated people answer.")] = 1,
    campaign: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge a campaign's questions: by hand in the terminal, by simulated people, a program or a language model.

    Examples:

      duelpool judge campaign.db --assessor anna

      duelpool judge campaign.db --judge simulated --model bt:sd=1 --careless .2

      duelpool judge campaign.db --judge replay --file judgments.txt

      duelpool judge campaign.db --judge command --command "python my_judge.py" --timeout 60

      duelpool judge campaign.db --judge llm --url https://api.example.org/v1 --model NAME \\
        --price-in 2.50 --price-out 10 --budget 5
    """
    if kind not in KINDS:
        raise UnknownName("judge", kind, KINDS)
    with opened(store, campaign, writable=True) as found:
        if kind in ("simulated", "replay"):
            people = _people(found, _model(kind, model or "bt:sd=1", file), seed, careless)
            _simulate(
                found,
                people,
                number=assessors,
                each=each,
                limit=limit,
                topics=topic,
                pace=pace,
                as_json=as_json,
            )
            return
        if kind == "llm":
            asked = ModelOptions(
                url=url,
                model=model,
                assessor=assessor,
                key_from=key_from,
                allow_hosts=tuple(allow_host or ()),
                prompt=prompt,
                price_in=price_in,
                price_out=price_out,
                budget=budget,
                at_once=at_once,
                tries=tries,
                first_wait=first_wait,
                reply_format=reply_format,
                max_tokens=max_tokens,
                token_field=token_field,
                temperature=temperature,
                timeout=timeout,
            )
            sat = sit(found, asked, topics=topic, patience=patience, limit=limit)
            _report(sat, as_json)
            return
        with ExitStack() as stack:
            judge_: LiveJudge
            if kind == "command":
                if not command:
                    raise BadParameter(
                        "No program is named.", remedy='Give one: --command "python judge.py".'
                    )
                judge_ = stack.enter_context(CommandJudge(shlex.split(command), timeout=timeout))
                name = assessor or "command"
                found.enrol(name, "program")
            else:
                judge_ = TerminalJudge()
                name = assessor or getpass.getuser()
                found.enrol(name, "dedicated")
            sat = Sitting(found, name, judge_, topics=topic, patience=patience).run(limit)
        _report(sat, as_json)


def _model(kind: str, model: str, file: str | None) -> JudgeModel:
    if kind == "replay":
        if not file:
            raise BadParameter("No file to replay is named.", remedy="Give one: --file judgments.txt.")
        return make_judges(f"replay:file={file}")
    if model == DEMO:
        return Utilities(load_collection().utilities)
    if split_spec(model)[0] not in JUDGES:
        raise UnknownName("judge", split_spec(model)[0], (*JUDGES, DEMO))
    return make_judges(model)


def _people(
    campaign: Campaign, model: JudgeModel, seed: int, careless: float
) -> Iterator[tuple[str, SimulatedPerson]]:
    """Yield simulated people without end, those of a crowd with new names, and nobody who was excluded."""
    judges = TopicJudges(model, campaign.live.items, seed)
    crowd = campaign.settings.judges == "crowd"
    known = campaign.store.read(lambda connection: holdings.assessors(connection, campaign.id))
    word = "worker" if crowd else "person"
    for number in count(1):
        name = f"{word}-{number}"
        if name not in known or (not crowd and known[name].state == "in"):
            yield name, SimulatedPerson(number, judges, seed, careless=careless)


def _simulate(
    campaign: Campaign,
    people: Iterator[tuple[str, SimulatedPerson]],
    *,
    number: int | None,
    each: int,
    limit: int | None,
    topics: list[str] | None,
    pace: float,
    as_json: bool,
) -> None:
    crowd = campaign.settings.judges == "crowd"
    before = status(campaign)
    left = max(0, before.total("expected") - before.total("judgments"))
    with progress_bar("Judging", min(left, limit) if limit is not None else left) as ended:

        def heard(*_: object) -> None:
            ended(1)
            if pace:
                time.sleep(pace)

        if crowd:
            workers = people if number is None else (next(people) for _ in range(number))
            _report(
                work_assignments(campaign, workers, each=each, limit=limit, heard=heard),
                as_json,
            )
            return
        sittings: list[Sitting] = []
        for _ in range(number or 8):
            name, person = next(people)
            campaign.enrol(name)
            sittings.append(Sitting(campaign, name, person, topics=topics, heard=heard))
        _report(in_turns(sittings, limit), as_json)


def _report(found: Sat | Worked, as_json: bool) -> None:
    if as_json:
        print_json(asdict(found))
        return
    if isinstance(found, Worked):
        typer.echo(
            f"{found.judged} answers in {found.assignments} assignments by {found.workers} workers; "
            f"{len(found.excluded)} of them excluded; rewards {found.reward / 100:,.2f}."
        )
        return
    others = (f"{getattr(found, name)} {name}" for name in ("skipped", "undone", "failed", "late"))
    told = [f"{found.judged} judged", *(text for text in others if text[0] != "0")]
    typer.echo(f"{', '.join(told)}. {ENDINGS.get(found.ended, '')}".strip())
