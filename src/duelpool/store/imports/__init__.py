"""Imported judgments: they take slots as judgments made here do, so that the cap counts them.

Each gets an answered question of its own. A file may hold more judgments of a pair than the cap allows: all of
them count, and the pair is not asked again.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from duelpool.records import Judgment
from duelpool.store import log, schema
from duelpool.store.imports.slots import LINE, UNNAMED, Held, Taken, create_questions, find_questions, held_by
from duelpool.store.statements import BulkInsert
from duelpool.store.transactions import Writing

__all__ = ["LINE", "UNNAMED", "Taken", "add_judgments", "append_lines", "find_questions"]

_INSERT_LINES = BulkInsert(schema.log, ("campaign", "topic", "seq", "time", "question", "attempt", *LINE))


def add_judgments(tx: Writing, judgments: Sequence[Judgment]) -> list[int]:
    """Append imported judgments to the log and take their slots; return their seqs."""
    by_topic: dict[str, dict[int, Held]] = {}
    for at, judgment in enumerate(judgments):
        line = (log.JUDGMENT, *log.columns_of(judgment).values(), None, None, 1, None, None, None)
        if (held := held_by(line)) is not None:
            by_topic.setdefault(judgment.topic, {})[at] = held
    questions: dict[int, str] = {}
    for topic, own in by_topic.items():
        questions |= zip(own, create_questions(tx, topic, list(own.values())), strict=True)
    return [
        log.append_judgment(
            tx,
            replace(judgment, question=questions.get(at, "")),
            at_once=True,
            attempt=1 if at in questions else None,
        )
        for at, judgment in enumerate(judgments)
    ]


def append_lines(
    tx: Writing,
    topic: str,
    after: int,
    lines: Sequence[Sequence[Any]],
    *,
    retracted: Collection[int] = (),
    given: Sequence[str] = (),
    taken: Taken | None = None,
) -> None:
    """Append lines, each as its columns `LINE`, to a topic's log, and create the questions that hold their slots.

    The caller has moved the topic's next seq from `after` + 1 to behind these lines. The judgments at the places
    `retracted` take no slot. `given` has the id of each line's question, or "" for any; `taken` is what an earlier call
    in the same import knew of the slots.
    """
    questions: list[str | None] = [None] * len(lines)
    holding = [(at, held) for at, line in enumerate(lines) if (held := held_by(line)) is not None]
    ids = create_questions(
        tx,
        topic,
        [held for _, held in holding],
        retracted={place for place, (at, _) in enumerate(holding) if at in retracted} if retracted else (),
        given=[given[at] for at, _ in holding] if given else (),
        taken=taken,
    )
    for (at, _), question in zip(holding, ids, strict=True):
        questions[at] = question
    campaign, now = tx.campaign, tx.now
    _INSERT_LINES.run(
        tx.connection,
        (
            (campaign, topic, seq, now, question, None if question is None else 1, *line)
            for seq, (question, line) in enumerate(zip(questions, lines, strict=True), after + 1)
        ),
    )
