"""What a manager decides: every setting of a campaign, declared once.

The command line, settings files, the dashboard's form, the API and the documentation take names, types, ranges,
defaults, labels and effects from here (`SETTINGS`).
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Self

from pydantic import ConfigDict, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from duelpool.campaign.settings.declaration import SettingField, declared, refusal, setting
from duelpool.campaign.settings.values import (
    SCALES,
    Flag,
    Flips,
    FromOne,
    FromZero,
    Judges,
    Kinds,
    Languages,
    PairKind,
    PanelLabels,
    PanelName,
    Parameter,
    PlannedRow,
    Price,
    Requirements,
    Scale,
    Seconds,
    Share,
    Stage,
    Steps,
    TestRule,
    Text,
    WebAddress,
    Whole,
    check_codes,
)
from duelpool.campaign.settings.welcome import STEPS, CheckQuestion, PracticePair
from duelpool.deciders import (
    DECIDERS,
    CampaignGoal,
    make_decider,
    no_strategy,
    read_goal,
    read_spend,
    refuse_unstaged,
)
from duelpool.errors import BadParameter, DuelpoolError, UnknownName
from duelpool.panels import PanelSettings
from duelpool.records import Kind, Outcome
from duelpool.strategies import STRATEGIES, make_strategy
from duelpool.strategies.parameters import parameters_of, split_spec
from duelpool.strategies.schedule import PER_ITEM

_PLAIN = frozenset({Outcome.LEFT, Outcome.RIGHT, Outcome.LEFT_BAD, Outcome.RIGHT_BAD, Outcome.BOTH_BAD})
_ALWAYS = frozenset({Outcome.CANNOT_JUDGE, Outcome.SKIP})

_STRATEGY = "swissfinals"
_DECIDES_QUESTIONS = "It decides which pairs are asked, and the questions so far depend on it."
_IN_ASSIGNMENTS = "Open assignments depend on it."
_EXCLUDES = "Exclusions so far depend on it."
_BEFORE, _PAGE, _PAY, _PANEL = "Before judging", "Judging page", "Pay and time", "Panel and completion"
_COUNTING = "What judgments count"
_MODELS, _RECORDS = "Languages and models", "Check questions and practice pairs"


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Settings:
    """The settings of a campaign. Money is in minor units, time in seconds.

    They are checked whenever they are made, by `dataclasses.replace` as well.
    """

    # ---- what is asked: fixed once people judge
    goal: Text = setting(
        "best",
        "Goal",
        "The best items of each topic (best), an order of systems (systems), or which of two is better (compare:A,B).",
        fixed_because=_DECIDES_QUESTIONS,
    )
    strategy: Text = setting(
        _STRATEGY,
        "Strategy",
        "The strategy that chooses the pairs, with its parameters.",
        fixed_because=_DECIDES_QUESTIONS,
    )
    spend: Text = setting(
        "even",
        "Spending",
        "Where judgments go: to all topics alike (even), or where they help most to find the best items (best), the "
        "order of runs (leaderboard), or which of two runs is better (compare:A,B).",
        fixed_because=_DECIDES_QUESTIONS,
    )
    seed: FromZero = setting(
        1, "Seed", "Fixes every random choice of the campaign.", fixed_because=_DECIDES_QUESTIONS
    )
    judges: Judges = setting(
        "dedicated",
        "Assessors",
        "Who judges: dedicated assessors, or a crowd in paid assignments with test pairs.",
        fixed_because="Assignments, test pairs and pay depend on it.",
        choices={"dedicated": "dedicated assessors", "crowd": "a crowd, with test pairs"},
    )
    kind: PairKind = setting(
        Kind.PREFERENCE,
        "Kind of judgment",
        "Which of two is better (preference), or also how surely (definite).",
        fixed_because="Judgments of another kind couldn't be compared with those so far.",
    )
    crossed: Kinds = setting(
        (),
        "Crossed study",
        "The kinds of a crossed study: every topic is judged in each of them, by different assessors.",
        fixed_because="The design is fixed when the study begins.",
    )
    people_per_kind: FromOne = setting(
        2,
        "Assessors per kind",
        "Of a crossed study: assessors for each topic and kind.",
        fixed_because="The design is fixed when the study begins.",
    )
    criterion: Text = setting(
        "overall",
        "Criterion",
        "The criterion by which assessors judge.",
        fixed_because="Judgments by another criterion couldn't be compared with those so far.",
    )
    cap: FromOne = setting(
        6,
        "Cap: judgments per pair",
        "The largest number of judgments of one pair, leased questions included.",
        fixed_because="Pairs have been asked under this cap.",
    )
    stage: Stage = setting(
        "preferences",
        "Stage",
        "What is asked now: grades of single items, or preferences.",
        fixed_because="It changes automatically when grading ends.",
    )
    scale: Scale = setting(
        "binary",
        "Scale",
        "The grades of the grading stage: two (binary), three (abc) or five.",
        fixed_because="Grades of another scale couldn't be compared with those so far.",
    )
    grades_per_item: FromOne = setting(
        1,
        "Grades per item",
        "How many grades each item gets in the grading stage.",
        fixed_because="Items have been graded under it.",
    )
    thin: Whole | None = setting(
        None,
        "Items kept after grading",
        "Whole grades are kept, the highest first, until each pool has this many items. Empty: all.",
        fixed_because="It is applied once, when grading ends.",
    )
    targets: FromOne = setting(
        10,
        "Questions per assignment",
        "Questions of an assignment that count, without test pairs.",
        fixed_because="Open assignments and their pay depend on it.",
    )
    tests: FromZero = setting(
        3,
        "Test pairs per assignment",
        "Test pairs among the questions of an assignment.",
        fixed_because=_IN_ASSIGNMENTS,
    )
    per_topic: FromOne = setting(
        3,
        "Questions per topic",
        "Questions of one assignment from the same topic, where possible.",
        fixed_because=_IN_ASSIGNMENTS,
    )
    repeat_every: FromZero = setting(
        0,
        "Repeat every",
        "After this many answers an assessor is asked about one pair again. 0: never.",
        fixed_because="The repeats so far depend on it.",
    )
    test_rule: TestRule = setting(
        "share",
        "Test rule",
        "Failed test pairs exclude an assessor below a share of them (share), or only the assignment (any-failed).",
        fixed_because=_EXCLUDES,
    )
    test_share: Share = setting(
        0.75,
        "Share of test pairs to pass",
        "The share of test pairs that an assessor must pass, from 0 to 1.",
        fixed_because=_EXCLUDES,
    )
    bad_votes: FromZero = setting(
        0,
        "Votes that remove a bad item",
        "Bad votes of different assessors that remove an item. 0: one by dedicated assessors, two in a crowd.",
        fixed_because="Items have been removed by it.",
    )
    parked_after: FromOne = setting(
        3,
        "“Cannot judge” that park a pair",
        "After this many “cannot judge” a pair waits for the manager.",
        fixed_because="Pairs have been parked by it.",
    )
    plan: tuple[PlannedRow, ...] = setting(
        (),
        "Budget plan",
        "The questions of a budget plan, which take the place of the strategy.",
        fixed_because="A plan is frozen: its propensities hold only for the questions it drew.",
        takes="a list of rows: topic, item, other item, chance, judgments",
    )
    # ---- what may change while people judge
    consent: Text = setting(
        "",
        "Consent, in Markdown",
        "What assessors agree to. Empty: the default text, in their language.",
        effect="Shown to visitors who arrive from now on; earlier assessors agreed to the old text.",
        section=_BEFORE,
        lines=8,
    )
    guidelines: Text = setting(
        "",
        "Guide, in Markdown",
        "The guide of the judging page. Empty: the default text, in the assessor's language.",
        effect="Shown from now on; assessors who read the old guide are not asked to read it again.",
        section=_BEFORE,
        lines=10,
    )
    steps: Steps = setting(
        STEPS,
        "Steps before judging",
        "What a first visit goes through, in this order.",
        effect="Apply to visitors who arrive from now on; current assessors continue.",
        section=_BEFORE,
    )
    required: Requirements = setting(
        (),
        "Required before judging",
        "Topics with items without text (texts) or without a question (questions) are held back until they have them.",
        effect="Topics that lack it are held back from now on; others, and what was judged, stay as they are.",
        section=_BEFORE,
        choices={"texts": "a text for every item", "questions": "a question for every topic"},
    )
    visitors_per_address: FromZero = setting(
        100,
        "New visitors per address and hour",
        "New visitors by an open link from one network address within an hour. 0: any number.",
        effect="Applies to visitors who arrive from now on.",
        section=_BEFORE,
    )
    feedback: Flag = setting(
        True,
        "Ask for feedback afterwards",
        "A form after an assignment or a topic: confidence, understanding, comments.",
        effect="Takes effect with the next assignment or topic that ends.",
        section=_PAGE,
    )
    context: Flag = setting(
        True,
        "Show context",
        "Other items, or the topic's snippets, can be opened while judging.",
        effect="Takes effect with the next page that is opened.",
        section=_PAGE,
    )
    ties: Flag = setting(
        False,
        "Allow ties",
        "Offer the answer “equally good”.",
        effect="Offered, or no longer offered, from the next pair on; earlier answers stay.",
        section=_PAGE,
    )
    same: Flag = setting(
        False,
        "Allow “The same text”",
        "Offer the answer that both passages are the same text.",
        effect="Offered, or no longer offered, from the next pair on; earlier answers stay.",
        section=_PAGE,
    )
    weigh_assessors: Flag = setting(
        False,
        "Weigh assessors",
        "Count a judgment by the chance that its assessor reads before answering, worked out from their votes and test "
        "pairs. Otherwise each judgment counts once.",
        effect="Earlier judgments are weighed too, or count once again, from the next look at the campaign on.",
        section=_COUNTING,
    )
    person_price: Price | None = setting(
        None,
        "Price of a person's judgment",
        "What a judgment by a person costs. Together with the price of a model's judgment, it decides which questions "
        "language models are asked. Empty: they are asked like people.",
        effect="Models are asked by the new prices from the next question on.",
        section=_COUNTING,
    )
    model_price: Price | None = setting(
        None,
        "Price of a model's judgment",
        "What a judgment by a language model costs, both orders of a pair together, in the same unit.",
        effect="Models are asked by the new prices from the next question on.",
        section=_COUNTING,
    )
    reward: FromZero = setting(
        200,
        "Pay per assignment, in cents",
        "Pay for a complete assignment, in cents.",
        effect="Paid for assignments that end from now on; earlier payments stay as they are.",
        section=_PAY,
    )
    fee_percent: FromZero = setting(
        20,
        "Panel fee, in percent",
        "The panel's fee, in percent of the pay.",
        effect="Applies to assignments that end from now on.",
        section=_PAY,
    )
    spend_judgments: FromOne | None = setting(
        None,
        "Judgments in all",
        "Where judgments aren't spent evenly: how many there are in all. Empty: until every topic is settled.",
        effect="No more judgments than this are asked; settled topics stay settled.",
        section=_PAY,
    )
    budget: Whole | None = setting(
        None,
        "Budget, in cents",
        "No new assignments beyond this cost, in cents. Empty: no limit.",
        effect="No new assignments beyond it; open ones may still end.",
        section=_PAY,
    )
    currency: Text = setting(
        "USD",
        "Currency",
        "The currency of the pay.",
        effect="Only the name changes; amounts stay as they are.",
        section=_PAY,
    )
    assignments_each: FromOne = setting(
        3,
        "Assignments per person, at most",
        "The largest number of assignments per person.",
        effect="Workers who have done more keep their assignments and get no further one.",
        section=_PAY,
    )
    lease_seconds: Seconds = setting(
        1800.0,
        "Lease of a question, in seconds",
        "How long a question waits for its answer before it is asked again.",
        effect="Applies to questions leased from now on.",
        section=_PAY,
    )
    panel: PanelName = setting(
        "",
        "Panel",
        "Where paid workers come from. With none, they use the link for assessors.",
        effect="Workers come from this panel from now on; earlier ones are paid through their own panel.",
        section=_PANEL,
        choices=PanelLabels(),
    )
    panel_study: Text = setting(
        "",
        "Panel study",
        "The study's id at the panel, such as Prolific's study id.",
        effect="Submissions of another study are no longer reconciled or settled.",
        section=_PANEL,
        private=True,
    )
    identity_parameter: Parameter = setting(
        "worker",
        "Parameter with the external id",
        "The parameter of the link with the external id. Prolific and Connect have their own.",
        effect="Visitors with the old parameter in their link become new assessors.",
        section=_PANEL,
    )
    completion_url: WebAddress = setting(
        "",
        "Completion address",
        "Where workers go at the end. Prolific needs none.",
        effect="Workers who end an assignment from now on are sent there.",
        section=_PANEL,
    )
    completion_code: Text = setting(
        "",
        "Completion code",
        "Shown after a complete assignment.",
        effect="Shown at the end of an assignment from now on; earlier workers saw the old one.",
        section=_PANEL,
        private=True,
    )
    failed_code: Text = setting(
        "",
        "Code after failed test pairs",
        "Shown after failed test pairs. Empty: the completion code, as that work is paid too.",
        effect="Shown to workers who fail the test pairs from now on.",
        section=_PANEL,
        private=True,
    )
    stopped_code: Text = setting(
        "",
        "Code after stopping early",
        "Shown to workers who stop early, and get a part of the pay.",
        effect="Shown to workers who stop early from now on.",
        section=_PANEL,
        private=True,
    )
    no_work_code: Text = setting(
        "",
        "Code without questions",
        "Shown when there was nothing to judge.",
        effect="Shown to workers who find nothing to judge from now on.",
        section=_PANEL,
        private=True,
    )
    languages: Languages = setting(
        (),
        "Languages",
        "The page's languages, such as en, de, the default first. Empty: all available languages.",
        effect="The page offers these languages from now on.",
        section=_MODELS,
    )
    flips: Flips = setting(
        "tie",
        "If a model's two orders disagree",
        "A language model judges every pair in both orders; if they disagree, a tie counts, or nothing (abstain).",
        effect="Applies to the answers of language models from now on.",
        section=_MODELS,
        choices={"tie": "count a tie", "abstain": "count nothing"},
    )
    check: tuple[CheckQuestion, ...] = setting(
        (),
        "Check, as JSON",
        "The questions of the comprehension check. Empty: the default ones; none with a guide of your own.",
        effect="Visitors who arrive from now on answer these questions.",
        section=_RECORDS,
        takes="a list of questions with 'text', 'choices' and 'answer', the position of the right choice from 0",
    )
    practice: tuple[PracticePair, ...] = setting(
        (),
        "Practice pairs, as JSON",
        "Pairs to try the page with. Empty: the default ones.",
        effect="Visitors who arrive from now on practise with these pairs.",
        section=_RECORDS,
        takes="a list of pairs with 'topic', 'left', 'right' and 'better' (left or right), and perhaps 'why'",
    )

    @model_validator(mode="wrap")
    @classmethod
    def _checked(cls, values: Any, handler: Any) -> Any:
        """Check every setting by its declaration; the first bad value is refused in the product's words."""
        named = dict(getattr(values, "kwargs", None) or {})
        if isinstance(named.get("goal"), str) and "strategy" in named:
            refuse_topic_strategy(named["goal"], named["strategy"])
        try:
            return handler(values)
        except ValidationError as error:
            raise refusal(error.errors(include_url=False)[0], SETTINGS) from None

    def __post_init__(self) -> None:
        """Check what depends on several settings."""
        goal = read_goal(self.goal)
        if goal.of_systems:
            self._check_systems(goal)
        else:
            self._check_best()
        if (self.person_price is None) != (self.model_price is None):
            raise BadParameter(
                "Only one of the two prices is given: 'person_price' and 'model_price' go together.",
                remedy="Give both, in the same unit, or neither.",
            )
        if self.panel:
            names = ("completion_code", "failed_code", "stopped_code", "no_work_code")
            check_codes({name: getattr(self, name) for name in names})

    def _check_best(self) -> None:
        # Refuses what it can't be made of; `Campaign.create` also what a new campaign can't have.
        strategy = make_strategy(self.strategy, (), seed=self.seed, cap=self.cap, stored=True)
        if not read_spend(self.spend).is_even:
            self._check_spending()
        name = split_spec(self.strategy)[0]
        if self.weigh_assessors and "weights" not in parameters_of(STRATEGIES[name]):
            raise BadParameter(
                f"The strategy '{name}' counts every judgment once.",
                remedy="Choose swissfinals, or leave weigh_assessors out.",
            )
        if self.prices is not None and "shares" not in parameters_of(STRATEGIES[name]):
            raise BadParameter(
                f"The strategy '{name}' counts every judgment once, a model's as well.",
                remedy="Choose swissfinals, or leave person_price and model_price out.",
            )
        for what, used in (
            ("crossed", self.crossed),
            ("plan", self.plan),
            ("spend", not read_spend(self.spend).is_even),
        ):
            if self.prices is not None and used:
                raise BadParameter(
                    f"The setting '{what}' doesn't go with prices of judgments.",
                    remedy="Leave it out, or person_price and model_price.",
                )
        if self.crossed and (self.judges != "dedicated" or self.stage != "preferences"):
            raise BadParameter(
                "A crossed study is for dedicated assessors, without stages.",
                remedy="Leave out --judges crowd and the grading stage; a kind may be 'grade'.",
            )
        if self.crossed and not strategy.pools_judgments:
            raise BadParameter(
                f"In a crossed study each assessor has a strategy of their own, and '{self.strategy}' has phases.",
                remedy="Choose allpairs, sorting, carry-on or swissfinals.",
            )

    def _check_spending(self) -> None:
        refuse_unstaged(self.strategy)
        for name, used in (
            ("crossed", self.crossed),
            ("plan", self.plan),
            ("stage", self.stage == "grading"),
        ):
            if used:
                raise BadParameter(
                    f"The setting '{name}' goes with even spending, and judgments are spent by '{self.spend}'.",
                    remedy="Leave one of them out.",
                )

    def _check_systems(self, goal: CampaignGoal) -> None:
        """Check what systems are compared by; the strategy that looks for best items gives way to the default."""
        if self.strategy == _STRATEGY:
            object.__setattr__(
                self, "strategy", default_strategy(self.goal)
            )  # refused above where it was named
        make_decider(goal, self.strategy, seed=self.seed, cap=self.cap, make=no_strategy)
        for name, used in (
            ("crossed", self.crossed),
            ("plan", self.plan),
            ("stage", self.stage == "grading"),
            ("spend", not read_spend(self.spend).is_even),
            ("person_price", self.prices is not None),
        ):
            if used:
                raise BadParameter(
                    f"The setting '{name}' goes with the goal 'best', and the goal is '{goal}'.",
                    remedy="Leave one of them out.",
                )

    def planned(self, topic: str) -> tuple[PlannedRow, ...]:
        """Return a topic's questions of the plan."""
        return tuple(row for row in self.plan if row[0] == topic)

    def grades_wanted(self, topic: str) -> Counter[str]:
        """Return how many grades each item of a topic gets where a plan says so for each; empty without a plan."""
        return Counter({row[1]: row[4] for row in self.planned(topic)} if self.stage == "grading" else {})

    @property
    def panel_settings(self) -> PanelSettings:
        """The settings that the panel needs."""
        return PanelSettings(
            panel=self.panel,
            study=self.panel_study,
            complete=self.completion_code,
            failed=self.failed_code,
            stopped=self.stopped_code,
            no_work=self.no_work_code,
            url=self.completion_url,
            parameter=self.identity_parameter,
            reward=self.reward,
            fee_percent=self.fee_percent,
            currency=self.currency,
        )

    @property
    def prices(self) -> tuple[float, float] | None:
        """The prices of a person's and of a model's judgment, where they decide who is asked."""
        if self.person_price is None or self.model_price is None:
            return None
        return self.person_price, self.model_price

    @property
    def learns_worth(self) -> bool:
        """Whether it is learnt from the votes what a vote of an assessor or a model is worth."""
        return self.weigh_assessors or self.prices is not None

    @property
    def bad_votes_needed(self) -> int:
        """How many Bad votes of different assessors remove an item."""
        return max(0, self.bad_votes) or (1 if self.judges == "dedicated" else 2)

    @property
    def grades(self) -> tuple[float, ...]:
        """The grades that the grading stage takes."""
        return SCALES[self.scale]

    @property
    def slots(self) -> int:
        """How many judgments one question may get: the cap of a pair, or the grades of an item."""
        if self.crossed:
            return self.people_per_kind * len(self.crossed)
        return self.grades_per_item if self.stage == "grading" else self.cap

    @property
    def outcomes(self) -> frozenset[Outcome]:
        """The answers that this campaign takes now."""
        kinds = self.crossed or (Kind.GRADE if self.stage == "grading" else self.kind,)
        return frozenset().union(*(self.outcomes_of(kind) for kind in kinds))

    def outcomes_of(self, kind: Kind) -> frozenset[Outcome]:
        """Return the answers to a question of this kind."""
        if kind is Kind.GRADE:
            return frozenset({Outcome.GRADE}) | _ALWAYS
        outcomes = _PLAIN | _ALWAYS | {Outcome.FLIP_TIE, Outcome.FLIP_ABSTAIN}
        if kind is Kind.DEFINITE:
            outcomes |= {Outcome.DEFINITELY_LEFT, Outcome.DEFINITELY_RIGHT}
        if self.ties:
            outcomes |= {Outcome.TIE}
        if self.same:
            outcomes |= {Outcome.SAME}
        return outcomes

    def as_json(self) -> dict[str, Any]:
        """Return the settings for the store, as plain JSON values."""
        values: dict[str, Any] = _ADAPTER.dump_python(self, mode="json")
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the settings that a store holds; unknown names are ignored, missing ones have their defaults."""
        return cls(**{name: value for name, value in values.items() if name in SETTINGS})

    @classmethod
    def from_store(cls, values: Mapping[str, Any]) -> tuple[Self, tuple["RefusedSetting", ...]]:
        """Return the settings that a store holds, and those of them that this release refuses.

        A refused setting that may change has its default. A number that decides what is asked and what counts is kept:
        what was judged can be read, and nothing more is asked. Others of that kind can't be used: then the error says
        what is wrong.
        """
        values = _as_it_was_asked(values)
        try:
            return cls.from_json(values), ()
        except DuelpoolError:
            settings, taken = cls(), dict[str, Any]()
        refused: list[RefusedSetting] = []
        for name in (*FIXED, *CHANGEABLE):
            if name not in values:
                continue
            try:
                settings = cls.from_json({**taken, name: values[name]})
                taken[name] = values[name]
            except DuelpoolError as error:
                kept = name in FIXED
                if kept and not _is_usable(name, values[name]):
                    raise BadParameter(
                        f"The stored setting '{name}' isn't accepted any more. {error.problem}",
                        remedy=error.remedy,
                    ) from error
                refused.append(RefusedSetting(name, error.problem, error.remedy, kept))
        for each in refused:
            if each.kept:
                object.__setattr__(settings, each.name, values[each.name])
        return settings, tuple(refused)


@dataclass(frozen=True, slots=True)
class RefusedSetting:
    """A stored setting that this release doesn't accept: the campaign has its default instead, or asks nothing more."""

    name: str
    problem: str
    remedy: str
    kept: bool = False

    def __str__(self) -> str:
        if self.kept:
            return (
                f"The stored setting '{self.name}' isn't accepted any more, so no more questions are asked. "
                f"{self.problem} What was judged can be read and exported; create another campaign to judge more."
            )
        return (
            f"The stored setting '{self.name}' isn't accepted any more, and its default is used. {self.problem} "
            f"{self.remedy} Set it again with `duelpool change --settings FILE`."
        )


