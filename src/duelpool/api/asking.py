"""`dp.strategy`: ask which pair to judge next, and tell who won, in a loop of one's own."""

from collections.abc import Collection, Sequence
from typing import Any

from duelpool.api.pools import checked_items
from duelpool.errors import BadParameter, UnknownName
from duelpool.records import UNNAMED, Judgment, Levels, Outcome, Pair, PhaseClosed, Proposal, pair_of
from duelpool.simulation import StrategyMaker
from duelpool.strategies import Strategy, make_strategy


class AskTell:
    """A strategy for one pool: `ask` for pairs, `tell` who won, until it is `done`; `result` is known at any time."""

    def __init__(self, strategy: Strategy, items: Sequence[str], topic: str, seed: int) -> None:
        self.strategy = strategy
        self.items = tuple(items)
        self.topic = topic
        self.seed = seed
        self.judgments: list[Judgment] = []
        self._asked: dict[Pair, Proposal] = {}

    def __repr__(self) -> str:
        state = "done" if self.done else "asks"
        name = getattr(self.strategy, "name", type(self.strategy).__name__)
        return f"AskTell({name}, {len(self.items)} items, {len(self.judgments)} judgments, seed {self.seed}, {state})"

    def ask(self, n: int = 1, pending: Collection[Proposal] = ()) -> list[Proposal]:
        """Return up to n pairs to judge now, given those that are being judged; empty: wait, or done."""
        proposals = self.strategy.ask(n, pending)
        self._asked.update({each.pair: each for each in proposals})
        return proposals

    def tell(
        self,
        pair: Proposal | Judgment | Pair | Sequence[str],
        winner: str | None = None,
        *,
        outcome: Outcome | str | None = None,
    ) -> Judgment:
        """Take in who won a pair; without a winner it is a tie. Return the judgment, as a log would have it.

        `pair` is a proposal, two items, or a judgment such as `proposal.wins("d1")`.
        """
        judgment = self._judgment(pair, winner, outcome)
        for item in (judgment.left, judgment.right):
            if item is not None and item not in self.items:
                raise UnknownName("item in this pool", item, self.items)
        if not judgment.phase and judgment.pair not in self._asked and not self.strategy.pools_judgments:
            raise BadParameter(
                f"{judgment.left} and {judgment.right} weren't asked, and this strategy counts only its own pairs.",
                remedy="Tell pairs that `ask` returned.",
            )
        self.strategy.tell(judgment)
        self.judgments.append(judgment)
        return judgment

    def _judgment(
        self,
        pair: Proposal | Judgment | Pair | Sequence[str],
        winner: str | None,
        outcome: Outcome | str | None,
    ) -> Judgment:
        if isinstance(pair, Judgment):
            if winner is not None or outcome is not None:
                raise BadParameter("A judgment says itself who won.", remedy="Leave out winner and outcome.")
            return pair
        if isinstance(pair, str) or not (isinstance(pair, Proposal) or len(pair) == 2):
            raise BadParameter(
                f"{pair!r} isn't a pair.", remedy='Give a proposal, or two items: ("d1", "d2").'
            )
        if not isinstance(pair, Proposal):
            for item in pair:
                if item not in self.items:
                    raise UnknownName("item in this pool", str(item), self.items)
            asked = pair_of(*pair)
            pair = self._asked.get(asked, Proposal(asked))
        if outcome is not None:
            if winner is not None:
                raise BadParameter("An outcome says who won.", remedy="Give a winner or an outcome.")
            return pair.judged(checked_outcome(outcome), topic=self.topic)
        return pair.ties(topic=self.topic) if winner is None else pair.wins(winner, topic=self.topic)

    @property
    def done(self) -> bool:
        """Whether nothing more needs to be asked."""
        return self.strategy.done

    @property
    def closed(self) -> tuple[PhaseClosed, ...]:
        """The phases that ended so far."""
        return self.strategy.closed

    def result(self) -> Levels:
        """Return the best that is known now."""
        return self.strategy.result()


def checked_outcome(outcome: Outcome | str) -> Outcome:
    """Return an outcome by its name."""
    names = [each.value for each in Outcome]
    if outcome not in names:
        raise UnknownName("outcome", str(outcome), names)
    return Outcome(outcome)


def strategy(
    name: str | StrategyMaker,
    items: Sequence[str],
    *,
    seed: int = 1,
    topic: str = UNNAMED,
    cap: int | None = 6,
    **parameters: Any,
) -> AskTell:
    """Return a strategy for one pool: by name with parameters, such as "topk:k=3", or a class of your own.

    >>> import duelpool as dp
    >>> choose = dp.strategy("knockout", ["d1", "d2", "d3"])
    >>> while not choose.done:
    ...     for proposal in choose.ask():
    ...         judgment = choose.tell(proposal, winner=min(proposal.pair))
    >>> choose.result().best
    ('d1',)
    """
    listed = checked_items(items)
    if isinstance(name, str):
        made = make_strategy(name, listed, seed=seed, topic=topic, cap=cap, **parameters)
    else:
        made = name(listed, seed=seed, topic=topic, cap=cap, **parameters)
    return AskTell(made, listed, topic, seed)
