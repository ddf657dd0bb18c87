"""`dp.open`: the campaigns of a store, to create, ask, answer, score, export and serve."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from duelpool.access import audit_log
from duelpool.agreements import Votes
from duelpool.agreements.campaigns import votes_of
from duelpool.api.asking import checked_outcome
from duelpool.api.pools import as_pools
from duelpool.campaign import Campaign, Settings
from duelpool.campaign.settings.settings import check_names
from duelpool.campaign.views.status import CampaignStatus
from duelpool.campaign.views.status import status as read_status
from duelpool.campaign.views.summaries import work_out
from duelpool.comparison import AGAIN, AnytimeMethod, anytime_method
from duelpool.deciders import read_goal
from duelpool.errors import BadParameter, UnknownName
from duelpool.evaluation import Evaluation
from duelpool.evaluation.any_time import at_any_time
from duelpool.evaluation.sources import evaluation_inputs, run_of
from duelpool.evaluation.systems import SystemBoard
from duelpool.files import Preferences, Qrels, Run
from duelpool.frames import counted
from duelpool.leaderboard import USUAL_MEASURE, scoring, systems
from duelpool.records import Answer, Judgment, Levels, Outcome, Question
from duelpool.setup import Draft, Files, Inputs
from duelpool.setup.planned import plan_judgments
from duelpool.store import Store, holdings, open_store
from duelpool.store.leases import Receipt


class OpenCampaign:
    """A campaign of an open store; `campaign` has all its operations."""

    def __init__(self, campaign: Campaign, place: str) -> None:
        self.campaign = campaign
        self.place = place
        campaign.judge_by_ids()

    def __repr__(self) -> str:
        settings = self.campaign.settings
        how = settings.goal if read_goal(settings.goal).of_systems else settings.strategy
        return f"OpenCampaign({self.name!r}, {how}, {counted(len(self.campaign.live.heads()), 'topic')})"

    @property
    def name(self) -> str:
        """The campaign's name."""
        return self.campaign.name

    @property
    def done(self) -> bool:
        """Whether every topic has all the judgments that it needs."""
        return self.campaign.done

    def status(self) -> CampaignStatus:
        """Return what is judged, leased and left, who judged, and what it cost."""
        return read_status(self.campaign)

    def ask(self, n: int = 1, *, assessor: str = "python", topics: Any = None) -> list[Question]:
        """Return up to n questions for an assessor, who is enrolled where they are new; empty: none now.

        The questions are leased: until they are answered, or their lease ends, no other assessor gets them.
        """
        known = self.campaign.read(holdings.assessors)
        if assessor not in known:
            self.campaign.enrol(assessor, "program")
        elif known[assessor].kind == "crowd":
            raise BadParameter(
                f"'{assessor}' works in assignments, on the page.", remedy="Ask as another assessor."
            )
        return list(self.campaign.next_questions(assessor, n, topics))

    def answer(
        self,
        question: Question,
        winner: str | None = None,
        *,
        outcome: Outcome | str | None = None,
        grade: float | None = None,
        note: str = "",
        seconds: float | None = None,
    ) -> Receipt:
        """Store the answer to a question: the better item, an outcome by name, or a grade; without them it is a tie."""
        given = [each for each in (winner, outcome, grade) if each is not None]
        if len(given) > 1:
            raise BadParameter("An answer is a winner, an outcome or a grade.", remedy="Give one of them.")
        if grade is not None:
            said = Outcome.GRADE
        elif outcome is not None:
            said = checked_outcome(outcome)
        elif winner is None:
            said = Outcome.TIE
        elif winner in (question.left, question.right):
            said = Outcome.LEFT if winner == question.left else Outcome.RIGHT
        else:
            raise UnknownName("item in this question", winner, (question.left, question.right or ""))
        answer = Answer(said, grade=grade, note=note, seconds=seconds, attempt=question.attempt)
        return self.campaign.answer(question.id, question.assessor, answer)

    def leaderboard(
        self,
        measures: Any = USUAL_MEASURE,
        *,
        expected: bool = False,
        any_time: bool = False,
        bets: AnytimeMethod = "symmetric",
        **options: Any,
    ) -> Evaluation:
        """Return the runs by a measure, with intervals; options are those of `dp.evaluate`.

        With `expected`, rows also have the score that is expected by the truth behind noisy labels, its interval on new
        topics, and the interval of the mean if the same topics are judged again. `interval="again"` is the latter
        alone, and `test="again"` tests against the `baseline` on these topics, with labels judged again. With
        `any_time`, intervals, tests and who could be first hold at every look, over topics that are done, by `bets`
        that differences are "symmetric" or "bounded".
        """
        if self.campaign.live.goal.of_systems:
            raise BadParameter(
                f"In the campaign '{self.name}' systems compete.",
                remedy="Use systems(): they are ranked by votes.",
            )
        options.setdefault("interval", "t")
        if any_time:
            return self._at_any_time(measures, expected, bets, options)
        asked = (("test", options.get("test")), ("interval", options["interval"]))
        parts: list[Any] = [part for part, how in asked if how == AGAIN] + ["expected"] * expected
        if not parts:
            return scoring.leaderboard(self.campaign, measures, **options)
        if options.get("until") is not None:
            raise BadParameter(
                "The noise of labels is known of all judgments so far.",
                remedy='Leave out `until`; or leave out `expected` and "again".',
            )
        plain = {
            **options,
            **({"test": "t", "baseline": None} if "test" in parts else {}),
            **({"interval": None} if "interval" in parts else {}),
        }
        evaluation = scoring.leaderboard(self.campaign, measures, **plain)
        from duelpool.leaderboard.noise import with_label_noise  # here, for it loads much of scipy

        runs = options.get("runs")
        return with_label_noise(
            evaluation,
            self.campaign,
            scoring.runs_of(self.campaign)
            if runs is None
            else [run_of(each) for each in evaluation_inputs([], runs).runs],
            parts,
            baseline=options.get("baseline"),
            correction=options.get("correction", "none"),
            level=options.get("level", 0.95),
            weights=options.get("weights") or scoring.topic_weights(self.campaign),
            seed=options.get("seed", 0),
        )

    def _at_any_time(
        self, measures: Any, expected: bool, bets: AnytimeMethod, options: dict[str, Any]
    ) -> Evaluation:
        own = {name: options.pop(name) for name in ("baseline", "correction", "level") if name in options}
        interval = options.pop("interval")
        if expected or interval != "t" or options.get("test") or options.get("until") is not None:
            raise BadParameter(
                "`any_time` makes intervals and tests of its own.",
                remedy="Leave out `expected`, `interval`, `test` and `until`; or leave out `any_time`.",
            )
        known = self.gate_topics()
        judged = {topic for truth in self.truths() for topic in truth.frame["topic"].unique()}
        done = judged - set(known["open_topics"])
        topics = [topic for topic in options.pop("topics", None) or sorted(done) if topic in done]
        evaluation = scoring.leaderboard(self.campaign, measures, topics=topics, **options)
        return at_any_time(evaluation, known["order"], bets=anytime_method(bets), **own)

    def systems(self, criterion: str | None = None) -> SystemBoard:
        """Return the systems ranked by the votes between their answers, where systems compete."""
        boards = systems.boards(self.campaign)
        own = [each for each in boards if criterion in (None, each.criterion)]
        if not own:
            raise BadParameter("There is no vote yet.", remedy="Judge first, or name another criterion.")
        return own[0]

    def results(self) -> dict[str, Levels]:
        """Return the levels of every topic, as the judgments so far give them."""
        return self.campaign.results()

    def votes(self) -> Votes:
        """Return the judgments that count as votes, for `dp.agreement`."""
        return votes_of(self.campaign)

    def truths(self) -> list[Qrels | Preferences]:
        """Return the labels so far, grades by level and preferences, for `dp.evaluate`."""
        return scoring.labels_of(self.campaign).truths()

    def runs(self) -> list[Run]:
        """Return the runs that the campaign keeps, for `dp.evaluate`."""
        return scoring.runs_of(self.campaign)

    def gate_topics(self) -> dict[str, Any]:
        """Return what `dp.gate` needs to know of the topics beside their labels."""
        return scoring.gate_topics(self.campaign, scoring.labels_of(self.campaign))

    def plan_judgments(self) -> list[Judgment]:
        """Return the judgments of a budget plan, for `dp.estimate`."""
        return plan_judgments(self.campaign)

    def export(self, form: str, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the campaign as prefs, qrels, levels, jsonl, csv, votes, pairs or a bundle; return the path."""
        from duelpool.cli.campaign.export import FORMS, write

        if form not in FORMS:
            raise UnknownName("form of export", form, FORMS)
        work_out(self.campaign)
        write(self.campaign, form, os.fspath(path), lambda _: None, options)
        return Path(path)

    def set_state(self, state: str) -> None:
        """Open, pause or close the campaign."""
        if state not in ("open", "paused", "closed"):
            raise UnknownName("state", state, ("open", "paused", "closed"))
        entry = audit_log.entry(audit_log.shell_user(), "state", state, campaign=self.campaign.id)
        self.campaign.set_state(cast("Any", state), also=entry)

    def serve(self, *, host: str = "127.0.0.1", port: int = 8000, **options: Any) -> None:
        """Serve the judging page and the dashboard until it is interrupted; the links are printed."""
        from duelpool.cli.server.serve import serve

        serve(self.place, self.name, host, port, **options)


class Campaigns(Mapping[str, OpenCampaign]):
    """An open store: its campaigns by name. Use it as a context (`with dp.open(...) as store`), or `close` it."""

    def __init__(self, store: Store, place: str) -> None:
        self.store = store
        self.place = place

    def __repr__(self) -> str:
        return f"Campaigns({self.place!r}: {', '.join(self) or 'none yet'})"

    def __getitem__(self, name: str) -> OpenCampaign:
        if name not in set(self):
            raise UnknownName("campaign here", name, self)
        return OpenCampaign(Campaign.open(self.store, name), self.place)

    def __contains__(self, name: object) -> bool:
        return name in list(self)

    def __iter__(self) -> Iterator[str]:
        return iter([row.name for row in self.store.read(holdings.campaigns)])

    def __len__(self) -> int:
        return len(self.store.read(holdings.campaigns))

    def campaign(self, name: str | None = None) -> OpenCampaign:
        """Return the campaign of this name; without one, the only campaign of the store."""
        return OpenCampaign(Campaign.open(self.store, name), self.place)

    def create(self, pool: Any, name: str = "", **settings: Any) -> OpenCampaign:
        """Create a campaign from pools; `settings` are those of a settings file, such as strategy, judges and cap.

        Pools of answers make a campaign that ranks the systems. Judges are "dedicated" unless they are named. On pages,
        topics without texts or a question are held back, unless `required` is empty; `ask` asks about all.
        """
        pools = as_pools(pool)
        check_names(settings)
        values = {"judges": "dedicated", "required": ("texts", "questions")} | settings
        if pools.answers is not None:
            values = {"goal": "systems", "ties": True} | values
        made = Settings.from_json(values)
        files = Files(answers=("answers",) if pools.answers is not None else ())
        inputs = Inputs(
            files,
            runs=pools.runs,
            qrels=pools.qrels,
            preferences=pools.preferences,
            topics=pools.topics,
            texts=pools.texts,
            answers=pools.answers,
        )
        ready = Draft(inputs, made, pools.made, pools.made.sizes).ready()
        campaign, _ = ready.create(self.store, name or Path(self.place.split("?", 1)[0]).stem or "campaign")
        return OpenCampaign(campaign, self.place)

    def close(self) -> None:
        """Finish pending writes, and close the store."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.store.__exit__(kind, error, trace)


def open(store: str | os.PathLike[str], *, create: bool = True) -> Campaigns:  # noqa: A001 - it is dp.open
    """Open a store: a file such as "mine.db", or a PostgreSQL URL. A new file is created unless `create` is False.

    >>> import duelpool as dp
    >>> with dp.open("rivers.db") as store:
    ...     campaign = store.create({"q1": ["nile", "amazon"]}, "rivers", strategy="knockout")
    ...     question = campaign.ask(assessor="ann")[0]
    ...     receipt = campaign.answer(question, winner="nile")
    ...     campaign.results()["q1"].best
    ('nile',)
    """
    place = os.fspath(store)
    return Campaigns(open_store(place, create=create), place)
