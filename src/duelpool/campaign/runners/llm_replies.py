"""The replies of models as preferences and grades: a prior for people's judgments, or a budget's predictor.

This reads the stored replies, not the log: a model may judge beforehand without counting in the campaign.
"""

from collections.abc import Iterator

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.runners.llm_judge import combined
from duelpool.errors import UnknownName
from duelpool.records import Judgment, Outcome
from duelpool.store import Reading, llm
from duelpool.store.llm import ModelReply, Order


def _replies(campaign: Campaign, assessor: str | None) -> dict[str, dict[Order, ModelReply]]:
    def work(tx: Reading) -> dict[str, dict[Order, ModelReply]]:
        known = [judge.assessor for judge in llm.judges(tx)]
        if assessor is not None and assessor not in known:
            raise UnknownName("model", assessor, known)
        return {name: llm.replies(tx, name) for name in known if assessor in {None, name}}

    return campaign.read(work)


def model_preferences(campaign: Campaign, assessor: str | None = None) -> list[Judgment]:
    """Return the models' preferences, one judgment per pair; a choice that flips with the sides is a tie."""
    replies = _replies(campaign, assessor)
    return [judgment for name, own in replies.items() for judgment in _judgments(name, own)]


def _judgments(assessor: str, replies: dict[Order, ModelReply]) -> Iterator[Judgment]:
    for order in sorted(replies, key=lambda each: (each.topic, each.criterion, each.left, each.right)):
        again = Order(order.topic, order.criterion, order.right, order.left)
        if not order.right or order.left > order.right or again not in replies:
            continue
        reply = combined(replies[order], replies[again], flips="tie")
        if reply.outcome is not Outcome.CANNOT_JUDGE:
            yield Judgment(
                order.topic,
                order.left,
                order.right,
                Outcome.TIE if reply.outcome is Outcome.FLIP_TIE else reply.outcome,
                assessor=assessor,
                criterion=order.criterion,
                confidence=reply.confidence,
                sides_known=False,
            )


def model_grades(campaign: Campaign, assessor: str | None = None) -> dict[str, dict[str, float]]:
    """Return the models' grades by topic and item; the mean, where several models graded."""
    grades: dict[str, dict[str, list[float]]] = {}
    for replies in _replies(campaign, assessor).values():
        for order, each in replies.items():
            if each.grade is not None:
                grades.setdefault(order.topic, {}).setdefault(order.left, []).append(each.grade)
    return {
        topic: {item: sum(values) / len(values) for item, values in sorted(items.items())}
        for topic, items in sorted(grades.items())
    }
