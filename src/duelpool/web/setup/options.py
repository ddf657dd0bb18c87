"""The options of a draft, as the form and the API take them."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from duelpool.campaign.settings import SETTINGS, Judges, Settings
from duelpool.campaign.settings.settings import default_strategy, refuse_topic_strategy
from duelpool.setup import Rules
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


class Options(BaseModel):
    """How pools are built, how people judge, what they are paid, and what they read first.

    Money is in minor units. `share` makes a pilot of a share of the topics; `learn_from` names a campaign of
    this store, by id, whose judges are simulated; `max_cost` caps what is recommended. An empty `goal` goes by the
    files: systems with answers and with `pages`, else best. An empty `strategy` is the goal's own. `fields` maps the
    names in files of answers.
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
    judges: Judges = DEFAULTS.judges
    cap: Annotated[int, Field(ge=SETTINGS["cap"].least, le=1000)] = DEFAULTS.cap
    tests: Literal["", "auto", "none"] = ""
    reward: Amount = DEFAULTS.reward
    fee_percent: Annotated[int, Field(ge=SETTINGS["fee_percent"].least, le=1000)] = DEFAULTS.fee_percent
    budget: Amount | None = DEFAULTS.budget
    seed: Amount = DEFAULTS.seed
    consent: LongText = ""
    guidelines: LongText = ""
    share: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = None
    max_cost: Amount | None = None
    learn_from: Line = ""

    def settings(self, of_systems: bool = False) -> Settings:
        """Return the campaign's settings; without a goal, it is that of its files."""
        goal = self.goal or ("systems" if of_systems or self.pages else DEFAULTS.goal)
        refuse_topic_strategy(goal, self.strategy)
        return Settings(
            goal=goal,
            strategy=self.strategy or default_strategy(goal),
            seed=self.seed,
            judges=self.judges,
            cap=self.cap,
            reward=self.reward,
            fee_percent=self.fee_percent,
            budget=self.budget,
            consent=self.consent,
            guidelines=self.guidelines,
            ties=goal != DEFAULTS.goal,  # systems are compared
        )

    def rules(self) -> Rules:
        """Return how pools are built."""
        return Rules(self.depth, self.thin, self.relevant_from, self.keep_ungraded, self.keep_twins)


TICKED = ("keep_ungraded", "keep_twins", "pages")
OPTIONAL = ("thin", "relevant_from", "budget", "share", "max_cost")


def from_form(values: dict[str, Any]) -> dict[str, Any]:
    """Return what a form sent as options: an empty number is none, a box that wasn't ticked is false.

    Texts that are the page's own are left to the page, which speaks several languages.
    """
    typed = {name: str(values[name]).strip() for name in Options.model_fields if name in values}
    for name, own in (("consent", "consent_text"), ("guidelines", "guide_text")):
        if name in typed and typed[name].split() == catalogue("en")(own).split():
            typed[name] = ""
    given: dict[str, Any] = {
        name: None if name in OPTIONAL and not value else value for name, value in typed.items()
    }
    return given | {name: values.get(name) == "yes" for name in TICKED}
