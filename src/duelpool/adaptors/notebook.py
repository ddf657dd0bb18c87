"""Judging pairs in a notebook's cell: a widget that shows two texts, and tells the strategy which is better."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from duelpool.errors import BadParameter, MissingExtra
from duelpool.records import Judgment, Outcome, Proposal
from duelpool.seeds import rng_for
from duelpool.strategies import Strategy

OUTCOMES = {"left": Outcome.LEFT, "right": Outcome.RIGHT, "tie": Outcome.TIE}
_HERE = Path(__file__).parent


class PairSession:
    """The pairs that a strategy asks, one at a time: what is shown, and what was answered."""

    def __init__(
        self, strategy: Strategy, texts: Mapping[str, str], question: str, topic: str, seed: int
    ) -> None:
        self.strategy = strategy
        self.texts = texts
        self.question = question
        self.topic = topic
        self.seed = seed
        self.judgments: list[Judgment] = []
        self._asked: tuple[Proposal, str, str] | None = None
        self._next()

    def _next(self) -> None:
        proposals = [] if self.strategy.done else self.strategy.ask(1)
        if not proposals:
            self._asked = None
            return
        left, right = proposals[0].pair
        if missing := [item for item in (left, right) if item not in self.texts]:
            raise BadParameter(f"The item '{missing[0]}' has no text.", remedy="Give a text for every item.")
        if rng_for(self.seed, self.topic, "side", len(self.judgments)).random() < 0.5:
            left, right = right, left
        self._asked = proposals[0], left, right

    @property
    def shown(self) -> dict[str, Any]:
        """What the cell shows now; `number` counts the pairs, so that an answer counts once."""
        number = len(self.judgments)
        if self._asked is None:
            return {
                "question": self.question,
                "left": "",
                "right": "",
                "number": number,
                "judged": number,
                "done": True,
            }
        _, left, right = self._asked
        texts = {"left": self.texts[left], "right": self.texts[right]}
        return {"question": self.question, **texts, "number": number, "judged": number, "done": False}

    def answer(self, number: object, outcome: object) -> bool:
        """Take an answer to the pair of this number; False where it is to another pair, such as a second click."""
        if self._asked is None or number != len(self.judgments) or outcome not in OUTCOMES:
            return False
        proposal, left, right = self._asked
        judgment = Judgment(
            self.topic, left, right, OUTCOMES[str(outcome)], phase=proposal.phase, proposal=proposal.proposal
        )
        self.strategy.tell(judgment)
        self.judgments.append(judgment)
        self._next()
        return True


def judge_pairs(
    strategy: Strategy,
    texts: Mapping[str, str],
    *,
    question: str = "",
    topic: str = "notebook",
    seed: int = 1,
) -> Any:
    """Return a widget that judges a strategy's pairs in a cell; `judgments` and `strategy` have the results."""
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise MissingExtra("anywidget", "notebook") from None
    session = PairSession(strategy, texts, question, topic, seed)
    base: Any = anywidget.AnyWidget

    class PairWidget(base):  # type: ignore[misc]
        """Two texts and the question which is better."""

        _esm = (_HERE / "judge_pairs.js").read_text(encoding="utf-8")
        _css = (_HERE / "judge_pairs.css").read_text(encoding="utf-8")
        pair = traitlets.Dict().tag(sync=True)
        answer = traitlets.Dict().tag(sync=True)

        @property
        def strategy(self) -> Strategy:
            """The strategy, with all answers so far."""
            return session.strategy

        @property
        def judgments(self) -> tuple[Judgment, ...]:
            """The answers so far."""
            return tuple(session.judgments)

    widget = PairWidget(pair=session.shown)

    def answered(change: Any) -> None:
        if session.answer(change["new"].get("number"), change["new"].get("outcome")):
            widget.pair = session.shown

    widget.observe(answered, "answer")
    return widget
