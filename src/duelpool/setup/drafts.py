"""Drafts of campaigns: files and rules become pools, and nothing is written yet.

`build_draft` builds what a campaign would hold; `ReadyDraft.create` creates it in one transaction.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from duelpool.campaign import Campaign, Settings
from duelpool.errors import BadParameter
from duelpool.files import Notice
from duelpool.leaderboard.scoring import packed
from duelpool.pooling import Pools, build_pools
from duelpool.records import Passage
from duelpool.seeds import rng_for
from duelpool.setup.answer_tests import AnswerTests, made_alike, read_answer_tests
from duelpool.setup.inputs import Inputs
from duelpool.setup.result_pages import as_pages
from duelpool.setup.test_pairs import draw_test_pairs, read_test_pairs
from duelpool.store import Store
from duelpool.store.holdings import TestPair


@dataclass(frozen=True, slots=True)
class Rules:
    """How pools are built, as `duelpool.pooling.build_pools` takes it."""

    depth: int = 10
    thin: int | None = None
    relevant_from: float | None = None
    keep_ungraded: bool = False
    keep_twins: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """What a campaign would hold: its pools, and of a pilot also the sizes of all topics' pools."""

    inputs: Inputs
    settings: Settings
    pools: Pools
    whole: Mapping[str, int]  # the pool sizes of all topics, the pilot's and the others

    @property
    def texts(self) -> Mapping[str, Passage] | None:
        """The passages by id, None where no file of them was given."""
        return self.inputs.texts.by_id if self.inputs.texts is not None else None

    @property
    def untitled(self) -> tuple[str, ...]:
        """The topics without a question in any file: people would see the topic's id."""
        known = {topic.id for topic in self.inputs.topics} if self.inputs.topics is not None else set()
        return tuple(topic for topic in self.pools.sizes if topic not in known)

    def test_pairs(self) -> tuple[list[TestPair], tuple[Notice, ...]]:
        """Return the test pairs: drawn, from a file, or none; by default they are drawn for a crowd."""
        source = self.inputs.files.tests or ("auto" if self.settings.judges == "crowd" else "none")
        if source == "none":
            return [], ()
        if source == "auto":
            qrels = self.inputs.qrels
            grades = qrels.grades() if qrels is not None else {}
            notices: tuple[Notice, ...] = ()
            pairs = draw_test_pairs(
                self.pools.pools, texts=self.texts, grades=grades, seed=self.settings.seed
            )
        elif self.inputs.answers is not None:
            pairs, notices = list(self._answer_tests().pairs), self._answer_tests().notices
        else:
            pairs, notices = read_test_pairs(source, self.pools.sizes)
        if self.settings.judges == "crowd" and len(pairs) < self.settings.tests:
            raise BadParameter(
                f"An assignment takes {self.settings.tests} test pairs, and there are only {len(pairs)}.",
                remedy="Give more with --tests FILE, or use none with --tests none.",
            )
        return pairs, notices

    def _answer_tests(self) -> AnswerTests:
        """Return the test pairs of answers in the user's file, where there is one."""
        if self.inputs.answers is None or self.inputs.files.tests_file is None:
            return AnswerTests((), (), ())
        pooled = {
            name: topic for name, topic in self.inputs.answers.questions.items() if name in self.pools.sizes
        }
        texts = self.texts or {}
        answers = {
            pool.topic: [texts[item] for item in pool.items if item in texts] for pool in self.pools.pools
        }
        tests = read_answer_tests(self.inputs.files.tests_file, pooled)
        return made_alike(tests, answers, self.settings.seed)

    def ready(self) -> "ReadyDraft":
        """Return the draft with its test pairs, ready to create the campaign; raises where something is missing."""
        test_pairs, notices = self.test_pairs()
        return ReadyDraft(self, tuple(test_pairs), notices, self._answer_tests().passages)


@dataclass(frozen=True, slots=True)
class ReadyDraft:
    """A draft with all that a campaign needs."""

    draft: Draft
    test_pairs: tuple[TestPair, ...]
    notices: tuple[Notice, ...]
    test_texts: tuple[Passage, ...] = ()  # of test pairs that the pools don't have

    def create(
        self, store: Store, name: str, state: Literal["open", "paused"] = "open"
    ) -> tuple[Campaign, "Holdings"]:
        """Create the campaign, with the runs for its leaderboard, in one transaction; return it and what it holds."""
        draft = self.draft
        shown = {item for each in draft.pools.pools for item in each.items}
        shown |= {item for pair in self.test_pairs for item in (pair.better, pair.worse)}
        texts = {each.id: each for each in self.test_texts} | dict(draft.texts or {})
        passages = [texts[item] for item in sorted(shown) if item in texts]
        campaign = Campaign.create(
            store,
            name,
            draft.settings if self.test_pairs else replace(draft.settings, tests=0),
            topics=draft.inputs.topics or (),
            pools=draft.pools.pools,
            passages=passages,
            test_pairs=self.test_pairs,
            runs=packed(draft.inputs.runs),
            state=state,
        )
        sizes = (len(draft.pools.pools), draft.pools.candidates, len(passages), len(self.test_pairs))
        return campaign, Holdings(*sizes, len(draft.inputs.runs))


@dataclass(frozen=True, slots=True)
class Holdings:
    """How many topics, items, texts, test pairs and runs a new campaign holds."""

    topics: int
    candidates: int
    texts: int
    test_pairs: int
    runs: int

    def __str__(self) -> str:
        return (
            f"{self.topics} topics, {self.candidates:,} candidates, {self.texts:,} texts, "
            f"{self.test_pairs} test pairs"
        )


def build_draft(
    inputs: Inputs, settings: Settings, rules: Rules | None = None, *, share: float | None = None
) -> Draft:
    """Build the pools of a campaign; with a `share`, of this share of its topics, drawn at random, for a pilot."""
    rules = rules or Rules()
    if inputs.files.pages:
        inputs = as_pages(inputs, rules.depth)
    if inputs.files.of_systems:
        rules = replace(rules, depth=1)
    if share is not None and not 0 < share <= 1:
        raise BadParameter(
            f"A pilot's share of the topics is above 0 and at most 1, not {share}.", remedy="Example: 0.1"
        )
    pools = _pools(inputs, rules, None)
    if not pools.pools:
        raise BadParameter(
            "No topic has an item.", remedy="Check that runs, qrels and preferences have the same topics."
        )
    whole = pools.sizes
    if share is not None:
        names = sorted(whole)
        order = rng_for(settings.seed, "pilot").permutation(len(names))
        chosen = {names[at] for at in order[: max(1, math.ceil(share * len(names)))]}
        pools = _pools(inputs, rules, chosen)
    return Draft(inputs, settings, pools, whole)


def _pools(inputs: Inputs, rules: Rules, topics: set[str] | None) -> Pools:
    return build_pools(
        inputs.runs,
        qrels=inputs.qrels,
        preferences=inputs.preferences,
        depth=rules.depth,
        thin=rules.thin,
        relevant_from=rules.relevant_from,
        keep_ungraded=rules.keep_ungraded,
        texts=inputs.texts.by_id if inputs.texts is not None else None,
        keep_twins=rules.keep_twins,
        groups=inputs.groups,
        topics=topics,
    )
