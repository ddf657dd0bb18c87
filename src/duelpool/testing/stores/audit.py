"""Recount a campaign: its questions against its log."""

from collections import Counter

from sqlalchemy import select

from duelpool.records import Judgment
from duelpool.store import Reading, Store, leases, log, schema


def audit(store: Store, campaign: str, cap: int) -> list[str]:
    """Recount a campaign from its rows; return the contradictions as sentences."""
    return store.of(campaign).read(lambda tx: _audit(tx, cap))


def _audit(tx: Reading, cap: int) -> list[str]:  # noqa: PLR0915
    wrong: list[str] = []
    pairs: Counter[tuple[str, ...]] = Counter()
    people: Counter[tuple[str, ...]] = Counter()
    states: dict[str, tuple[str, int]] = {}
    for row in tx.connection.execute(
        select(schema.question).where(schema.question.c.campaign == tx.campaign)
    ):
        states[row.id] = row.state, row.attempt
        if (row.live is not None) != (row.state in {leases.LEASED, leases.ANSWERED}):
            wrong.append(f"question {row.id} is {row.state}, and live is {row.live}")
        if row.live is not None:
            pair = (row.topic, row.criterion, row.a, row.b)
            pairs[pair] += row.test_pair is None and row.source == leases.ASKED
            people[*pair, row.assessor, str(row.occasion)] += 1
            if (row.slot is None) != (row.test_pair is not None or row.source == leases.REPEATED):
                wrong.append(f"question {row.id} is {row.source}, and its slot is {row.slot}")
    wrong += [f"the pair {pair} has {count} live slots" for pair, count in pairs.items() if count > cap]
    wrong += [f"{who[-2]} holds {who[:-1]} {count} times" for who, count in people.items() if count > 1]
    answered = 0
    topics = tx.connection.execute(
        select(schema.topic.c.id, schema.topic.c.next_seq).where(schema.topic.c.campaign == tx.campaign)
    )
    for topic, next_seq in topics.all():
        counted: dict[int, Judgment] = {}
        retracted: dict[int, Judgment] = {}
        aside: dict[int, Judgment] = {}
        closed: list[str] = []
        expected = 1
        for line in log.read_lines(tx, topic):
            if line.seq != expected:
                wrong.append(f"topic {topic}: line {line.seq} is at the place of line {expected}")
            expected = line.seq + 1
            if line.judgment is not None:
                counted[line.seq] = line.judgment
            elif line.event == log.RETRACTION and line.refers_to in counted:
                retracted[line.refers_to] = counted.pop(line.refers_to)
            elif line.event == log.RESTORATION and line.refers_to in retracted:
                counted[line.refers_to] = retracted.pop(line.refers_to)
            elif line.event == log.PHASE_CLOSED:
                closed.append(line.phase)
            elif line.event == log.REWIND and line.phase not in closed:
                wrong.append(
                    f"topic {topic}: line {line.seq} rewinds the phase {line.phase}, which isn't closed"
                )
            elif line.event == log.REWIND:
                # It sets judgments of later phases aside; older releases kept their slots.
                del closed[closed.index(line.phase) :]
                kept = {*closed, line.phase, ""}
                aside |= {seq: each for seq, each in (counted | retracted).items() if each.phase not in kept}
                counted, retracted = (
                    {seq: each for seq, each in of.items() if each.phase in kept}
                    for of in (counted, retracted)
                )
            elif line.event in {log.RETRACTION, log.RESTORATION} and line.refers_to not in aside:
                wrong.append(f"topic {topic}: the {line.event} of line {line.refers_to} changes nothing")
        if next_seq != expected:
            wrong.append(f"topic {topic}: the next line is {expected}, and the topic says {next_seq}")
        usable = [each for each in counted.values() if each.question and each.effect.usable]
        answered += len(usable)
        answered += sum(states.get(each.question, ("",))[0] == leases.ANSWERED for each in aside.values())
        for each in usable:
            state = states.get(each.question, ("unknown", 0))[0]
            if state != leases.ANSWERED:
                wrong.append(f"line {each.seq} of {topic} counts, and its question is {state}")
        if len({each.question for each in usable}) != len(usable):
            wrong.append(f"topic {topic}: a question counts twice")
    answered_questions = sum(state == leases.ANSWERED for state, _ in states.values())
    if answered_questions != answered:
        wrong.append(f"{answered_questions} questions are answered, and {answered} lines of the log say so")
    return wrong
