"""`duelpool judge`: let a person, simulated people, a program or a language model judge."""

import getpass
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count, islice
from typing import Annotated, Any

import typer

from duelpool.campaign import Campaign
from duelpool.campaign.runners.judging_session import (
    AssignmentsTally,
    JudgingSession,
    SessionTally,
    in_turns,
    work_assignments,
)
from duelpool.campaign.runners.llm_session import LlmSession
from duelpool.campaign.runners.two_sources import refit
from duelpool.campaign.views import summaries
from duelpool.campaign.views.status import status
from duelpool.cli.campaign.llm import LLMOptions
from duelpool.cli.helptext import DuelpoolGroup, command_group
from duelpool.cli.opening import opened
from duelpool.cli.option_records import takes_records
from duelpool.cli.options import CampaignOption, JsonOption, StoreArgument
from duelpool.cli.output import print_json, progress_bar, tell
from duelpool.demo import load_collection
from duelpool.errors import BadParameter, UnknownName
from duelpool.judges import JUDGES, make_judges
from duelpool.judges.base import JudgeModel
from duelpool.judges.command import CommandJudge
from duelpool.judges.live import SIMULATED, SimulatedPerson, TopicJudges, Utilities, is_simulated
from duelpool.judges.terminal import TerminalJudge
from duelpool.simulation import Progress
from duelpool.store import holdings
from duelpool.strategies.parameters import split_spec

DEDICATED = 8  # simulated people of a campaign without a crowd, unless --assessors says otherwise
DEMO = "demo"  # the model of people who know the true utilities of the demo collection
ENDINGS = {
    "done": "Every topic has all the judgments it needs.",
    "spent": "All judgments are spent, and some topics aren't settled. Allow more: the setting spend_judgments.",
    "nothing": "There are no questions for this judge now: others hold them. Start again once they have answered.",
    "held": "The other topics are held back: texts or questions are missing. Add them with `duelpool texts`.",
    "own": "What is left needs another assessor: each judges a pair once. Continue with --assessor NAME.",
    "skipped": "Only skipped questions are left for this judge.",
    "stopped": "Stopped.",
    "limit": "The limit is reached.",
    "tried": "Start it again once people have judged more.",
    "asked": "What is left is kept for people.",
    "dropped": "",
    "budget": "The budget doesn't cover another request.",
    "trouble": "Some questions got no answer. Start again to ask them again.",
}


