"""Campaigns of the shapes that real ones have, made up by seed: what the pages are looked at and measured with.

Long ids, passages of 20 to 400 words, 53 topics, 63 runs, 3,500 judgments by 20 workers (some careless), and a second
campaign with the answers of 59 systems. Every word is our own. `write_realistic` makes the store in a few seconds;
the fixture `realistic` of conftest.py serves one for all tests of a session, which only look at it.
"""

import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

import duelpool
from duelpool.campaign import Campaign, Settings
from duelpool.campaign.imports.importer import import_file
from duelpool.campaign.runners.judging_session import work_assignments
from duelpool.campaign.runners.llm_judge import LlmJudge, Terms
from duelpool.campaign.runners.llm_session import LlmSession
from duelpool.campaign.settings.welcome import STEPS
from duelpool.errors import DuelpoolError
from duelpool.files import Run
from duelpool.files.packed import pack_run
from duelpool.judges.live import Sheet, SimulatedPerson, TopicJudges, Utilities
from duelpool.judges.llm import PROMPTS, Endpoint, Prices, parse_address
from duelpool.leaderboard.scoring import packed
from duelpool.records import Answer, Passage, Pool, Topic
from duelpool.seeds import rng_for
from duelpool.store import Store, open_store
from duelpool.store.holdings import PackedRun, TestPair
from support.browsing import Site, open_site
from support.clocks import move_time
from support.fake_llm import LlmRequest, Provider, says, serving

PASSAGES, SYSTEMS, GRADES = "Passages for web questions", "Answers of 59 systems", "Grades of answers"
TOPICS, RUNS, WORKERS, JUDGMENTS, SYSTEM_COUNT, SYSTEM_TOPICS, VOTES = 53, 63, 20, 3500, 59, 13, 2600
MODEL, MODEL_PAIRS = "llm-judge-large", 60
BEGIN = 1_760_000_000.0  # when the first judgment is made
ROUND_SECONDS = 40_000.0  # from one assignment of each worker to the next
ABOVE = frozenset({"agreements", "api", "cli", "evaluation", "plots", "report", "web"})  # they don't judge
KEPT = Path(__file__).parents[2] / "build" / "realistic"

_SUBJECTS = """a sourdough starter, the kidneys, a heat pump, a fixed-rate mortgage, tomato blight, a torn ligament,
solar panels, the cerebellum, a sea turtle, cast iron pans, a landlord's deposit, ankle sprains, jet lag, the Suez
canal, rooftop gardens, a leaking tap, compost worms, migraine with aura, a wool carpet, the northern lights, a slow
cooker, bicycle brakes, an allergy to peanuts, the tide tables, a passport photo, glacier ice, honey bees, a broken
zip, blood oranges, night trains, a concrete slab, the thyroid gland, chess openings, a ripe avocado, tax on a second
home, ferry crossings, damp walls, the stock of a soup, a hamstring strain, a volcano's ash, old window frames, a lost
parcel, pickled cabbage, the hip joint, an electric kettle, desert foxes, a choir rehearsal, spring onions, the inner
ear, a used camper van, lithium batteries, mountain goats, a paper map"""
_VOCABULARY = """the a most people some often usually careful small large early later warm cold water weeks days hours
part side surface layer method reason cause result doctor builder owner neighbour measure check clean replace keep store
avoid begin finish slowly quickly under over between around without against because although however after before
while until needs takes gives shows holds lasts changes depends costs about roughly nearly ten twenty thirty percent
litres metres degrees advice experience guide rule exception season weather region material thickness pressure balance
risk benefit price account contract insurance appointment treatment exercise rest"""
_THINGS = tuple(" ".join(each.split()) for each in _SUBJECTS.split(","))
_WORDS = tuple(_VOCABULARY.split())
_ASKED = (
    *("how long does it take to recover from {}", "what is the best way to store {}", "how do you repair {}"),
    *(
        "why does the colour of {} change over time",
        "what does {} do",
        "difference between {} and its alternatives",
    ),
    *("how much does {} cost on average", "who discovered {}", "can you travel abroad with {}"),
    *("what are the first signs of a problem with {}", "is it safe to leave {} alone for a week"),
    "which month is the right one to look after {} if you live somewhere with long and very dry summers",
)
_TAGS = ("how to", "health", "home and garden", "definition", "comparison")
_STEMS = (
    "bm25",
    "splade",
    "colbert",
    "monot5",
    "duot5",
    "rm3",
    "dense",
    "hybrid",
    "doc2query",
    "uni_p",
    "trans",
)
_TAILS = (
    "base",
    "large",
    "mini",
    "v2",
    "expanded",
    "distilled",
    "1k",
    "full",
    "passage",
    "tuned",
    "rrf",
    "p",
    "d",
)
_MAKERS = ("", "", "", "TheBloke/", "openhearth/", "northlight-ai/")
_FAMILIES = (
    "vicuna",
    "airoboros-l2",
    "mistral-7b-instruct",
    "koala",
    "falcon",
    "command",
    "oasst",
    "wizard-mega",
)
_SIZES = ("7b", "13b-v1.5", "70B", "40b-instruct", "3b-chat-hf", "33B-GPTQ-4bit-128g")


