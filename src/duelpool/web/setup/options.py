"""The options of a draft, as the form and the API take them."""

import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from duelpool.campaign.settings import SETTINGS, Judges, Settings
from duelpool.campaign.settings.settings import default_strategy, refuse_topic_strategy
from duelpool.campaign.settings.values import WebAddress, required
from duelpool.errors import BadParameter
from duelpool.setup import Rules
from duelpool.setup.choices import COMPARE, joined
from duelpool.web.i18n import catalogue

TEXT_AT_MOST = 40_000
NUMBER_AT_MOST = 10**9
DEFAULTS = Settings()


def _storable(text: str) -> str:
    if "\0" in text or any(0xD800 <= ord(sign) <= 0xDFFF for sign in text):
        message = "this text has a character that can't be stored"
        raise ValueError(message)
    return text.replace("\r\n", "\n")


Line = Annotated[str, Field(max_length=200), AfterValidator(_storable)]
LongText = Annotated[str, Field(max_length=TEXT_AT_MOST), AfterValidator(_storable)]
Count = Annotated[int, Field(ge=1, le=NUMBER_AT_MOST)]
Amount = Annotated[int, Field(ge=0, le=NUMBER_AT_MOST)]
PriceOption = Annotated[float, Field(gt=0, le=NUMBER_AT_MOST, allow_inf_nan=False)]


class Options(BaseModel):
    """How pools are built, how people judge, what they are paid, and what they read first.

    Money is in minor units. `share` makes a pilot of a share of the topics; `learn_from` names a campaign of
    this store, by id, whose judges are simulated; `max_cost` caps what is recommended. An empty `goal` goes by the
    files: systems with answers and with `pages`, else best. An empty `strategy` is the goal's own. `fields` maps the
    names in files of answers. `spend` is where judgments go, `spend_judgments` how many there are in all where they
    aren't spent evenly. `panel` is where paid workers come from, with its study and codes. `llm_url` and
    `llm_model` name a language model that judges too, by a command that is told after the campaign is created: its key
    stays in the environment of that command, and is never sent here. Topics without texts or without a question are
    held back from people, unless they may be missing.
    """

    model_config = ConfigDict(extra="forbid")

    name: Line = ""
    depth: Annotated[int, Field(ge=1, le=100_000)] = 10
    thin: Count | None = None
    relevant_from: Annotated[float, Field(allow_inf_nan=False)] | None = None
    keep_ungraded: bool = False
    keep_twins: bool = False
    goal: Line = ""
    fields: Line = ""
    pages: bool = False
    strategy: Line = ""
    spend: Line = DEFAULTS.spend
    spend_judgments: Count | None = None
    judges: Judges = DEFAULTS.judges
    cap: Annotated[int, Field(ge=SETTINGS["cap"].least, le=1000)] = DEFAULTS.cap
    tests: Literal["", "auto", "none"] = ""
    weigh_assessors: bool = DEFAULTS.weigh_assessors
    reward: Amount = DEFAULTS.reward
    fee_percent: Annotated[int, Field(ge=SETTINGS["fee_percent"].least, le=1000)] = DEFAULTS.fee_percent
    budget: Amount | None = DEFAULTS.budget
    panel: Line = ""
    panel_study: Line = ""
    completion_code: Line = ""
    no_work_code: Line = ""
    llm_url: Annotated[WebAddress, Field(max_length=200), AfterValidator(_storable)] = ""
    llm_model: Line = ""
    person_price: PriceOption | None = DEFAULTS.person_price
    model_price: PriceOption | None = DEFAULTS.model_price
    llm_budget: Annotated[str, Field(pattern=r"^([0-9]{1,9}(\.[0-9]{1,4})?)?$")] = ""
    seed: Amount = DEFAULTS.seed
    consent: LongText = ""
    guidelines: LongText = ""
    share: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = None
    max_cost: Amount | None = None
    learn_from: Line = ""
    allow_missing_texts: bool = False
    allow_missing_questions: bool = False

    def settings(self, of_systems: bool = False) -> Settings:
        """Return the campaign's settings; without a goal, it is that of its files."""
        if bool(self.llm_url) != bool(self.llm_model):
            raise BadParameter(
                "A language model needs both its address and its name.",
                remedy="Give both, or leave both empty.",
            )
        goal = self.goal or ("systems" if of_systems or self.pages else DEFAULTS.goal)
        refuse_topic_strategy(goal, self.strategy)
        return Settings(
            goal=goal,
            strategy=self.strategy or default_strategy(goal),
            spend=self.spend or DEFAULTS.spend,
            spend_judgments=self.spend_judgments,
            seed=self.seed,
            judges=self.judges,
            cap=self.cap,
            weigh_assessors=self.weigh_assessors,
            person_price=self.person_price,
            model_price=self.model_price,
            reward=self.reward,
            fee_percent=self.fee_percent,
            budget=self.budget,
            panel=self.panel,
            panel_study=self.panel_study,
            completion_code=self.completion_code,
            no_work_code=self.no_work_code,
            consent=self.consent,
            guidelines=self.guidelines,
            ties=goal != DEFAULTS.goal,  # systems are compared
            required=required(self.allow_missing_texts, self.allow_missing_questions),
        )

    def model_command(self, store: str, campaign: str) -> str:
        """Return the command that lets the language model judge; empty where none is named."""
        if not self.llm_model:
            return ""
        words = ["duelpool", "judge", "llm", store, "--campaign", campaign, "--url", self.llm_url]
        words += ["--model", self.llm_model, *(("--budget", self.llm_budget) if self.llm_budget else ())]
        return shlex.join(words)

    def rules(self) -> Rules:
        """Return how pools are built."""
        return Rules(self.depth, self.thin, self.relevant_from, self.keep_ungraded, self.keep_twins)


