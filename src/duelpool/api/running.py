"""`dp.run`: a strategy asks, a function judges, until the best items are known."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import polars as pl

from duelpool.api.inputs import Data
from duelpool.api.pools import PoolSet, as_pools
from duelpool.errors import BadParameter
from duelpool.evaluation import Evaluation, evaluate
from duelpool.evaluation.systems import SystemBoard, system_board
from duelpool.files import Preferences, Qrels
from duelpool.frames import Tabular, counted, frame_of, html_table
from duelpool.judges import Judge, make_judges
from duelpool.leaderboard import USUAL_MEASURE
from duelpool.records import EFFECTS, Judgment, Levels, Outcome, Topic
from duelpool.simulation import Match, StrategyMaker, judgments_allowed, made_strategy

JudgeFunction: TypeAlias = Callable[[str, str, str], Any]
"""Called with topic, left and right; returns the item that is better, None for a tie, or an outcome."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JudgedPools(Tabular):
    """Pools that were judged: every judgment, and the levels of each topic.

    `strategy`, `seed` and `cap` are what it takes to run it again.
    """

    pools: PoolSet
    strategy: str
    seed: int
    cap: int | None
    levels: Mapping[str, Levels]
    judgments: tuple[Judgment, ...]
    unfinished: tuple[str, ...] = ()  # topics whose budget was spent before the strategy was done

    def __repr__(self) -> str:
        topics, judgments = counted(len(self.levels), "topic"), counted(len(self.judgments), "judgment")
        open_ones = f", {len(self.unfinished)} unfinished" if self.unfinished else ""
        return f"JudgedPools({topics}, {judgments} by {self.strategy}, seed {self.seed}{open_ones})"

    @property
    def best(self) -> dict[str, tuple[str, ...]]:
        """The best items of each topic."""
        return {topic: levels.best for topic, levels in self.levels.items()}

    def to_polars(self) -> pl.DataFrame:
        """Return a row an item: topic, level (1 is the best), item, and how often it won and was judged."""
        won: dict[tuple[str, str], float] = {}
        judged: dict[tuple[str, str], int] = {}
        for each in self.judgments:
            for item, share in ((each.left, each.effect.left), (str(each.right), each.effect.right)):
                won[each.topic, item] = won.get((each.topic, item), 0.0) + share
                judged[each.topic, item] = judged.get((each.topic, item), 0) + 1
        rows = [
            (topic, at, item, won.get((topic, item), 0.0), judged.get((topic, item), 0))
            for topic, levels in self.levels.items()
            for at, level in enumerate(levels.levels, 1)
            for item in level
        ]
        kinds = {
            "topic": "String",
            "level": "Int64",
            "item": "String",
            "wins": "Float64",
            "judgments": "Int64",
        }
        return frame_of(rows, kinds)

    def _repr_html_(self) -> str:
        counts = Counter(each.topic for each in self.judgments)
        rows = [
            (topic, ", ".join(levels.best), sum(map(len, levels.levels)), counts[topic])
            for topic, levels in self.levels.items()
        ]
        kinds = {"topic": "String", "best": "String", "items": "Int64", "judgments": "Int64"}
        return html_table(frame_of(rows, kinds), repr(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the levels of each topic, the best first."""
        return {topic: [list(level) for level in levels.levels] for topic, levels in self.levels.items()}

    def preferences(self) -> Preferences:
        """Return the judgments as preferences, to write or to evaluate with."""
        return Preferences.from_judgments(self.judgments)

    def qrels(self, k: int | None = None) -> Qrels:
        """Return grades by level, the best level highest; only the top k with `k`. Duplicates get the same grade."""
        grades: dict[str, dict[str, float]] = {}
        for topic, levels in self.levels.items():
            of_topic = {item: float(grade) for item, grade in levels.as_grades(k).items()}
            pool = self.pools[topic]
            for item, others in pool.twins.items():
                if item in of_topic:
                    of_topic |= dict.fromkeys(others, of_topic[item])
            grades[topic] = of_topic
        return Qrels.from_grades(grades)

    def leaderboard(self, measures: Any = USUAL_MEASURE, **options: Any) -> Evaluation:
        """Return the runs by a measure, with intervals; options are those of `dp.evaluate`."""
        if self.pools.answers is not None:
            raise BadParameter(
                "These pools hold answers of systems, not runs.",
                remedy="Use systems(): they are ranked by votes.",
            )
        if not self.pools.runs:
            raise BadParameter(
                "These pools come from no runs.", remedy="Pool runs or answers, or use dp.evaluate."
            )
        options.setdefault("interval", "t" if len(self.levels) > 1 else None)
        return evaluate([self.qrels(), self.preferences()], list(self.pools.runs), measures, **options)

    def systems(self) -> SystemBoard:
        """Return the systems that gave the answers, ranked by the votes between them."""
        from duelpool.campaign.views.system_votes import votes_on

        answers = self.pools.answers
        if answers is None:
            raise BadParameter(
                "These pools hold no answers of systems.",
                remedy="Use leaderboard() for runs, or pool answers with dp.pool(answers=...).",
            )
        given: dict[str, dict[str, str]] = {}
        for row in answers.rows:
            given.setdefault(row.question, {})[row.system] = row.item
        votes = []
        for topic, pool in self.pools.items():
            judged_for = {item: item for item in pool.items}
            judged_for |= {other: item for item, others in pool.twins.items() for other in others}
            own = [each for each in self.judgments if each.topic == topic]
            votes += votes_on(
                answers.questions.get(topic, Topic(topic, topic)), given[topic], judged_for, own
            )
        return system_board(votes, systems=answers.systems)


class _FunctionJudge:
    """A function as a judge: what it returns is checked and made an outcome."""

    def __init__(self, function: JudgeFunction) -> None:
        self.function = function

    def answer(self, topic: str, left: str, right: str, nth: int) -> Outcome:
        """Return what the function says of a pair."""
        said = self.function(topic, left, right)
        if said in (left, right):
            return Outcome.LEFT if said == left else Outcome.RIGHT
        if said is None:
            return Outcome.TIE
        if (
            isinstance(said, str)
            and said in EFFECTS
            and EFFECTS[Outcome(said)].usable
            and said != Outcome.GRADE
        ):
            return Outcome(said)
        raise BadParameter(
            f"The judge answered {said!r} to the pair {left}, {right}.",
            remedy="Return one of the two items, None for a tie, or an outcome such as 'both-bad'.",
        )


class _Judging(Match):
    """A match that keeps its judgments."""

    def __init__(self, *about: Any, **options: Any) -> None:
        super().__init__(*about, **options)
        self.judgments: list[Judgment] = []

    def after(self, judgment: Judgment) -> None:
        """Keep the judgment."""
        self.judgments.append(judgment)


def run(
    pool: Data,
    strategy: str | StrategyMaker = "swissfinals",
    *,
    judge: JudgeFunction | Judge | str,
    seed: int = 1,
    cap: int | None = 6,
    budget: int | str | None = None,
    progress: Callable[[str], None] | None = None,
) -> JudgedPools:
    """Let a strategy ask and a function judge until the best items of every topic are known.

    `judge(topic, left, right)` returns the item that is better, None for a tie, or an outcome by name; it may also be
    a simulated judge such as "bt:sd=1". `budget` bounds the judgments of a topic: a number, or "7K" for seven per
    item. `progress` is called with each topic that is done.

    >>> import duelpool as dp
    >>> result = dp.run({"q1": ["d1", "d2", "d3"]}, "knockout", judge=lambda topic, a, b: min(a, b))
    >>> result.best
    {'q1': ('d1',)}
    """
    pools = as_pools(pool)
    if not (isinstance(judge, str) or callable(judge) or hasattr(judge, "answer")):
        raise BadParameter(
            f"A judge is a function, not a {type(judge).__name__}.",
            remedy="Give judge=lambda topic, a, b: ..., which returns the better one.",
        )
    model = make_judges(judge) if isinstance(judge, str) else None
    levels: dict[str, Levels] = {}
    judgments: list[Judgment] = []
    unfinished: list[str] = []
    for topic, each in pools.items():
        if model is not None:
            answers: Judge = model.judge(topic, each.items, seed)
        else:
            answers = judge if hasattr(judge, "answer") else _FunctionJudge(judge)  # type: ignore[arg-type]
        allowed = judgments_allowed(budget, max(1, len(each)))
        made = made_strategy(strategy, each.items, seed=seed, topic=topic, cap=cap, budget=allowed)
        match = _Judging(made, answers, topic, seed, budget=allowed)
        while match.play_round():
            match.rounds += 1
        levels[topic] = made.result()
        judgments += match.judgments
        if not made.done:
            unfinished.append(topic)
        if progress is not None:
            progress(topic)
    name = strategy if isinstance(strategy, str) else getattr(strategy, "name", repr(strategy))
    return JudgedPools(pools, name, seed, cap, levels, tuple(judgments), tuple(unfinished))