_ADAPTER: Final = TypeAdapter(Settings)

SETTINGS: Final[Mapping[str, SettingField]] = declared(Settings, _ADAPTER.json_schema())
"""Every setting by its name, in the order of their declaration."""

CHANGEABLE: Final[Mapping[str, str]] = MappingProxyType(
    {name: field.about.effect for name, field in SETTINGS.items() if field.changeable}
)
"""The settings that may change while people judge, each with the effect of a change."""

FIXED: Final[Mapping[str, str]] = MappingProxyType(
    {name: field.about.fixed_because for name, field in SETTINGS.items() if not field.changeable}
)
"""The settings that can't change while people judge, each with the reason."""


def _as_it_was_asked(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return stored settings of earlier releases with what they left unsaid, so that their campaigns go on unchanged.

    Their swissfinals asked seven judgments an item, also where that is more than every pair once.
    """
    strategy = values.get("strategy")
    if "required" in values or not isinstance(strategy, str):
        return values
    name, parameters = split_spec(strategy)
    if name != _STRATEGY or {"budget", "per_item"} & set(parameters):
        return values
    given = ",".join(f"{key}={value}" for key, value in {**parameters, "per_item": PER_ITEM}.items())
    return {**values, "strategy": f"{name}:{given}"}


def _is_usable(name: str, value: Any) -> bool:
    """Return whether a refused number can be used to read what was judged; seeds draw, and can't."""
    field = SETTINGS[name]
    whole = isinstance(value, int) and not isinstance(value, bool)
    number = whole or (isinstance(value, float) and math.isfinite(value) and not field.whole)
    return field.input == "number" and number and name != "seed"


def default_strategy(goal: str) -> str:
    """Return the strategy that a campaign has where none is named."""
    return next(iter(DECIDERS)) if read_goal(goal).of_systems else _STRATEGY


def refuse_topic_strategy(goal: str, strategy: str) -> None:
    """Refuse the strategy of a topic that was named where systems compete; a default gives way silently."""
    if read_goal(goal).of_systems and strategy == _STRATEGY:
        raise BadParameter(
            f"The strategy '{strategy}' finds the best items of a topic, and the goal is '{goal}'.",
            remedy=f"Leave it out, or choose a way to compare systems: {', '.join(DECIDERS)}.",
        )


def check_names(names: Iterable[str]) -> None:
    """Refuse a name that no setting has."""
    for name in names:
        if name not in SETTINGS:
            raise UnknownName("setting", name, SETTINGS)
