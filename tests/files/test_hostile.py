"""Files made to keep a reader busy; benchmarks/hostile.py measures how the time to read them grows."""

import json
from itertools import combinations
from pathlib import Path

import pytest

from duelpool.errors import BadFile
from duelpool.files import read_preferences, read_topics
from duelpool.files.topics import TURNS_AT_MOST
from fuzz_files import READERS, try_on
from support.hostile import HOSTILE

SIZE = 8 << 10


@pytest.mark.parametrize("name", READERS)
def test_a_file_made_to_keep_a_reader_busy_is_read_or_refused(name: str, tmp_path: Path) -> None:
    for make in HOSTILE.values():
        try_on(name, make(SIZE), tmp_path)


def test_subgroups_that_state_too_many_preferences_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "prefs.txt"
    path.write_text("".join(f"one 1 1 d{at} {at}\n" for at in range(3_200)))
    with pytest.raises(BadFile, match="state 5,118,400 preferences"):
        read_preferences(path)


def test_subgroups_state_a_preference_for_any_two_levels(tmp_path: Path) -> None:
    path = tmp_path / "prefs.txt"
    levels = [1, 0, 0, 2, 0, 1, 0]
    path.write_text("".join(f"one 1 1 d{at} {level}\n" for at, level in enumerate(levels)))
    read = read_preferences(path)
    expected = [
        (f"d{a}", f"d{b}") if levels[a] > levels[b] else (f"d{b}", f"d{a}")
        for a, b in combinations(range(len(levels)), 2)
        if levels[a] != levels[b]
    ]
    assert read.frame.select("left", "right").rows() == expected
    assert [notice.count for notice in read.notices] == [7]


def test_conversations_of_too_many_turns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    turns = [{"text": "again"}] * (TURNS_AT_MOST + 1)
    path.write_text(json.dumps({"number": 1, "turn": turns}))
    with pytest.raises(BadFile, match=r"topics\.json:1: The conversation has 501 turns"):
        read_topics(path)


def test_topics_are_read_up_to_the_next_end_of_their_own_kind(tmp_path: Path) -> None:
    path = tmp_path / "topics.txt"
    path.write_text(
        "<topics><topic>\n<top>\n<num> Number: 1\n<title> a < b\n</top>\n\n<TOP><num>2<title>c</Top >\n<top>x\n"
    )
    assert [(topic.id, topic.text) for topic in read_topics(path)] == [("1", "a < b"), ("2", "c")]