class JudgeGroup(DuelpoolGroup):
    """The subcommands of `duelpool judge`; also takes the older spelling `duelpool judge STORE --judge llm ...`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments of either spelling."""
        return super().parse_args(ctx, self.with_subcommand(ctx, args))

    def with_subcommand(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments with the subcommand first.

        The older spelling took every judge's options and ignored those of other judges: they are left out.
        """
        older = any(word.partition("=")[0] == "--judge" for word in args)
        if not args or (args[0] in {*self.commands, *ctx.help_option_names} and not older):
            return args
        options = {name: _option_names(command) for name, command in self.commands.items()}
        kind, groups, rest = "terminal", list[list[str]](), iter(args)
        for word in rest:
            name, equals, value = word.partition("=")
            takes_value = name == "--judge" or any(each.get(name, False) for each in options.values())
            if word == "--":
                groups.append([word, *rest])
            elif name == "--judge":
                kind = value if equals else next(rest, "")
            else:
                groups.append([word, *islice(rest, 1 if takes_value and not equals else 0)])
        if kind not in options:
            raise UnknownName("judge", kind, options)
        ignored = {name for each in options.values() for name in each} - options[kind].keys()
        return [
            kind,
            *(word for words in groups if words[0].partition("=")[0] not in ignored for word in words),
        ]


def _option_names(command: Any) -> dict[str, bool]:
    """Return the names of a command's options, and whether they take a value."""
    options = (each for each in command.params if each.opts[0].startswith("-"))
    return {name: not each.is_flag for each in options for name in each.opts}


judge = command_group(
    "Judge a campaign's questions: yourself in the terminal, or by simulated people, a program or a language model.",
    "duelpool judge terminal campaign.db --assessor anna",
    "duelpool judge simulated campaign.db --model bt:sd=1 --careless .2",
    'duelpool judge command campaign.db --command "python my_judge.py" --timeout 60',
    "duelpool judge llm campaign.db --url https://api.example.org/v1 --model NAME --price-in 2.50 --price-out 10 "
    "--budget 5",
    cls=JudgeGroup,
)

PatienceOption = Annotated[int, typer.Option(min=1, help="Failures in a row before the judge gives up.")]


@dataclass(frozen=True, slots=True)
class JudgingOptions:
    """Options of every judge: what to judge, and how to report it."""

    topic: Annotated[list[str] | None, typer.Option(help="Judge only this topic; may be repeated.")] = None
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after this many judgments.")] = None
    campaign: CampaignOption = None
    as_json: JsonOption = False


@dataclass(frozen=True, slots=True)
class PeopleOptions:
    """Options of simulated people."""

    assessors: Annotated[
        int | None,
        typer.Option(
            min=1, help=f"How many people judge. Default: {DEDICATED}; of a crowd, as many as it takes."
        ),
    ] = None
    careless: Annotated[float, typer.Option(min=0, max=1, help="The share of people who guess.")] = 0.0
    each: Annotated[int, typer.Option(min=1, help="In a crowd: assignments per person at most.")] = 3
    pace: Annotated[float, typer.Option(min=0, help="Seconds to wait after each answer.")] = 0.0
    seed: Annotated[int, typer.Option(min=0, help="Fixes what the people answer.")] = 1


@judge.command()
@takes_records
def terminal(
    store: StoreArgument,
    *,
    assessor: Annotated[str | None, typer.Option(help="Your pseudonym. Default: your login.")] = None,
    judging: JudgingOptions,
) -> None:
    """Judge yourself, in the terminal.

    Examples:

      duelpool judge terminal campaign.db --assessor anna

      duelpool judge terminal campaign.db --topic bread --limit 20
    """
    name = assessor or getpass.getuser()
    with opened(store, judging.campaign, writable=True) as campaign:
        campaign.enrol(name, "dedicated")
        session = JudgingSession(campaign, name, TerminalJudge(), topics=judging.topic)
        _report(campaign, session.run(judging.limit), judging.as_json)


@judge.command()
@takes_records
def simulated(
    store: StoreArgument,
    *,
    model: Annotated[
        str, typer.Option(help="How people see the items: bt:sd=1, case-a:q=.8, demo, ...")
    ] = "bt:sd=1",
    people: PeopleOptions,
    judging: JudgingOptions,
) -> None:
    """Let simulated people judge, by a model of how they see the items.

    Examples:

      duelpool judge simulated campaign.db --model bt:sd=1 --careless .2

      duelpool judge simulated campaign.db --model order --assessors 2 --limit 50
    """
    with opened(store, judging.campaign, writable=True) as campaign:
        _simulate(campaign, _model(model), people, judging)
        _tell_simulated(campaign)


@judge.command()
@takes_records
def replay(
    store: StoreArgument,
    *,
    file: Annotated[str | None, typer.Option(help="The file of preferences to draw answers from.")] = None,
    people: PeopleOptions,
    judging: JudgingOptions,
) -> None:
    """Let simulated people answer as a file of real preferences does.

    Examples:

      duelpool judge replay campaign.db --file judgments.txt
    """
    with opened(store, judging.campaign, writable=True) as campaign:
        if not file:
            raise BadParameter("No file to replay is named.", remedy="Give one: --file judgments.txt.")
        _simulate(campaign, make_judges(f"replay:file={file}"), people, judging)


@judge.command()
@takes_records
def command(
    store: StoreArgument,
    *,
    command: Annotated[
        str | None, typer.Option(help="The program: reads questions and writes answers, as JSON lines.")
    ] = None,
    assessor: Annotated[str, typer.Option(help="The pseudonym that the program judges under.")] = "command",
    timeout: Annotated[float, typer.Option(min=0.01, help="Seconds to wait for an answer.")] = 120.0,
    patience: PatienceOption = 3,
    judging: JudgingOptions,
) -> None:
    """Let a program judge: it reads a question a line, and writes an answer a line.

    Examples:

      duelpool judge command campaign.db --command "python my_judge.py" --timeout 60
    """
    with opened(store, judging.campaign, writable=True) as campaign:
        if not command:
            raise BadParameter("No program is named.", remedy='Give one: --command "python judge.py".')
        with CommandJudge(shlex.split(command), timeout=timeout) as program:
            campaign.judge_by_ids()
            campaign.enrol(assessor or "command", "program")
            session = JudgingSession(
                campaign, assessor or "command", program, topics=judging.topic, patience=patience
            )
            result = session.run(judging.limit)
        _report(campaign, result, judging.as_json)


@judge.command()
@takes_records
def llm(
    store: StoreArgument,
    *,
    model: LLMOptions,
    patience: PatienceOption = 3,
    wait: Annotated[
        float | None,
        typer.Option(
            min=1,
            help="Stay, and look for further questions after this many seconds, until the campaign is done.",
        ),
    ] = None,
    judging: JudgingOptions,
) -> None:
    """Let a language model judge, within a budget.

    Examples:

      duelpool judge llm campaign.db --url https://api.example.org/v1 --model NAME --price-in 2.50 --price-out 10 \
--budget 5

      duelpool judge llm campaign.db --url http://localhost:8000/v1 --model NAME --allow-host localhost

      duelpool judge llm campaign.db --url https://api.example.org/v1 --model NAME --items-per-request 5

      duelpool judge llm campaign.db --url https://api.example.org/v1 --model NAME --wait 30
    """
    with opened(store, judging.campaign, writable=True) as campaign:
        enrolled = model.enrol(campaign)
        with _judging_bar(campaign, judging.limit) as advance:
            session = LlmSession(
                enrolled, topics=judging.topic, patience=patience, on_answer=lambda *_: advance(1)
            )
            result = session.run(judging.limit, wait)
        _report(campaign, result, judging.as_json)


def _model(name: str) -> JudgeModel:
    if name == DEMO:
        return Utilities(load_collection().utilities)
    if split_spec(name)[0] not in JUDGES:
        raise UnknownName("judge", split_spec(name)[0], (*JUDGES, DEMO))
    return make_judges(name)


def _people(
    campaign: Campaign, model: JudgeModel, seed: int, careless: float
) -> Iterator[tuple[str, SimulatedPerson]]:
    """Yield simulated people without end: workers of a crowd get new names, excluded assessors are left out."""
    judges = TopicJudges(model, campaign.live.items, seed)
    crowd = campaign.settings.judges == "crowd"
    known = campaign.read(holdings.assessors)
    for number in count(1):
        name = f"{SIMULATED}{number}"
        if name not in known or (not crowd and known[name].state == "in"):
            yield name, SimulatedPerson(number, judges, seed, careless=careless)


def _simulate(campaign: Campaign, model: JudgeModel, options: PeopleOptions, judging: JudgingOptions) -> None:
    campaign.judge_by_ids()
    people = _people(campaign, model, options.seed, options.careless)
    with _judging_bar(campaign, judging.limit) as advance:

        def answered(*_: object) -> None:
            advance(1)
            if options.pace:
                time.sleep(options.pace)

        result: SessionTally | AssignmentsTally
        if campaign.settings.judges == "crowd":
            workers = islice(people, options.assessors)
            result = work_assignments(
                campaign, workers, each=options.each, limit=judging.limit, on_answer=answered
            )
        else:
            sessions = []
            for name, person in islice(people, options.assessors or DEDICATED):
                campaign.enrol(name)
                sessions.append(
                    JudgingSession(campaign, name, person, topics=judging.topic, on_answer=answered)
                )
            result = in_turns(sessions, judging.limit)
    _report(campaign, result, judging.as_json)


def _tell_simulated(campaign: Campaign) -> None:
    """Say that these are no answers of people, and how to tell them apart in a campaign that has those as well."""
    judged = [each for each in status(campaign, turns=summaries.Turns(0)).assessors if each.judgments]
    people = [each.assessor for each in judged if not is_simulated(each.assessor)]
    if people:
        tell(
            f"Notice: the campaign also has judgments of {', '.join(map(repr, people[:3]))}"
            f"{' and others' if len(people) > 3 else ''}, and scores mix the two. Try simulations in a store of its "
            f"own; `duelpool exclude STORE {SIMULATED}1` takes a simulated assessor out."
        )
    else:
        tell(
            f"These assessors are simulated ({SIMULATED}1, ...): the scores say nothing about what people prefer."
        )


@contextmanager
def _judging_bar(campaign: Campaign, limit: int | None) -> Iterator[Progress]:
    """Show a progress bar over the judgments that the campaign still expects."""
    now = status(campaign, turns=summaries.Turns(0))
    left = max(0, now.total("expected") - now.total("judgments"))
    with progress_bar("Judging", left if limit is None else min(left, limit)) as advance:
        yield advance
    refit(campaign)
    summaries.keep_up(campaign)


def _report(campaign: Campaign, result: SessionTally | AssignmentsTally, as_json: bool) -> None:
    if as_json:
        print_json(asdict(result))
    elif isinstance(result, AssignmentsTally):
        typer.echo(
            f"{result.judged} answers in {result.assignments} assignments by {result.workers} workers; "
            f"{len(result.excluded)} of them excluded; rewards {result.reward / 100:,.2f}."
        )
    else:
        others = ((name, getattr(result, name)) for name in ("skipped", "undone", "failed", "late"))
        counts = [f"{result.judged} judged", *(f"{number} {name}" for name, number in others if number)]
        so_far = _topics_so_far(campaign) if result.ended == "limit" else ""
        endings = (each for each in (result.said, ENDINGS.get(result.ended, ""), so_far) if each)
        typer.echo(" ".join((f"{', '.join(counts)}.", *endings)))


def _topics_so_far(campaign: Campaign) -> str:
    """Return how many topics have judgments, and how many are done: with a limit, others have none yet."""
    topics = status(campaign, turns=summaries.Turns(0)).topic_statuses
    judged, done = sum(each.judgments > 0 for each in topics), sum(each.done for each in topics)
    return f"Topics: {judged} of {len(topics)} with judgments, {done} done."
