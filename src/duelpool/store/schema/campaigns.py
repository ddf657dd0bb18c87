"""The tables of campaigns: topics, pools, assessors, questions, the log and the ledger."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    text,
)

metadata = MetaData()

campaign = Table(
    "campaign",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("state", String, nullable=False, server_default="open"),
    Column("settings", Text, nullable=False),  # JSON
    Column("created", Float, nullable=False),
    CheckConstraint("state in ('open', 'paused', 'closed')", name="campaign_state"),
)

topic = Table(
    "topic",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("conversation", Text, nullable=False, server_default="[]"),  # JSON
    Column("tags", Text, nullable=False, server_default="[]"),  # JSON
    Column("snippets", Text, nullable=False, server_default="[]"),  # JSON: context to look at while judging
    Column("weight", Float, nullable=False, server_default="1"),
    Column("strategy", String, nullable=False, server_default=""),  # empty: the campaign's
    Column("state", String, nullable=False, server_default="open"),
    Column("next_seq", Integer, nullable=False, server_default="1"),  # the place of the log's next line
    Column("pool_version", Integer, nullable=False, server_default="0"),  # grows whenever its items change
    Column("reference", Text, nullable=False, server_default=""),  # an answer known to be good
    ForeignKeyConstraint(["campaign"], ["campaign.id"]),
    CheckConstraint("state in ('open', 'left')", name="topic_state"),
)

item = Table(
    "item",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("topic", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("grade", Float),
    Column("twin_of", String),  # the item that is judged for this one
    Column("state", String, nullable=False, server_default="in"),
    Column("prior", Float),  # a score known before judging, such as an LLM's preferences
    ForeignKeyConstraint(["campaign", "topic"], ["topic.campaign", "topic.id"]),
    CheckConstraint("state in ('in', 'left')", name="item_state"),
)

passage = Table(
    "passage",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("text", Text, nullable=False),
    Column("title", Text, nullable=False, server_default=""),
    Column("url", Text, nullable=False, server_default=""),
    Column("format", String, nullable=False, server_default="text"),
    Column("sources", Text, nullable=False, server_default="[]"),  # JSON: what an answer rests on
    ForeignKeyConstraint(["campaign"], ["campaign.id"]),
    CheckConstraint("format in ('text', 'markdown', 'html', 'image')", name="passage_format"),
)

run = Table(  # the runs of the systems, for the leaderboard
    "run",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("rows", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),  # compressed, see files.pack_run
    Column("added", Float, nullable=False),
    ForeignKeyConstraint(["campaign"], ["campaign.id"]),
)

answer = Table(  # which item each system gave to a question, where systems compete
    "answer",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("topic", String, primary_key=True),
    Column("system", String, primary_key=True),
    Column("item", String, nullable=False),
    ForeignKeyConstraint(["campaign", "topic"], ["topic.campaign", "topic.id"]),
)

campaign_event = Table(  # what changes decisions of the whole campaign: append-only and gapless, like the log
    "campaign_event",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("event", String, nullable=False),
    Column("data", Text, nullable=False),  # JSON
    Column("time", Float, nullable=False),
    ForeignKeyConstraint(["campaign"], ["campaign.id"]),
    CheckConstraint("event in ('weights', 'models')", name="campaign_event_kind"),
)

test_pair = Table(
    "test_pair",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("topic", String, nullable=False),
    Column("better", String, nullable=False),
    Column("worse", String, nullable=False),
    ForeignKeyConstraint(["campaign", "topic"], ["topic.campaign", "topic.id"]),
)

assessor = Table(
    "assessor",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("id", String, primary_key=True),  # a pseudonym
    Column("kind", String, nullable=False),
    Column("state", String, nullable=False, server_default="in"),
    Column("created", Float, nullable=False),
    ForeignKeyConstraint(["campaign"], ["campaign.id"]),
    CheckConstraint("kind in ('crowd', 'dedicated', 'program', 'llm', 'imported')", name="assessor_kind"),
    CheckConstraint("state in ('in', 'excluded')", name="assessor_state"),
)

identity = Table(  # the only table with personal data; rows may be erased
    "identity",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("assessor", String, primary_key=True),
    Column("panel", String, nullable=False),
    Column("external", String, nullable=False),
    ForeignKeyConstraint(["campaign", "assessor"], ["assessor.campaign", "assessor.id"]),
    Index("identity_known_once", "campaign", "panel", "external", unique=True),
)

topic_person = Table(  # topics reserved for certain assessors
    "topic_person",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("topic", String, primary_key=True),
    Column("assessor", String, primary_key=True),
    Column("kind", String, nullable=False, server_default=""),  # of judgment; empty: the campaign's
    Column("place", Integer),  # in a crossed study: the number of the assessor within this kind
    ForeignKeyConstraint(["campaign", "topic"], ["topic.campaign", "topic.id"]),
    ForeignKeyConstraint(["campaign", "assessor"], ["assessor.campaign", "assessor.id"]),
    Index("topic_person_place_once", "campaign", "topic", "kind", "place", unique=True),
)

step = Table(  # an assessor's steps before and between judging: consent, guide, check, practice
    "step",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("campaign", String, nullable=False),
    Column("assessor", String, nullable=False),
    Column("name", String, nullable=False),
    Column("outcome", Text, nullable=False, server_default=""),
    Column("time", Float, nullable=False),
    ForeignKeyConstraint(["campaign", "assessor"], ["assessor.campaign", "assessor.id"]),
    Index("step_by_person", "campaign", "assessor"),
)

secret = Table(  # keys made at first start, such as the one that signs links
    "secret",
    metadata,
    Column("name", String, primary_key=True),
    Column("value", String, nullable=False),
    Column("created", Float, nullable=False),
    Column("until", Float),  # a replaced key verifies until then
)

intake = Table(  # imported files, so that none is imported twice unnoticed
    "intake",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("digest", String, primary_key=True),  # of the bytes and of the reading options
    Column("occasion", Integer, primary_key=True),
    Column("file", Text, nullable=False),
    Column("lines", Integer, nullable=False),
    Column("time", Float, nullable=False),
    Column("done", Integer, nullable=False, server_default="1"),  # 0: in progress, or interrupted
    ForeignKeyConstraint(["campaign"], ["campaign.id"]),
)

intake_part = Table(  # progress of a file that is imported in parts
    "intake_part",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("digest", String, primary_key=True),
    Column("occasion", Integer, primary_key=True),
    Column("topic", String, primary_key=True),
    Column("written", Integer, nullable=False),  # of the file's lines on this topic
    ForeignKeyConstraint(
        ["campaign", "digest", "occasion"], ["intake.campaign", "intake.digest", "intake.occasion"]
    ),
)

assignment = Table(
    "assignment",
    metadata,
    Column("id", String, primary_key=True),
    Column("campaign", String, nullable=False),
    Column("assessor", String, nullable=False),
    Column("state", String, nullable=False, server_default="open"),
    Column("questions", Integer, nullable=False),
    Column("created", Float, nullable=False),
    Column("closed", Float),
    ForeignKeyConstraint(["campaign", "assessor"], ["assessor.campaign", "assessor.id"]),
    CheckConstraint(
        "state in ('open', 'finished', 'stopped', 'returned', 'timed-out')", name="assignment_state"
    ),
    Index(
        "assignment_one_open",
        "campaign",
        "assessor",
        unique=True,
        sqlite_where=text("state = 'open'"),
        postgresql_where=text("state = 'open'"),
    ),
    Index("assignment_by_person", "campaign", "assessor"),
)

question = Table(
    "question",
    metadata,
    Column("id", String, primary_key=True),
    Column("campaign", String, nullable=False),
    Column("topic", String, nullable=False),
    Column("criterion", String, nullable=False),
    Column("stage", String, nullable=False, server_default=""),
    Column("kind", String, nullable=False),
    Column("a", String, nullable=False),  # the pair, smaller id first; for a grade, the item and ''
    Column("b", String, nullable=False),
    Column("left_item", String, nullable=False),
    Column("right_item", String),
    Column("slot", Integer),  # from 1 to the cap; null for test pairs and repeated questions, which have none
    Column("assessor", String, nullable=False),
    Column("assignment", String),
    Column("place", Integer, nullable=False, server_default="0"),  # within the assignment
    Column("test_pair", String),
    Column("phase", String, nullable=False, server_default=""),
    Column("proposal", String, nullable=False, server_default=""),
    Column("propensity", Float),
    Column("strategy", String, nullable=False, server_default=""),
    Column("asked", Float, nullable=False),
    Column("expires", Float, nullable=False),
    Column("attempt", Integer, nullable=False, server_default="1"),  # counted up by each undo
    Column(
        "occasion", Integer, nullable=False, server_default="1"
    ),  # 1, 2, ...: how often this assessor has had the pair
    Column("source", String, nullable=False, server_default="asked"),  # see question_source
    Column("state", String, nullable=False, server_default="leased"),
    Column("live", Integer, server_default="1"),  # 1: holds its slot; null: doesn't
    ForeignKeyConstraint(["campaign", "topic"], ["topic.campaign", "topic.id"]),
    ForeignKeyConstraint(["campaign", "assessor"], ["assessor.campaign", "assessor.id"]),
    ForeignKeyConstraint(["assignment"], ["assignment.id"]),
    CheckConstraint(
        "state in ('leased', 'answered', 'expired', 'returned', 'skipped', 'cannot-judge', 'retracted')",
        name="question_state",
    ),
    CheckConstraint("live is null or live = 1", name="question_live"),
    # A repeated question measures self-agreement: it takes no slot and scores nothing.
    CheckConstraint("source in ('asked', 'repeated', 'file')", name="question_source"),
    # The cap: each slot of a pair has one live holder. Nulls are distinct in unique keys.
    Index("question_slot_once", "campaign", "topic", "criterion", "a", "b", "slot", "live", unique=True),
    # One live answer per assessor, pair and occasion. Only repeated questions and files have a second occasion.
    Index(
        "question_person_once",
        *("campaign", "topic", "criterion", "a", "b", "assessor", "occasion", "live"),
        unique=True,
    ),
    Index("question_by_person", "campaign", "assessor", "state", "topic"),
    Index("question_by_assignment", "assignment"),
    Index("question_open", "campaign", "state", "topic", "expires"),
)

log = Table(
    "log",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("topic", String, primary_key=True),
    Column("seq", Integer, primary_key=True),  # gapless from 1
    Column("event", String, nullable=False),
    Column("time", Float, nullable=False),
    # a judgment
    Column("question", String),
    Column("attempt", Integer),
    Column("left_item", String),
    Column("right_item", String),
    Column("outcome", String),
    Column("grade", Float),
    Column("kind", String),
    Column("criterion", String),
    Column("stage", String),
    Column("assessor", String),
    Column("assignment", String),
    Column("test_pair", String),
    Column("phase", String),
    Column("proposal", String),
    Column("propensity", Float),
    Column("strategy", String),
    Column("confidence", Float),
    Column("seconds", Float),
    Column("context_uses", Integer),
    Column("note", Text),
    Column("sides_known", Integer),
    Column("inferred", Integer),
    Column("highlighted", Integer),  # 1: query terms were marked; null: unknown
    Column("repeated", Integer),  # 1: asked again of the same assessor; scores nothing
    Column("told", Integer),  # 1: strategies get it at once; 0: when its assignment is released
    # everything else
    Column("refers_to", Integer),  # the line that is retracted or restored
    Column("survivors", Text),  # JSON, of a phase that closed
    Column("reason", Text),
    ForeignKeyConstraint(["campaign", "topic"], ["topic.campaign", "topic.id"]),
    CheckConstraint(
        "event in ('judgment', 'retraction', 'restoration', 'release', 'phase-closed', 'rewind')",
        name="log_event",
    ),
    # A question is answered once per attempt, however often the answer is sent.
    Index("log_answer_once", "question", "attempt", "event", unique=True),
    Index("log_refers_to", "campaign", "topic", "refers_to"),
    Index("log_by_assessor", "campaign", "assessor", "time"),
)

summary = Table(  # derived from the log: what a topic's log, pool and settings give; see campaign/views/summaries.py
    "summary",
    metadata,
    Column("campaign", String, primary_key=True),
    Column("topic", String, primary_key=True),
    # It holds only for a topic with this last line, pool, number of test pairs, and way of counting.
    Column("position", Integer, nullable=False),
    Column("pool_version", Integer, nullable=False),
    Column("tests", Integer, nullable=False),
    Column("form", String, nullable=False),
    Column("done", Integer, nullable=False),  # 1: the strategy needs no more judgments
    Column("body", Text, nullable=False),  # JSON
    ForeignKeyConstraint(["campaign", "topic"], ["topic.campaign", "topic.id"]),
)

feedback = Table(  # an assessor's feedback after an assignment or a topic
    "feedback",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("campaign", String, nullable=False),
    Column("assessor", String, nullable=False),
    Column("assignment", String),
    Column("topic", String),
    Column("confidence", Integer),
    Column("understanding", Integer),
    Column("text", Text, nullable=False, server_default=""),
    Column("time", Float, nullable=False),
    ForeignKeyConstraint(["campaign", "assessor"], ["assessor.campaign", "assessor.id"]),
    ForeignKeyConstraint(["assignment"], ["assignment.id"]),
    CheckConstraint("confidence between 1 and 5", name="feedback_confidence"),
    CheckConstraint("understanding between 1 and 5", name="feedback_understanding"),
    Index("feedback_by_person", "campaign", "assessor"),
)

ledger = Table(
    "ledger",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("campaign", String, nullable=False),
    Column("assessor", String, nullable=False),
    Column("assignment", String),
    Column("entry", String, nullable=False),
    Column("amount", Integer, nullable=False),  # minor units
    Column("reason", Text, nullable=False, server_default=""),
    Column("time", Float, nullable=False),
    ForeignKeyConstraint(["campaign", "assessor"], ["assessor.campaign", "assessor.id"]),
    CheckConstraint("entry in ('reward', 'fee', 'compensation', 'bonus')", name="ledger_entry"),
    Index("ledger_by_assignment", "assignment"),
    Index(
        "ledger_paid_once",
        "assignment",
        "entry",
        unique=True,
        sqlite_where=text("entry in ('reward', 'fee')"),
        postgresql_where=text("entry in ('reward', 'fee')"),
    ),
)
