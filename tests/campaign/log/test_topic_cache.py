"""Values per topic: worked out again for stale topics only, and dropped with their topics."""

from duelpool.campaign.log.topic_cache import TopicCache


def test_only_stale_topics_are_worked_out_again() -> None:
    cache: TopicCache[str] = TopicCache()
    calls: list[list[str]] = []

    def refresh(stamps: dict[str, int], *without: str) -> dict[str, tuple[str | None, str | None]]:
        def compute(stale: list[str]) -> dict[str, str]:
            calls.append(stale)
            return {topic: f"{topic}{stamps[topic]}" for topic in stale if topic not in without}

        return cache.refresh(stamps, compute)

    assert refresh({"a": 1, "b": 1, "c": 1}, "c") == {"a": (None, "a1"), "b": (None, "b1"), "c": (None, None)}
    assert [*cache] == ["a", "b"]
    assert refresh({"a": 1, "b": 1, "c": 1}) == {}
    assert refresh({"a": 2, "b": 1, "c": 2}) == {"a": ("a1", "a2"), "c": (None, "c2")}
    assert calls == [["a", "b", "c"], ["a", "c"]]
    assert (cache["a"], cache["b"], cache["c"]) == ("a2", "b1", "c2")


def test_topic_without_a_stamp_leaves() -> None:
    cache: TopicCache[str] = TopicCache()
    cache.refresh({"a": 1, "b": 1}, lambda stale: {topic: topic for topic in stale})
    assert cache.refresh({"b": 1}, lambda stale: {}) == {"a": ("a", None)}
    assert "a" not in cache
    assert cache.get("a") is None
    cache.forget(lambda value: value == "b")
    assert [*cache] == []
