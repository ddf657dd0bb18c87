"""People and a model beside them, simulated: what the model saves, and what a useless one costs.

The strategies and the campaign's own decisions are used without a store, which would take most of the time.
"""

import numpy as np
import pytest

from duelpool.campaign.log.campaign_events import KEPT, ModelSource
from duelpool.campaign.questions.model_questions import MODELS_SHARE, JudgedPairs
from duelpool.campaign.runners.two_sources import LEAST, decide
from duelpool.judges import make_judges
from duelpool.judges.base import Dice
from duelpool.preferences.assessors import AssessorVotes
from duelpool.preferences.sources import source_worths
from duelpool.preferences.weights import AGAIN
from duelpool.records import Judgment, Outcome, Pair, Proposal
from duelpool.strategies.swissfinals import SwissFinals

TOPICS, ITEMS = tuple(f"q{at}" for at in range(8)), tuple(f"d{at}" for at in range(16))
PER_ITEM, PRICES = 4, (1.0, 0.1)
BUDGET = PER_ITEM * len(ITEMS)


class Trial:
    """One campaign: people answer by a Bradley-Terry model, a model is right with a fixed chance, or there is none."""

    def __init__(self, seed: int, right: float | None) -> None:
        self.seed, self.right = seed, right
        self.people = {topic: make_judges("bt:sd=1.5").judge(topic, ITEMS, seed) for topic in TOPICS}
        self.order = {
            topic: [item for level in judge.truth.levels for item in level]
            for topic, judge in self.people.items()
        }
        self.dice = Dice(seed, "model")
        self.log: dict[str, list[Judgment]] = {topic: [] for topic in TOPICS}
        self.asked: set[tuple[str, Pair]] = set()  # of the model
        self.human = 0
        self.source: ModelSource | None = None
        self.fitted = (0, 0)
        self.strategies = {topic: self.strategy(topic) for topic in TOPICS}

    def strategy(self, topic: str) -> SwissFinals:
        weights = {} if self.source is None else {"model": self.source.weight_in(topic)}
        shares = {} if self.source is None else {"model": self.source.share_in(topic)}
        made = SwissFinals(
            ITEMS, seed=self.seed, topic=topic, per_item=PER_ITEM, weights=weights, shares=shares
        )
        for judgment in self.log[topic]:
            made.tell(judgment)
        return made

    def add(self, topic: str, proposal: Proposal, outcome: Outcome, who: str) -> None:
        judgment = Judgment(
            topic,
            *proposal.pair,
            outcome,
            assessor=who,
            phase=proposal.phase,
            proposal=proposal.proposal,
        )
        self.log[topic].append(judgment)
        self.strategies[topic].tell(judgment)

    def ask_people(self) -> bool:
        some = False
        for topic in TOPICS:
            for proposal in self.strategies[topic].ask(1):
                outcome = self.people[topic].answer(topic, *proposal.pair, self.human)
                self.add(topic, proposal, outcome, f"p{self.human % 6}")
                self.human += 1
                some = True
        return some

    def ask_model(self, topic: str, proposal: Proposal) -> None:
        pair, order = proposal.pair, self.order[topic]
        self.asked.add((topic, pair))
        is_right = self.dice.roll("\x1f".join((topic, *pair))) < (self.right or 0.0)
        left = (order.index(pair[0]) < order.index(pair[1])) == is_right
        self.add(topic, proposal, Outcome.LEFT if left else Outcome.RIGHT, "model")

    def refit(self) -> None:
        lines, votes = sum(map(len, self.log.values())), len(self.asked)
        if self.source is not None and (
            self.source.state == "dropped"
            or not (
                lines >= max(LEAST, AGAIN * self.fitted[0]) or votes >= max(LEAST, AGAIN * self.fitted[1])
            )
        ):
            return
        rows = [each for own in self.log.values() for each in own]
        known = AssessorVotes.of(
            topics=[each.topic for each in rows],
            first=[each.left for each in rows],
            second=[str(each.right) for each in rows],
            shares=[each.effect.left for each in rows],
            assessors=[each.assessor for each in rows],
        )
        before = self.source
        self.source = decide(source_worths(known, {"model"})["model"], PRICES, before)
        self.fitted = lines, votes
        if before is None or before.counting != self.source.counting:
            self.strategies = {topic: self.strategy(topic) for topic in TOPICS}

    def next_for_model(self) -> tuple[str, Proposal] | None:
        assert self.source is not None
        if self.source.state == "tried":
            judged = {
                (each.topic, each.pair)
                for own in self.log.values()
                for each in own
                if each.assessor != "model"
            }
            order = sorted(judged, key=lambda each: self.dice.roll("\x1f".join(("trial", each[0], *each[1]))))
            size = JudgedPairs(tuple(order), self.human, 0).trial_size(PRICES)
            fresh = [each for each in order if each not in self.asked] if len(self.asked) < size else []
            return (fresh[0][0], Proposal(fresh[0][1])) if fresh else None
        for topic in TOPICS if self.source.state == "asked" else ():
            share = self.source.share_in(topic)
            used = share * sum(each.assessor == "model" for each in self.log[topic])
            if topic in self.source.closed or used + share > MODELS_SHARE * BUDGET:
                continue
            for proposal in self.strategies[topic].ask(60):
                kept = self.dice.roll("\x1f".join(("kept", topic, *proposal.pair))) < KEPT
                if not kept and (topic, proposal.pair) not in self.asked:
                    return topic, proposal
        return None

    def run(self) -> "Trial":
        while self.ask_people():
            while self.right is not None:
                self.refit()
                following = self.next_for_model()
                if following is None:
                    break
                self.ask_model(*following)
        return self

    @property
    def found(self) -> float:
        best = [self.strategies[topic].best_one == self.order[topic][0] for topic in TOPICS]
        return sum(best) / len(best)


@pytest.mark.statistics
def test_a_good_model_saves_judgments_of_people_and_a_coin_costs_none() -> None:
    trials = {right: [Trial(seed, right).run() for seed in range(12)] for right in (None, 0.9, 0.5)}
    human = {right: sum(each.human for each in own) for right, own in trials.items()}
    assert human[None] == 12 * len(TOPICS) * BUDGET
    assert human[0.9] < 0.6 * human[None]
    assert human[0.5] > 0.97 * human[None]
    found = {right: np.array([each.found for each in own]) for right, own in trials.items()}
    for right in (0.9, 0.5):
        lead = found[right] - found[None]
        assert lead.mean() > -2 * lead.std(ddof=1) / np.sqrt(len(lead))
    assert all(each.source is not None and each.source.state == "asked" for each in trials[0.9])
    coins = [each.source.state for each in trials[0.5] if each.source is not None]
    # One standard error lets a coin pass now and then, until more votes tell.
    assert coins.count("asked") <= 1
    assert coins.count("dropped") >= 4
