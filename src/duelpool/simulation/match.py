"""A strategy and a judge: who asks, who answers, and the count of both."""

import math
from collections import Counter

from duelpool.errors import BadParameter
from duelpool.judges import Dice, Judge
from duelpool.records import Judgment, Pair, Proposal
from duelpool.strategies.base import Strategy


class Match:
    """One strategy and one judge: passes questions and answers between them and counts them.

    The sides are drawn at random for each question. `after` is called with each judgment once the strategy has it.
    """

    def __init__(
        self, strategy: Strategy, judge: Judge, topic: str, seed: int, *, budget: int | None = None
    ) -> None:
        self.strategy = strategy
        self.judge = judge
        self.topic = topic
        self.budget = math.inf if budget is None else budget
        self.rounds = 0
        self._answers = 0
        self._judged: Counter[Pair] = Counter()
        self._pending: list[Proposal] = []
        self._dice = Dice(seed, topic, "table")

    def after(self, judgment: Judgment) -> None:
        """Take note of a judgment."""

    @property
    def spent(self) -> int:
        """The comparisons so far; a strategy with steps that need no judgment counts them itself."""
        steps: int = getattr(self.strategy, "steps", self._answers)
        return int(min(steps, self.budget))

    @property
    def same_pair(self) -> int:
        """How often the most judged pair was judged."""
        return max(self._judged.values(), default=0)

    def play_round(self, batch: int | None = None) -> bool:
        """Ask for as many pairs as may be judged at once, and have all of them judged."""
        proposals = self._asked(batch)
        for proposal in proposals:
            self._have_judged(proposal)
        return bool(proposals)

    def play_live(self, outstanding: int) -> bool:
        """Keep `outstanding` pairs under judgment, and have a random one of them answered."""
        self._pending += self._asked(outstanding - len(self._pending))
        if not self._pending:
            return False
        at = int(self._dice.roll(f"returned\x1f{self._answers}") * len(self._pending))
        self._have_judged(self._pending.pop(at))
        return True

    def _asked(self, wanted: int | None) -> list[Proposal]:
        left = self.budget - self.spent - len(self._pending)
        if left < 1 or self.strategy.done:
            return []
        most = left if wanted is None else min(wanted, left)
        proposals = self.strategy.ask(int(min(most, 1_000_000)), tuple(self._pending))
        if not proposals and not self._pending:
            name = type(self.strategy).__name__
            raise BadParameter(
                f"{name} is not done, nothing is pending, and yet it asks for nothing.",
                remedy="Let `ask` return a pair, or let `done` be True.",
            )
        return proposals

    def _have_judged(self, proposal: Proposal) -> None:
        left, right = proposal.pair
        self._judged[proposal.pair] += 1
        nth = self._judged[proposal.pair]
        if self._dice.roll(f"{left}\x1f{right}\x1f{nth}") < 0.5:
            left, right = right, left
        outcome = self.judge.answer(self.topic, left, right, nth)
        judgment = Judgment(
            self.topic,
            left,
            right,
            outcome,
            phase=proposal.phase,
            proposal=proposal.proposal,
            propensity=proposal.propensity,
            seq=self._answers + 1,
        )
        self.strategy.tell(judgment)
        self._answers += 1
        self.after(judgment)
