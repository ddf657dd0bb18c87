"""Files made to keep a reader busy: the time of every reader grows with the size of the file, not with its square."""

import json
import time
from collections.abc import Callable
from itertools import combinations, islice
from pathlib import Path

import pytest

from duelpool.errors import BadFile, DuelpoolError
from duelpool.files import read_preferences, read_topics
from duelpool.files.topics import TURNS_AT_MOST
from fuzz_files import READERS, try_on

SIZES = (8 << 10, 64 << 10)
LARGER = (8 << 10, 32 << 10, 128 << 10, 512 << 10)
ALLOWED = 2.25  # times the growth of the file: a quadratic reader takes 4 or 8 times that long
UNSEEN_SECONDS = 0.03  # a time below this counts as this much: short times say nothing


def repeated(unit: bytes, start: bytes = b"", end: bytes = b"") -> Callable[[int], bytes]:
    return lambda size: start + unit * max(1, (size - len(start) - len(end)) // len(unit)) + end


def numbered(line: str, start: str = "", end: str = "") -> Callable[[int], bytes]:
    """Make a file of lines in which `@` is the number of the line."""

    def make(size: int) -> bytes:
        count = max(1, size // (len(line) + 4))
        return (start + "".join(line.replace("@", str(at)) for at in range(count)) + end).encode()

    return make


def nested(size: int) -> bytes:
    return b'{"id": ' + b"[" * (size // 2) + b"]" * (size // 2) + b"}"


def wide_rows(size: int) -> bytes:
    """Make a header of many columns, and rows as wide."""
    columns = max(3, int((size / 16) ** 0.5))
    header = ["id", "text", *(f"column{at}" for at in range(columns))]
    row = "\t".join(["@", *("x" for _ in header[1:])])
    return "\n".join(["\t".join(header), *(row.replace("@", str(at)) for at in range(columns * 3))]).encode()


def other_fields(size: int) -> bytes:
    """Make JSON lines of which each has fields of its own."""
    line = {"topic": "one", "id": "1", "text": "x", "left": "a", "right": "b", "outcome": "left"}
    rows = (json.dumps({**line, f"field{at}": at}).encode() for at in range(10**9))
    return b"\n".join(islice(rows, size // 100))


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "<top> again and again": repeated(b"<top>"),
    "<top> with a blank": repeated(b"<top >\n"),
    "tags without an end": repeated(b"<a", b"<top>", b"</top>"),
    "one topic of many tags": repeated(b"<a>b</a>", b"<top><num>1<title>t", b"</top>"),
    "many topics in tags": numbered("<top>\n<num>@\n<title>words\n</top>\n"),
    "blocks whose end lacks its bracket": repeated(b"<top></top "),
    "an opening tag of many words": repeated(b" number", b"<top", b">x</top>"),
    "an opening tag of blanks": repeated(b" ", b"<top number", b">x</top>"),
    "a character of many digits": repeated(b"9", b"<top><num>1<title>&#", b"</top>"),
    "entities": repeated(b"&amp", b"<top><num>1<title>", b"</top>"),
    "labels of blanks": repeated(b" ", b"<top><num>Number", b"</top>"),
    "one conversation of many turns": repeated(b'{"text":"a"},', b'{"number":1,"turn":[', b'{"text":"a"}]}'),
    "nested JSON": nested,
    "JSON that never closes": repeated(b'{"a":'),
    "arrays that never close": repeated(b"["),
    "a JSON array of numbers": repeated(b"1,", b"[", b"1]"),
    "a JSON object with one name often": repeated(b'"id":1,', b"{", b'"text":"x"}'),
    "a JSON object with many names": numbered('"n@":1,', "{", '"id":1,"text":"x"}'),
    "fields that change from line to line": other_fields,
    "a number of many digits": repeated(b"9", b'{"id":', b"}"),
    "an outcome of many letters": repeated(
        b"left", b'{"topic":"one","left":"a","right":"b","outcome":"', b'"}'
    ),
    "one setting of many letters": repeated(b"strategy", b"", b" = 1\n"),
    "one line of letters": repeated(b"x"),
    "one line of words": repeated(b"word "),
    "one line of tabs": repeated(b"\t", b"a", b"b\n"),
    "blank lines": repeated(b"\n", b"", b"one 0 a 1\n"),
    "line ends of every kind": repeated(b"\r\n\r", b"", b"one 0 a 1\n"),
    "one column many times": repeated(b"topic\t", b"", b"winner\none\ta\n"),
    "rows of many columns": wide_rows,
    "quotes": repeated(b'"', b"topic,left,right,winner\none,", b"\n"),
    "the same row of a run": repeated(b"one Q0 a 1 2.5 tag\n"),
    "the same row of qrels": repeated(b"one 0 a 1\n"),
    "a topic for every row of qrels": numbered("@ 0 a 1\n"),
    "topics in turn": numbered("one 0 a@ 1\ntwo 0 a@ 1\n"),
    "the same pair": repeated(b"one a b a\n"),
    "one winner of many": numbered("one a b@\n"),
    "one subgroup of one level": numbered("one 1 1 d@ 1\n", "one 1 1 best 2\n"),
    "the same passage": repeated(b'{"id":"a","text":"t"}\n'),
    "the same line of two columns": repeated(b"a\tb\n"),
    "one pool of many items": numbered('"d@",', '{"topic":"one","items":[', '"d"]}'),
    "one pool of many duplicates": numbered('"d@",', '{"topic":"one","items":["a"],"twins":{"a":[', '"d"]}}'),
    "a matrix of one row": repeated(b"0.5 "),
    "nested arrays of a setting": repeated(b"[", b"check = "),
    "tables in tables of a setting": repeated(b"a.", b"", b"a = 1\n"),
    "many tables of settings": numbered("[t@]\n"),
    "one setting many times": numbered("a@ = 1\n"),
    "places in a prompt": repeated(b"{left}", b"You judge.\n---\n{question}\n{right}"),
    "rules in a prompt": repeated(b"---\n"),
}


def cpu_seconds(name: str, data: bytes, folder: Path) -> float:
    """Return the processor's time that a reader takes, the shorter of two where it is long enough to matter."""
    times: list[float] = []
    while len(times) < 2 and (not times or times[0] > UNSEEN_SECONDS):
        start = time.process_time()
        try:
            try_on(name, data, folder)
        except AssertionError as error:
            if not isinstance(error.__cause__, DuelpoolError):  # what a message says is tested elsewhere
                raise
        times.append(time.process_time() - start)
    return min(times)


def refuse_faster_growth(
    name: str, what: str, make: Callable[[int], bytes], sizes: tuple[int, ...], folder: Path
) -> None:
    before = 0.0
    for at, size in enumerate(sizes):
        now = cpu_seconds(name, make(size), folder)
        if at:
            bound = ALLOWED * size / sizes[at - 1] * before
            assert now <= bound, f"{name} on {what}: {before:.2f} s, then {now:.2f} s"
        before = max(now, UNSEEN_SECONDS)


NOT_LINEAR = {
    "import": "a transaction a file",
    "read_prior": "a model is fitted to the preferences that were read",
}
NOT_OURS = {
    ("read_settings", "tables in tables of a setting"): "Python reads TOML; settings files aren't uploaded",
    ("read_changes", "tables in tables of a setting"): "the same",
}


UPLOADED = ("run", "qrels", "preferences", "assessed", "topics", "passages", "groups")


def hold(name: str, sizes: tuple[int, ...], folder: Path) -> None:
    for what, make in HOSTILE.items():
        if (name, what) not in NOT_OURS:
            refuse_faster_growth(name, what, make, sizes, folder)


@pytest.mark.long
@pytest.mark.parametrize("kind", UPLOADED)
def test_time_of_a_reader_grows_with_the_size_of_a_file(kind: str, tmp_path: Path) -> None:
    hold(f"read_{kind}", SIZES, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in READERS if name not in NOT_LINEAR])
def test_time_of_a_reader_grows_with_the_size_of_a_large_file(name: str, tmp_path: Path) -> None:
    hold(name, LARGER, tmp_path)


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