@dataclass(frozen=True, slots=True)
class RealisticSite:
    """A server with the campaigns, by their ids in the store."""

    site: Site
    store: Path
    passages: Campaign
    systems: Campaign
    grades: Campaign


def write_realistic(target: Path) -> None:
    """Write a store with the campaigns, judged; the last one made from the same code is copied."""
    root = Path(duelpool.__file__).parent
    code = [path for path in sorted(root.rglob("*.py")) if path.relative_to(root).parts[0] not in ABOVE]
    code.append(Path(__file__))
    kept = KEPT / f"{blake2b(b''.join(path.read_bytes() for path in code), digest_size=8).hexdigest()}.db"
    if not kept.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            _make(Path(folder) / "made.db")
            for old in KEPT.glob("*.db"):
                old.unlink(missing_ok=True)
            own = kept.with_suffix(f".{os.getpid()}")
            shutil.copy(Path(folder) / "made.db", own)
            own.replace(kept)
    shutil.copy(kept, target)


def _make(target: Path) -> None:
    with open_store(target, create=True) as store, pytest.MonkeyPatch.context() as patch:
        clock = _Clock()
        move_time(store, patch, clock.now)
        _judge_passages(store, clock)
        _judge_systems(store, target.parent)
        _ask_for_grades(store)


class _Clock:
    """A time that passes whenever it is asked for, and jumps between two rounds of work."""

    def __init__(self) -> None:
        self._asked = itertools.count()
        self.begin = BEGIN

    def now(self) -> float:
        return self.begin + next(self._asked)


@contextmanager
def open_realistic(folder: Path) -> Iterator[RealisticSite]:
    """Serve a store with the campaigns."""
    write_realistic(folder / "campaigns.db")
    with open_site(folder) as site:
        yield RealisticSite(
            site,
            folder / "campaigns.db",
            *(Campaign.open(site.store, name) for name in (PASSAGES, SYSTEMS, GRADES)),
        )


# ---- names and texts


def questions(count: int) -> list[Topic]:
    """Return topics with a question each, most of them tagged, with ids as search logs have them."""
    rng = rng_for(1, "realistic questions")
    numbers = sorted(int(each) for each in rng.choice(1_200_000, count, replace=False))
    return [
        Topic(
            str(number + 2_000),
            _ASKED[int(rng.integers(len(_ASKED)))].format(_THINGS[at % len(_THINGS)]),
            tags=() if at % 7 == 0 else (_TAGS[at % len(_TAGS)],),
        )
        for at, number in enumerate(numbers)
    ]


def text(rng: np.random.Generator, words: int, about: str = "") -> str:
    """Return sentences of so many words in all; the first words name what they are about."""
    drawn = [*about.split(), *(_WORDS[int(at)] for at in rng.integers(len(_WORDS), size=words))][:words]
    sentences = []
    while drawn:
        length = int(rng.integers(6, 24))
        sentence, drawn = drawn[:length], drawn[length:]
        sentences.append(" ".join(sentence).capitalize() + ".")
    return " ".join(sentences)


