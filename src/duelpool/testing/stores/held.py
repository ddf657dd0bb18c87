"""Checks of what a campaign holds."""

from sqlalchemy import Connection

from duelpool.errors import BadParameter
from duelpool.records import Passage, Pool, Topic
from duelpool.store import Store, holdings
from duelpool.testing.promises import require
from duelpool.testing.stores.scene import Scene, refused


def check_campaigns(store: Store) -> None:
    """A campaign is found by name and id; its name is its own; unknown ones are refused by name."""
    scene = Scene.set_up(store)
    by_id = store.read(lambda connection: holdings.find_campaign(connection, scene.campaign))
    by_name = store.read(lambda connection: holdings.find_campaign(connection, by_id.name))
    require(by_id == by_name and by_id.state == "open", "a campaign is found by name and by id")
    refused(
        BadParameter,
        lambda: store.write(
            lambda connection, now: holdings.create_campaign(connection, "x", by_id.name, {}, now)
        ),
        "two campaigns of one name are refused",
    )
    refused(
        holdings.UnknownCampaign,
        lambda: store.read(lambda connection: holdings.find_campaign(connection, "nobody's")),
        "an unknown campaign is refused",
    )
    settings = {"cap": 3, "names": ["é", "\N{SNOWMAN}"], "none": None}
    store.write(
        lambda connection, now: holdings.set_campaign(
            connection, scene.campaign, state="paused", settings=settings
        )
    )
    store.write(lambda connection, now: holdings.set_campaign(connection, scene.campaign))
    changed = store.read(lambda connection: holdings.find_campaign(connection, scene.campaign))
    require(
        (changed.state, changed.settings) == ("paused", settings), "state and settings are kept", seen=changed
    )


def check_holdings(store: Store) -> None:
    """Topics, items, texts, test pairs and people come back as they went in, in order, each once."""
    scene = Scene.set_up(store, topics=(), people=0)
    topics = [
        Topic("zebra", "Z?", "about Z", ("first", "then"), ("animal",), 2.0),
        Topic("Äpfel", "Ä?"),
        Topic("apple", "A?"),
    ]
    passages = [Passage(f"d{at}", f"text {at} \N{SNOWMAN}", "title", "https://x.test/") for at in range(2500)]
    pool = Pool("zebra", ("b", "a", "c"), {"a": 1.5}, {"a": ("a2", "A3")})
    checks = [holdings.KnownPair(name, "zebra", "a", "b") for name in ("b", "B", "a", "ä")]

    def work(connection: Connection, now: float) -> tuple[int, ...]:
        return (
            holdings.add_topics(connection, scene.campaign, topics),
            holdings.add_pool(connection, scene.campaign, pool),
            holdings.add_passages(connection, scene.campaign, passages),
            holdings.add_test_pairs(connection, scene.campaign, checks),
        )

    require(store.write(work) == (3, 5, 2500, 4), "what is new is counted")
    require(store.write(work) == (0, 0, 0, 0), "what is there is left alone")
    store.write(lambda connection, now: holdings.add_topics(connection, scene.campaign, [Topic("0", "late")]))
    for person in ("zoe", "Åsa", "adam"):
        scene.enrol(person)
    found = store.read(lambda connection: holdings.topics(connection, scene.campaign))
    require(
        list(found.values())[:3] == topics and list(found)[3] == "0", "topics keep their order", seen=found
    )
    items = store.read(lambda connection: holdings.items(connection, scene.campaign, "zebra"))
    require(
        [(item.id, item.grade, item.twin_of, item.state) for item in items]
        == [
            ("b", None, None, "in"),
            ("a", 1.5, None, "in"),
            ("c", None, None, "in"),
            ("a2", 1.5, "a", "in"),
            ("A3", 1.5, "a", "in"),
        ],
        "items keep their order, and twins have the grade of theirs",
        seen=items,
    )
    ids = [each.id for each in passages] + ["unknown"]
    texts = store.read(lambda connection: holdings.passages(connection, scene.campaign, ids))
    require(texts == {each.id: each for each in passages}, "texts come back, however many")
    known = store.read(lambda connection: holdings.known_pairs(connection, scene.campaign))
    require(list(known) == ["B", "a", "b", "ä"], "ids are in the order of their codes", seen=list(known))
    people = store.read(lambda connection: holdings.assessors(connection, scene.campaign))
    require(list(people) == ["zoe", "Åsa", "adam"], "people are in the order in which they came")
    left = store.write(
        lambda connection, now: (
            holdings.set_item_state(connection, scene.campaign, "zebra", "a", "left"),
            holdings.set_item_state(connection, scene.campaign, "zebra", "nobody", "left"),
            holdings.set_topic_state(connection, scene.campaign, "apple", "left"),
            holdings.set_topic_state(connection, scene.campaign, "nobody", "left"),
            holdings.set_assessor_state(connection, scene.campaign, "zoe", "excluded"),
            holdings.set_assessor_state(connection, scene.campaign, "zoe", "excluded"),
        )
    )
    require(left == (True, False, True, False, True, False), "who leaves is there or isn't", seen=left)
    still = store.read(lambda connection: holdings.topics(connection, scene.campaign, state="open"))
    require("apple" not in still and len(still) == 3, "a topic that left is not open")
