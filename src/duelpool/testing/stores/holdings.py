"""Checks of a campaign's contents: topics, items, passages, test pairs and assessors."""

from duelpool.errors import BadParameter
from duelpool.records import Passage, Pool, Topic
from duelpool.store import Store, Writing, holdings
from duelpool.testing.promises import require
from duelpool.testing.stores.scene import Scene, refused


def check_campaigns(store: Store) -> None:
    """A campaign is found by name and id; names are unique; unknown names are refused."""
    scene = Scene.set_up(store)
    by_id = store.read(lambda connection: holdings.find_campaign(connection, scene.campaign))
    by_name = store.read(lambda connection: holdings.find_campaign(connection, by_id.name))
    require(by_id == by_name and by_id.state == "open", "a campaign is found by name and by id")
    refused(
        BadParameter,
        lambda: store.of("x").write(lambda tx: holdings.create_campaign(tx, by_id.name, {})),
        "two campaigns of one name are refused",
    )
    refused(
        holdings.UnknownCampaign,
        lambda: store.read(lambda connection: holdings.find_campaign(connection, "nobody's")),
        "an unknown campaign is refused",
    )
    settings = {"cap": 3, "names": ["é", "\N{SNOWMAN}"], "none": None}
    store.of(scene.campaign).write(lambda tx: holdings.set_campaign(tx, state="paused", settings=settings))
    store.of(scene.campaign).write(holdings.set_campaign)
    changed = store.read(lambda connection: holdings.find_campaign(connection, scene.campaign))
    require(
        (changed.state, changed.settings) == ("paused", settings), "state and settings are kept", seen=changed
    )


def check_holdings(store: Store) -> None:
    """Topics, items, passages, test pairs and assessors are read as they were added, in order, each once."""
    scene = Scene.set_up(store, topics=(), people=0)
    topics = [
        Topic("zebra", "Z?", "about Z", ("first", "then"), ("animal",), 2.0),
        Topic("Äpfel", "Ä?"),
        Topic("apple", "A?"),
    ]
    passages = [Passage(f"d{at}", f"text {at} \N{SNOWMAN}", "title", "https://x.test/") for at in range(2500)]
    pool = Pool("zebra", ("b", "a", "c"), {"a": 1.5}, {"a": ("a2", "A3")})
    checks = [holdings.TestPair(name, "zebra", "a", "b") for name in ("b", "B", "a", "ä")]

    def work(tx: Writing) -> tuple[int, ...]:
        return (
            holdings.add_topics(tx, topics),
            holdings.add_pool(tx, pool),
            holdings.add_passages(tx, passages),
            holdings.add_test_pairs(tx, checks),
        )

    require(store.of(scene.campaign).write(work) == (3, 5, 2500, 4), "new rows are counted")
    require(store.of(scene.campaign).write(work) == (0, 0, 0, 0), "existing rows are unchanged")
    store.of(scene.campaign).write(lambda tx: holdings.add_topics(tx, [Topic("0", "late")]))
    for person in ("zoe", "Åsa", "adam"):
        scene.enrol(person)
    topics_read = store.of(scene.campaign).read(holdings.topics)
    require(
        list(topics_read.values())[:3] == topics and list(topics_read)[3] == "0",
        "topics keep their order",
        seen=topics_read,
    )
    items = store.of(scene.campaign).read(lambda tx: holdings.items(tx, "zebra"))
    require(
        [(item.id, item.grade, item.twin_of, item.state) for item in items]
        == [
            ("b", None, None, "in"),
            ("a", 1.5, None, "in"),
            ("c", None, None, "in"),
            ("a2", 1.5, "a", "in"),
            ("A3", 1.5, "a", "in"),
        ],
        "items keep their order, and duplicates have the grade of their original",
        seen=items,
    )
    ids = [each.id for each in passages] + ["unknown"]
    texts = store.of(scene.campaign).read(lambda tx: holdings.passages(tx, ids))
    require(texts == {each.id: each for each in passages}, "all passages are read")
    known = store.of(scene.campaign).read(holdings.test_pairs)
    require(list(known) == ["B", "a", "b", "ä"], "ids are sorted by code point", seen=list(known))
    people = store.of(scene.campaign).read(holdings.assessors)
    require(list(people) == ["zoe", "Åsa", "adam"], "assessors are in the order of enrolment")
    left = store.of(scene.campaign).write(
        lambda tx: (
            holdings.set_item_state(tx, "zebra", "a", "left"),
            holdings.set_item_state(tx, "zebra", "nobody", "left"),
            holdings.set_topic_state(tx, "apple", "left"),
            holdings.set_topic_state(tx, "nobody", "left"),
            holdings.set_assessor_state(tx, "zoe", "excluded"),
            holdings.set_assessor_state(tx, "zoe", "excluded"),
        )
    )
    require(
        left == (True, False, True, False, True, False), "each change returns whether it applied", seen=left
    )
    still = store.of(scene.campaign).read(lambda tx: holdings.topics(tx, state="open"))
    require("apple" not in still and len(still) == 3, "a topic that left is not open")