def run_names(count: int) -> list[str]:
    """Return tags as runs have them; some are long."""
    rng = rng_for(1, "realistic runs")
    names = dict.fromkeys(("p_bm25rm3duot5_expanded_v2", "NLE_P_v1", "bm25base_p"))
    while len(names) < count:
        parts = [_STEMS[int(rng.integers(len(_STEMS)))] for _ in range(int(rng.integers(1, 4)))]
        names["_".join((*parts, _TAILS[int(rng.integers(len(_TAILS)))]))[:26]] = None
    return list(names)[:count]


def system_names(count: int) -> list[str]:
    """Return names as language models have them; some are long."""
    rng = rng_for(1, "realistic systems")
    names = dict.fromkeys(("vicuna-13b-v1.5", "TheBloke/airoboros-l2-70B"))
    while len(names) < count:
        maker, family, size = (each[int(rng.integers(len(each)))] for each in (_MAKERS, _FAMILIES, _SIZES))
        names[f"{maker}{family}-{size}"] = None
    return list(names)


def worker_names(count: int) -> list[str]:
    """Return ids as panels give them: 24 hexadecimal digits."""
    rng = rng_for(1, "realistic workers")
    return ["".join(f"{int(digit):x}" for digit in rng.integers(16, size=24)) for _ in range(count)]


# ---- a campaign of passages


class _Wordy:
    """A simulated worker who leaves a note now and then."""

    def __init__(self, person: SimulatedPerson) -> None:
        self._person = person

    def reply(self, sheet: Sheet) -> Answer:
        answer = self._person.reply(sheet)
        if not sheet.left.id.endswith("7"):
            return answer
        return Answer(
            answer.outcome,
            seconds=answer.seconds,
            note="Both say the same, but this one also says what to do next, and names its source.",
        )


def _judge_passages(store: Store, clock: _Clock) -> None:
    rng = rng_for(1, "realistic passages")
    topics = questions(TOPICS)
    pools, texts, utilities, tests = [], [], {}, []
    for topic in topics:
        items = [
            f"msmarco_passage_{int(rng.integers(70)):02}_{int(rng.integers(900_000_000)):09}"
            for _ in range(int(rng.integers(5, 19)))
        ]
        good = sorted((float(each) for each in rng.normal(0.0, 1.4, len(items))), reverse=True)
        utilities[topic.id] = dict(zip(items, good, strict=True))
        grades = {
            item: float(np.clip(round(value + 1.5), 0, 3)) for item, value in utilities[topic.id].items()
        }
        pools.append(Pool(topic.id, tuple(items), grades=grades))
        texts += [Passage(item, text(rng, int(rng.integers(20, 401)), topic.text)) for item in items]
        worse = f"msmarco_passage_99_{int(rng.integers(900_000_000)):09}"
        texts.append(Passage(worse, text(rng, 60, "Something else entirely")))
        tests.append(TestPair(f"test-{topic.id}", topic.id, items[0], worse))
    campaign = Campaign.create(
        store,
        PASSAGES,
        Settings(
            strategy="prefbest",
            judges="crowd",
            seed=1,
            steps=(),
            budget=120_000,
            reward=200,
            currency="GBP",
            completion_url="https://panel.example/done",
        ),
        topics=topics,
        pools=pools,
        passages=texts,
        test_pairs=tests,
        runs=packed([_run(name, at, utilities) for at, name in enumerate(run_names(RUNS))]),
    )
    sees = TopicJudges(Utilities(utilities), campaign.live.items, 1)
    people = [
        (name, _Wordy(SimulatedPerson(at, sees, 1, careless=float(at % 7 == 6))))
        for at, name in enumerate(worker_names(WORKERS))
    ]
    _let_model_judge(campaign, texts, utilities)
    done = 0
    while done < JUDGMENTS:
        now = work_assignments(campaign, people, each=1, limit=JUDGMENTS - done)
        if not now.judged:
            raise DuelpoolError(f"The workers got no more questions after {done} judgments.")
        done += now.judged
        clock.begin += ROUND_SECONDS
        people = [each for each in people if each[0] not in now.excluded]


def _run(name: str, at: int, utilities: dict[str, dict[str, float]]) -> Run:
    rng = rng_for(1, "realistic run", name)
    noise = 0.3 + 0.05 * at
    return Run.from_rankings(
        name,
        {
            topic: [
                (item, value + noise * float(rng.normal()))
                for item, value in items.items()
                if rng.random() < 0.9
            ]
            for topic, items in utilities.items()
        },
    )


