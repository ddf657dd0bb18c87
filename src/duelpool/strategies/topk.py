"""The crowd procedure for the ordered top k: prune by random pairings, then rank the rest by wins."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from duelpool.errors import BadParameter
from duelpool.strategies.elimination import Elimination
from duelpool.strategies.parameters import at_least

GradeForm = Literal["wins", "ranks"]

WINS_ABOVE = 100.0  # in the form "wins" preferences begin this far above the highest grade
RANK_STEP = 10.0  # in the form "ranks" each rank is worth this much


class TopK(Elimination):
    """Finds and orders the best `k` with a crowd: while more than `F` are left each meets `P` others.

    Items tied at rank k are all kept.
    """

    name: ClassVar[str] = "topk"
    goal: ClassVar[str] = "top-k"
    first_questions_vary: ClassVar[bool] = True

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        k: int = 5,
        P: int = 7,
        F: int = 9,
        bad_votes: int = 1,
    ) -> None:
        at_least(k=(k, 1), P=(P, 1), F=(F, 2))
        if not k < P < F:
            raise BadParameter(
                f"topk needs k < P < F, and these are {k}, {P} and {F}.",
                remedy="Raise P above k, and F above P.",
            )
        self.k = k
        super().__init__(
            items,
            seed=seed,
            topic=topic,
            cap=cap,
            degree=P,
            final_size=F,
            final_phases=1,
            bad_votes=bad_votes,
        )

    def top(self) -> dict[str, float]:
        """Return the wins of the k finalists with the most, and of those tied with the last of them."""
        bad = {item for item, is_bad in zip(self._table.items, self._table.bad, strict=True) if is_bad}
        wins = {item: won for item, won in self.final_scores().items() if item not in bad}
        ranked = sorted(wins, key=lambda item: (-wins[item], item))
        if not ranked:
            return {}
        least = wins[ranked[min(self.k, len(ranked)) - 1]]
        return {item: wins[item] for item in ranked if wins[item] >= least}

    def graded_preferences(self, grades: Mapping[str, float], form: GradeForm = "ranks") -> dict[str, float]:
        """Return a value per graded item: the top k are above all the grades, the others keep theirs.

        In the form "ranks" the best has 10 k, and each item 10 less for every item above it: 50 to 10 for
        k = 5, the way the judgments of TREC CAsT 2019 were released. In the form "wins" an item has 100 plus
        the highest grade plus its wins, as the original program writes them; there an item without a win
        keeps its grade.
        """
        top = self.top()
        values = dict(grades)
        highest = max(grades.values(), default=0.0)
        for item, wins in top.items():
            if form == "ranks":
                values[item] = RANK_STEP * (self.k - sum(other > wins for other in top.values()))
            elif wins > 0:
                values[item] = WINS_ABOVE + highest + wins
        return values
