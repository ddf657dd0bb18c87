"""The crowd procedure for the best item: prune by random pairings, then judge all pairs of the few left."""

from collections.abc import Sequence
from typing import ClassVar

from duelpool.strategies.elimination import Elimination
from duelpool.strategies.parameters import at_least


class PrefBest(Elimination):
    """Finds the best item with a crowd: each meets `n` others, winners of half go on, `m` or fewer meet all.

    With `final_phases` above 1 every pair of the final is judged by as many people, and all judgments count.
    """

    name: ClassVar[str] = "prefbest"
    goal: ClassVar[str] = "best"
    first_questions_vary: ClassVar[bool] = True

    def __init__(
        self,
        items: Sequence[str],
        *,
        seed: int,
        topic: str = "",
        cap: int | None = None,
        n: int = 7,
        m: int = 9,
        final_phases: int = 1,
        bad_votes: int = 1,
    ) -> None:
        at_least(n=(n, 1), m=(m, 2), final_phases=(final_phases, 1))
        super().__init__(
            items,
            seed=seed,
            topic=topic,
            cap=cap,
            degree=n,
            final_size=m,
            final_phases=final_phases,
            bad_votes=bad_votes,
        )
