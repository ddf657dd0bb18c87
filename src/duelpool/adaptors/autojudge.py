"""TREC AutoJudge: a judge whose leaderboard comes from preferences between answers, asked by a Duelpool strategy.

    judge = PreferenceJudge("allpairs")
    leaderboard = judge.judge(rag_responses, rag_topics, llm_config)

The package `autojudge-base` reads reports and topics, and writes the leaderboard; it wants NLTK's data (`punkt`,
`stopwords`) when it is imported.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

from duelpool.errors import BadParameter, DuelpoolError, MissingExtra
from duelpool.judges.live import Sheet
from duelpool.judges.llm import PROMPTS, Endpoint, parse_address, parse_verdict
from duelpool.judges.llm.replies import Malformed, preference_form
from duelpool.net.http import NoAnswer, NotSent
from duelpool.records import Judgment, Levels, Outcome, Passage, Topic
from duelpool.seeds import rng_for
from duelpool.strategies import make_strategy

Prefers: TypeAlias = Callable[[Topic, Passage, Passage], Outcome]
"""Says which of two answers is better: left, right, a tie, or that it can't judge."""

MEASURE = "WIN_SHARE"
_OUTCOMES = {"left": Outcome.LEFT, "right": Outcome.RIGHT, "tie": Outcome.TIE}


class AutoJudgeError(DuelpoolError):
    """The model didn't answer, or answered what can't be read."""


class PreferenceJudge:
    """Ranks the answers to each topic by preferences; a run's score is the share of other runs that it is above."""

    def __init__(self, strategy: str = "allpairs", prefers: Prefers | None = None, seed: int = 1) -> None:
        self.strategy = strategy
        self.prefers = prefers
        self.seed = seed
        self.asked = 0
        make_strategy(strategy, ("a", "b"), seed=seed)  # refuses an unknown one at once

    def judge(
        self, rag_responses: Iterable[Any], rag_topics: Sequence[Any], llm_config: Any, **_: Any
    ) -> Any:
        """Return a leaderboard with a value for every run and topic, and means."""
        try:
            from autojudge_base import LeaderboardBuilder, LeaderboardSpec, MeasureSpec
        except ImportError:
            raise MissingExtra("autojudge-base", "autojudge") from None
        prefers = self.prefers or by_model(llm_config)
        about = "The share of other runs that the answer is above, ties as halves."
        builder = LeaderboardBuilder(LeaderboardSpec(measures=(MeasureSpec(MEASURE, description=about),)))
        answers: dict[str, dict[str, str]] = {}
        for report in rag_responses:
            topic = str(
                report.metadata.topic_id or report.metadata.request_id or report.metadata.narrative_id
            )
            answers.setdefault(topic, {})[report.metadata.run_id] = report.get_report_text()
        for request in rag_topics:
            given = answers.get(str(request.request_id), {})
            topic_text = "\n".join(
                filter(None, (request.title, request.problem_statement, request.background))
            )
            topic_record = Topic(str(request.request_id), topic_text)
            for run, share in win_shares(self.rank(topic_record, given, prefers)).items():
                builder.add(run_id=run, topic_id=topic_record.id, values={MEASURE: share})
        return builder.build(expected_topic_ids=[str(request.request_id) for request in rag_topics])

    def create_qrels(self, *_: Any, **__: Any) -> None:
        """Create no qrels: a preference judge needs none."""

    def create_nuggets(self, *_: Any, **__: Any) -> None:
        """Create no nuggets."""

    def rank(self, topic: Topic, answers: dict[str, str], prefers: Prefers) -> Levels:
        """Return the runs in levels by the preferences between their answers."""
        strategy = make_strategy(self.strategy, tuple(sorted(answers)), seed=self.seed, topic=topic.id)
        while not strategy.done:
            proposals = strategy.ask(1)
            if not proposals:
                break
            left, right = proposals[0].pair
            if rng_for(self.seed, topic.id, "side", self.asked).random() < 0.5:
                left, right = right, left
            self.asked += 1
            outcome = prefers(topic, Passage(left, answers[left]), Passage(right, answers[right]))
            outcome = (
                Outcome.TIE if outcome is Outcome.CANNOT_JUDGE else outcome
            )  # or it would be asked for ever
            strategy.tell(
                Judgment(
                    topic.id, left, right, outcome, phase=proposals[0].phase, proposal=proposals[0].proposal
                )
            )
        return strategy.result()


def win_shares(levels: Levels) -> dict[str, float]:
    """Return the share of other items that each item is above; items of one level are half above each other."""
    total = sum(map(len, levels.levels))
    shares, above = {}, 0
    for level in levels.levels:
        below = total - above - len(level)
        for item in level:
            shares[item] = (below + (len(level) - 1) / 2) / (total - 1) if total > 1 else 1.0
        above += len(level)
    return shares


def by_model(config: Any, allow: Sequence[str] = ()) -> Prefers:
    """Return preferences of the model that a configuration names (`base_url`, `model`, `api_key`)."""
    url = getattr(config, "base_url", None)
    if not url:
        raise BadParameter(
            "The model's address is missing.",
            remedy="Set OPENAI_BASE_URL, or pass prefers= with a judge of your own.",
        )
    hosts = allow or getattr(config, "raw", {}).get("allow_hosts", ())
    endpoint = Endpoint(parse_address(url, hosts), getattr(config, "api_key", None) or "")
    prompt, form = PROMPTS["answers"], preference_form(True)

    def prefers(topic: Topic, left: Passage, right: Passage) -> Outcome:
        sheet = Sheet("", topic, left, right, frozenset(Outcome))
        secret = blake2b(f"{topic.id}{left.text}{right.text}".encode(), digest_size=16).hexdigest()
        body = {"model": config.model, "messages": prompt.messages(sheet, form, secret)}
        try:
            reply = endpoint.post(json.dumps(body, ensure_ascii=False).encode())
            if reply.status != 200:
                raise AutoJudgeError(f"The model's server answered with status {reply.status}.")
            verdict = parse_verdict(reply.body, form)
        except (NotSent, NoAnswer, Malformed) as error:
            raise AutoJudgeError(
                f"The model gave no readable answer ({error}).", remedy="Try again."
            ) from None
        return _OUTCOMES.get(verdict.outcome, Outcome.CANNOT_JUDGE)

    return prefers