def _let_model_judge(
    campaign: Campaign, passages: list[Passage], utilities: dict[str, dict[str, float]]
) -> None:
    """Let a language model judge some pairs of a campaign."""
    best = {item: value for items in utilities.values() for item, value in items.items()}
    texts = {each.text.strip(): each.id for each in passages}

    def answers(asked: LlmRequest) -> str:
        left, right = (best.get(texts[asked.parts[side].strip()], -5.0) for side in ("left", "right"))
        lead = left - right + 0.35  # it leans to the left
        return says("left" if lead > 0 else "right", 60 if abs(lead) < 0.6 else 70 if abs(lead) < 1.2 else 90)

    with serving(
        Provider(model=answers, fault=lambda asked: "429 0" if asked.number == 5 else "good")
    ) as provider:
        endpoint = Endpoint(parse_address(f"{provider.address}/v1", ["localhost"]))
        terms = Terms(
            "northlight-ai/judge-large-2026-01-15",
            PROMPTS["preference"],
            prices=Prices.per_million("2.50", "10"),
            budget=5 * 10**12,
            first_wait=0.01,
            concurrency=1,
        )
        LlmSession(LlmJudge.enrol(campaign, MODEL, endpoint, terms)).run(MODEL_PAIRS)


# ---- a campaign of systems


def _judge_systems(store: Store, folder: Path) -> None:
    rng = rng_for(1, "realistic answers")
    names = system_names(SYSTEM_COUNT)
    strengths = dict(zip(names, rng.normal(0.0, 1.2, len(names)), strict=True))
    topics = [
        Topic(f"prompt-{at:02}", each.text, tags=each.tags)
        for at, each in enumerate(questions(SYSTEM_TOPICS))
    ]
    pools, texts, utilities = [], [], {}
    for topic in topics:
        items = {name: f"{topic.id}:{name}" for name in names}
        utilities[topic.id] = {
            item: float(strengths[name] + rng.normal(0.0, 0.5)) for name, item in items.items()
        }
        pools.append(Pool(topic.id, tuple(items.values())))
        texts += [Passage(item, text(rng, int(rng.integers(20, 200)), topic.text)) for item in items.values()]
    runs = [
        Run.from_rankings(name, {topic.id: [(f"{topic.id}:{name}", 1.0)] for topic in topics})
        for name in names
    ]
    campaign = Campaign.create(
        store,
        SYSTEMS,
        Settings(goal="systems", steps=()),
        topics=topics,
        pools=pools,
        passages=texts,
        runs=[PackedRun(run.name, len(topics), pack_run(run)) for run in runs],
    )
    judge_of = Utilities(utilities)
    votes = []
    for at in range(VOTES):
        topic = topics[at % len(topics)]
        # neighbours in strength meet most often, as a strategy would have it
        first = int(rng.integers(len(names)))
        second = (first + 1 + int(rng.geometric(0.08)) % (len(names) - 1)) % len(names)
        a, b = (names[each] for each in (first, second))
        lead = judge_of.log_odds * (
            utilities[topic.id][f"{topic.id}:{a}"] - utilities[topic.id][f"{topic.id}:{b}"]
        )
        winner = "model_a" if rng.random() < 1 / (1 + np.exp(-lead)) else "model_b"
        judge = worker_names(WORKERS)[at % 6]
        votes.append({"question_id": topic.id, "model_a": a, "model_b": b, "winner": winner, "judge": judge})
    file = folder / "votes.jsonl"
    file.write_text("".join(f"{json.dumps(each)}\n" for each in votes), encoding="utf-8")
    import_file(campaign, file)
    file.unlink()


# ---- a campaign with all pages before judging, for grades


def _ask_for_grades(store: Store) -> None:
    rng = rng_for(1, "realistic grades")
    topics = questions(6)
    pools = [Pool(topic.id, tuple(f"{topic.id}-answer-{at}" for at in range(5))) for topic in topics]
    Campaign.create(
        store,
        GRADES,
        Settings(stage="grading", scale="five", steps=STEPS, feedback=False),
        topics=topics,
        pools=pools,
        passages=[
            Passage(item, text(rng, int(rng.integers(20, 401)), topic.text))
            for topic, pool in zip(topics, pools, strict=True)
            for item in pool.items
        ],
    )
