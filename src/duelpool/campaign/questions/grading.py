"""The grading stage: which grades count, when it is done, and how grades thin a pool."""

from collections import Counter
from statistics import fmean

from sqlalchemy import update

from duelpool.campaign.log.replay import counted, counted_lines
from duelpool.campaign.settings import Settings
from duelpool.store import Reading, Writing, holdings, log, schema


def grades_of(tx: Reading, topic: str) -> dict[str, list[float]]:
    """Return the grades that count, by item."""
    lines = list(log.read_lines(tx, topic))
    counts = counted_lines(lines)
    grades: dict[str, list[float]] = {}
    for line in lines:
        judgment = line.judgment
        if judgment is not None and judgment.grade is not None and counted(line, counts):
            grades.setdefault(judgment.left, []).append(judgment.grade)
    return grades


def all_graded(tx: Reading, settings: Settings) -> bool:
    """Whether every item has as many grades as it needs."""
    return all(topic_graded(tx, settings, topic) for topic in holdings.topics(tx, state="open"))


def topic_graded(tx: Reading, settings: Settings, topic: str) -> bool:
    """Whether every item of a topic has as many grades as it needs."""
    grades, planned = grades_of(tx, topic), settings.grades_wanted(topic)
    for row in holdings.items(tx, topic):
        wanted = row.twin_of is None and row.state == "in"
        if wanted and len(grades.get(row.id, ())) < (planned[row.id] or settings.slots):
            return False
    return True


def thin(tx: Writing, settings: Settings) -> dict[str, int]:
    """Thin the pools: keep items grade by grade, the best first, until `thin` are in; drop those graded 0."""
    sizes: dict[str, int] = {}
    for topic in holdings.topics(tx, state="open"):
        means = {item: fmean(grades) for item, grades in grades_of(tx, topic).items()}
        counts = Counter(mean for mean in means.values() if mean > 0)
        lowest, held = float("inf"), 0
        for grade in sorted(counts, reverse=True):
            if settings.thin is not None and held >= settings.thin:
                break
            lowest, held = grade, held + counts[grade]
        sizes[topic] = 0
        for row in holdings.items(tx, topic):
            if row.twin_of is not None:
                continue
            stays = row.state == "in" and means.get(row.id, 0.0) >= lowest
            columns = schema.item.c
            tx.connection.execute(
                update(schema.item)
                .where(columns.campaign == tx.campaign, columns.topic == topic, columns.id == row.id)
                .values(state="in" if stays else "left", grade=means.get(row.id, row.grade))
            )
            sizes[topic] += stays
        holdings.mark_pool_changed(tx, topic)
    return sizes
