"""Topics that are held back from people and language models, until their items have texts and they have a question.

What a topic must have is the setting `required`. Judges that go by ids, such as simulated ones, are asked all the same.
"""

from dataclasses import dataclass

from sqlalchemy import and_, bindparam, func, or_, select

from duelpool.campaign.settings import Settings
from duelpool.store import CampaignStore, Reading, schema
from duelpool.store.statements import Statement

EXAMPLES = 3

_TOPICS, _ITEMS, _PASSAGES = schema.topic.c, schema.item.c, schema.passage.c
_SIGN = Statement(
    lambda _: select(func.count(), func.sum(_TOPICS.pool_version)).where(
        _TOPICS.campaign == bindparam("campaign"), _TOPICS.state == "open"
    )
)


@dataclass(frozen=True, slots=True)
class Incomplete:
    """What one topic lacks: the texts of these items, or a question."""

    items: tuple[str, ...]
    question: bool


@dataclass(frozen=True, slots=True)
class HeldTopics:
    """The topics that are held back, in their order, with what each lacks."""

    topics: dict[str, Incomplete]

    @property
    def items(self) -> int:
        """How many items have no text."""
        return sum(len(each.items) for each in self.topics.values())

    @property
    def questions(self) -> int:
        """How many topics have no question."""
        return sum(each.question for each in self.topics.values())

    def __bool__(self) -> bool:
        return bool(self.topics)

    def __str__(self) -> str:
        """Say which topics wait, and what for; empty where none does."""
        if not self.topics:
            return ""
        listed = list(self.topics)
        first = ", ".join(listed[:EXAMPLES]) + (" and others" if len(listed) > EXAMPLES else "")
        lack = []
        if self.items:
            item = next(each.items[0] for each in self.topics.values() if each.items)
            lack.append(
                f"{self.items:,} {'item has' if self.items == 1 else 'items have'} no text (first: {item})"
            )
        if self.questions:
            count = self.questions
            lack.append(f"{count:,} {'topic has' if count == 1 else 'topics have'} no question")
        noun = "topic is" if len(listed) == 1 else "topics are"
        return f"{len(listed):,} {noun} held back from judging ({first}): {'; '.join(lack)}."


NONE_HELD = HeldTopics({})


def read_held(tx: Reading, settings: Settings) -> HeldTopics:
    """Return the open topics that lack what the settings require."""
    lacking: dict[str, list[str]] = {}
    if "texts" in settings.required:
        empty = and_(func.trim(_PASSAGES.text) == "", _PASSAGES.format != "image")
        query = (
            select(_ITEMS.topic, _ITEMS.position, _ITEMS.id)
            .select_from(
                schema.item.outerjoin(
                    schema.passage, and_(_PASSAGES.campaign == _ITEMS.campaign, _PASSAGES.id == _ITEMS.id)
                )
            )
            .where(
                _ITEMS.campaign == tx.campaign,
                _ITEMS.twin_of.is_(None),
                _ITEMS.state == "in",
                or_(_PASSAGES.id.is_(None), empty),
            )
        )
        for topic, _, item in sorted(map(tuple, tx.connection.execute(query))):
            lacking.setdefault(topic, []).append(item)
    asks = "questions" in settings.required
    if not lacking and not asks:
        return NONE_HELD
    rows = tx.connection.execute(
        select(_TOPICS.position, _TOPICS.id, _TOPICS.text)
        .where(_TOPICS.campaign == tx.campaign, _TOPICS.state == "open")
        .order_by(_TOPICS.position, _TOPICS.id)
    )
    held: dict[str, Incomplete] = {}
    for _, topic, text in rows:
        nameless = asks and not text.strip()
        if topic in lacking or nameless:
            held[topic] = Incomplete(tuple(lacking.get(topic, ())), nameless)
    return HeldTopics(held)


class HeldBack:
    """The topics of a campaign that are held back; they are read again once a pool has changed."""

    def __init__(self, store: CampaignStore, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._last: tuple[object, HeldTopics] | None = None

    def now(self, tx: Reading | None = None) -> HeldTopics:
        """Return the topics that are held back now, as of a transaction where one is given."""
        if not self._settings.required:
            return NONE_HELD
        return self._store.read(self._read) if tx is None else self._read(tx)

    def _read(self, tx: Reading) -> HeldTopics:
        sign = tuple(_SIGN.tuples(tx.connection, {"campaign": tx.campaign})[0])
        if self._last is None or self._last[0] != sign:
            self._last = (sign, read_held(tx, self._settings))
        return self._last[1]