TICKED = (
    *("keep_ungraded", "keep_twins", "pages", "allow_missing_texts", "allow_missing_questions"),
    "weigh_assessors",
)
OPTIONAL = (
    *("thin", "relevant_from", "budget", "share", "max_cost", "spend_judgments"),
    *("person_price", "model_price"),
)
STEPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "files": (
            *("depth", "thin", "relevant_from", "fields", "pages", "keep_ungraded", "keep_twins"),
            *("allow_missing_texts", "allow_missing_questions"),
        ),
        "judges": (
            *("judges", "cap", "tests", "weigh_assessors", "reward", "fee_percent", "budget"),
            *("panel", "panel_study", "completion_code", "no_work_code"),
            *("llm_url", "llm_model", "llm_budget", "person_price", "model_price"),
            *("consent", "guidelines"),
        ),
        "plan": ("goal", "strategy", "spend", "spend_judgments", "seed", "share", "learn_from", "max_cost"),
        "review": ("name",),
    }
)
"""The screens of set-up in their order, each with the options that it asks for."""


def from_form(values: Mapping[str, Any], step: str, before: Options) -> dict[str, Any]:
    """Return all options after a step's form: an empty number is none, a box that wasn't ticked is false.

    Texts that are the page's own are left to the page, which speaks several languages.
    """
    asked = STEPS[step]
    typed = {name: str(values[name]).strip() for name in asked if name in values}
    if step == "plan" and (parameters := str(values.get("strategy_parameters", "")).strip()):
        typed["strategy"] = joined(typed.get("strategy") or str(values.get("usual_strategy", "")), parameters)
    for name in ("goal", "spend"):
        if typed.get(name) == COMPARE:
            typed[name] = joined(COMPARE, str(values.get("compared", "")).strip())
    for name, own in (("consent", "consent_text"), ("guidelines", "guide_text")):
        if name in typed and typed[name].split() == catalogue("en")(own).split():
            typed[name] = ""
    given: dict[str, Any] = {
        name: None if name in OPTIONAL and not value else value for name, value in typed.items()
    }
    given |= {name: values.get(name) == "yes" for name in TICKED if name in asked}
    return before.model_dump() | given
