"""Random files in random layouts read back equal, by either path."""

import gzip
import math
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duelpool.files import (
    PreferenceForm,
    Preferences,
    Qrels,
    Run,
    read_judgments,
    read_passages,
    read_pools,
    read_preferences,
    read_qrels,
    read_run,
    read_topics,
    write_judgments,
    write_passages,
    write_pools,
    write_preferences,
    write_qrels,
    write_run,
    write_topics,
)
from duelpool.files.columns import read_columns, read_fast, read_tolerant
from duelpool.files.rows.keys import RowKeys, repeats
from duelpool.files.rows.texts import Texts
from duelpool.files.runs import RUN_LAYOUT
from duelpool.files.source import Source
from duelpool.records import Judgment, Kind, Outcome, Passage, Pool, Topic

files_are_cheap = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

signs = st.characters(codec="utf-8", exclude_categories=["Zs", "Zl", "Zp", "Cc", "Cs"])
ids = st.text(signs, min_size=1, max_size=12).filter(lambda text: text[0] not in "#\ufeff{[<")
docnos = st.one_of(ids, st.sampled_from(["d1", "d2", "d3", "d10", "msmarco_passage_01_7"]))
topics = st.one_of(ids, st.sampled_from(["1", "2", "31_1"]))
scores = st.one_of(st.floats(allow_nan=False), st.integers(-5, 5).map(float))
grades = st.one_of(st.integers(-2, 4).map(float), st.floats(allow_nan=False, allow_infinity=False))
storable = st.characters(codec="utf-8", exclude_characters="\0")
blanks = st.text(" \t", min_size=1, max_size=3)

run_rows = st.lists(st.tuples(topics, docnos, scores), min_size=1, max_size=30)
qrels_rows = st.lists(
    st.tuples(topics, docnos, grades), min_size=1, max_size=30, unique_by=lambda row: (row[0], row[1])
)
WHOLE_FORMS: tuple[PreferenceForm, ...] = ("pairs", "jsonl")
LOSSY_FORMS: tuple[PreferenceForm, ...] = ("winners", "trec")
pairs = st.tuples(topics, docnos, docnos).filter(lambda row: row[1] != row[2])


@st.composite
def layouts(draw: st.DrawFn, lines: list[list[str]]) -> bytes:
    """Write lines of words with any blanks between them, any line ends, and blank lines and comments between."""
    if draw(st.booleans()):  # a regular file, for the fast path
        separator = draw(st.sampled_from([" ", "\t"]))
        end = draw(st.sampled_from(["\n", "\r\n"]))
        return "".join(separator.join(words) + end for words in lines).encode()
    parts = []
    for words in lines:
        parts.append(draw(st.sampled_from(["", "", " ", "\t"])))
        parts.append("".join(word + draw(blanks) for word in words[:-1]) + words[-1])
        parts.append(draw(st.sampled_from(["\n", "\r\n", "  \n", "\n\n", "\n \t\n", "\n# a comment\n"])))
    text = "".join(parts)
    if draw(st.booleans()):
        text = text.rstrip("\n")
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text.encode()


def store(folder: Path, data: bytes, packed: bool) -> Path:
    path = folder / ("file.gz" if packed else "file.txt")
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


@files_are_cheap
@given(rows=run_rows, tag=ids, packed=st.booleans(), rest=st.data())
def test_run_round_trip_in_any_layout(
    tmp_path: Path, rows: list[tuple[str, str, float]], tag: str, packed: bool, rest: st.DataObject
) -> None:
    lines = [[topic, "Q0", docno, "1", repr(score), tag] for topic, docno, score in rows]
    run = read_run(store(tmp_path, rest.draw(layouts(lines)), packed))
    assert run.tag == tag
    assert run.frame.rows() == rows
    path = tmp_path / ("again.run.gz" if packed else "again.run")
    write_run(path, run)
    assert read_run(path) == run


@files_are_cheap
@given(rows=qrels_rows, packed=st.booleans(), rest=st.data())
def test_qrels_round_trip_in_any_layout(
    tmp_path: Path, rows: list[tuple[str, str, float]], packed: bool, rest: st.DataObject
) -> None:
    lines = [[topic, "0", docno, repr(grade)] for topic, docno, grade in rows]
    qrels = read_qrels(store(tmp_path, rest.draw(layouts(lines)), packed))
    assert qrels.frame.rows() == rows
    write_qrels(tmp_path / "again.qrels", qrels)
    assert read_qrels(tmp_path / "again.qrels") == qrels


@files_are_cheap
@given(rows=st.lists(st.tuples(pairs, st.sampled_from("ab=")), min_size=1, max_size=30), rest=st.data())
def test_preferences_round_trip_in_any_layout(
    tmp_path: Path, rows: list[tuple[tuple[str, str, str], str]], rest: st.DataObject
) -> None:
    rows = [row for row in rows if "=" not in row[0][1:]] or [(("1", "a", "b"), "a")]
    names = {"a": "left", "b": "right", "=": "tie"}
    lines = [[topic, a, b, {"a": a, "b": b, "=": "="}[won]] for (topic, a, b), won in rows]
    read = read_preferences(store(tmp_path, rest.draw(layouts(lines)), packed=False), form="pairs")
    assert read.frame.rows() == [(*row, names[won]) for row, won in rows]
    for form in WHOLE_FORMS:
        path = tmp_path / f"again.{form}"
        assert write_preferences(path, read, form) == ()
        assert read_preferences(path, form) == read
    decided = [
        (topic, *((a, b) if won == "a" else (b, a)), "left") for (topic, a, b), won in rows if won != "="
    ]
    for lossy in LOSSY_FORMS:
        path = tmp_path / f"again.{lossy}"
        notices = write_preferences(path, read, lossy)
        assert sum(notice.count for notice in notices) == len(rows) - len(decided)
        if decided:
            again = read_preferences(path)
            assert again.frame.rows() == decided


@given(rows=run_rows, rest=st.data())
def test_fast_and_tolerant_paths_agree(rows: list[tuple[str, str, float]], rest: st.DataObject) -> None:
    lines = [[topic, "Q0", docno, "1", repr(score), "tag"] for topic, docno, score in rows]
    source = Source("file", rest.draw(layouts(lines)).removeprefix(b"\xef\xbb\xbf"))
    slow = read_tolerant(source, RUN_LAYOUT)
    fast = read_fast(source, RUN_LAYOUT)
    if fast is not None:
        assert fast.frame.equals(slow.frame)
        assert fast.first == slow.first
        assert [fast.line_of(row) for row in range(len(rows))] == slow.lines
    assert read_columns(source, RUN_LAYOUT).frame.equals(slow.frame)


@given(
    words=st.lists(
        st.lists(st.text("a1.-+einfE ", max_size=4), min_size=5, max_size=7), min_size=1, max_size=4
    )
)
def test_fast_path_never_differs_from_the_tolerant_one(words: list[list[str]]) -> None:
    """Fields that may be empty, hold blanks, or look a bit like numbers: the fast path agrees or steps back."""
    source = Source("file", "".join(" ".join(line) + "\n" for line in words).encode())
    fast = read_fast(source, RUN_LAYOUT) if source.data.strip() else None
    if fast is not None:
        assert fast.frame.equals(read_tolerant(source, RUN_LAYOUT).frame)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", [" ", "\t"])
def test_regular_files_take_the_fast_path(separator: str, end: str) -> None:
    lines = [separator.join(("1", "Q0", f"d{rank}", str(rank), "1e-3", "tag")) + end for rank in range(50)]
    fast = read_fast(Source("file", "".join(lines).encode()), RUN_LAYOUT)
    assert fast is not None
    assert fast.frame.height == 50
    assert fast.first[-1] == "tag"


def test_two_blanks_across_a_chunk_border_are_seen() -> None:
    line = b"1 Q0 d 1 0.5 tag\n"
    for shift in range(len(line)):
        data = line * 20000
        at = data.index(b"\n", (1 << 17) - shift)
        broken = data[:at] + b" " + data[at:]
        assert read_fast(Source("file", broken), RUN_LAYOUT) is None


judgments = st.builds(
    Judgment,
    topic=topics,
    left=st.just("left one"),
    right=st.just("right one"),
    outcome=st.sampled_from([each for each in Outcome if each is not Outcome.GRADE]),
    phase=st.text(max_size=5),
    assessor=st.text(max_size=5),
    criterion=st.sampled_from(["overall", "fluency"]),
    stage=st.text(max_size=5),
    kind=st.sampled_from([Kind.PREFERENCE, Kind.DEFINITE]),
    confidence=st.none() | st.floats(0, 1),
    note=st.text(storable, max_size=20),
    seconds=st.none() | st.floats(0, 1e6),
    context_uses=st.integers(0, 9),
    sides_known=st.booleans(),
    inferred=st.booleans(),
    propensity=st.none() | st.floats(0, 1, exclude_min=True),
    strategy=st.text(max_size=5),
    question=st.text(max_size=5),
    seq=st.none() | st.integers(1, 10**9),
    time=st.just("2026-01-01T00:00:00Z"),
)
graded = st.builds(
    lambda topic, item, grade: Judgment(topic, item, None, Outcome.GRADE, kind=Kind.GRADE, grade=grade),
    topics,
    ids,
    st.floats(allow_nan=False, allow_infinity=False),
)


@files_are_cheap
@given(rows=st.lists(judgments | graded, min_size=1, max_size=20))
def test_judgments_round_trip_with_every_field(tmp_path: Path, rows: list[Judgment]) -> None:
    write_judgments(tmp_path / "log.jsonl.gz", rows)
    read = read_judgments(tmp_path / "log.jsonl.gz")
    assert list(read) == rows
    assert read.notices == ()


words = st.text(storable, min_size=1).map(str.strip).filter(bool)
topic_records = st.builds(
    Topic,
    id=words,
    text=words,
    description=words | st.just(""),
    conversation=st.lists(words, max_size=3).map(tuple),
    tags=st.lists(words, max_size=3).map(tuple),
    weight=st.floats(0, 1e9),
)


@files_are_cheap
@given(records=st.lists(topic_records, min_size=1, max_size=8, unique_by=lambda topic: topic.id))
def test_topics_round_trip(tmp_path: Path, records: list[Topic]) -> None:
    write_topics(tmp_path / "topics.jsonl", records)
    assert list(read_topics(tmp_path / "topics.jsonl")) == records


passage_records = st.builds(Passage, id=words, text=st.text(storable), title=words, url=words | st.just(""))


@files_are_cheap
@given(records=st.lists(passage_records, min_size=1, max_size=8, unique_by=lambda passage: passage.id))
def test_passages_round_trip(tmp_path: Path, records: list[Passage]) -> None:
    write_passages(tmp_path / "passages.jsonl", records)
    assert list(read_passages(tmp_path / "passages.jsonl")) == records


def test_pools_round_trip(tmp_path: Path) -> None:
    pools = (Pool("1", ("a", "b"), {"a": 2.5}, {"b": ("c", "d")}), Pool("2", ("x y",)))
    write_pools(tmp_path / "pools.jsonl", pools)
    assert read_pools(tmp_path / "pools.jsonl") == pools


def test_the_same_lines_give_the_same_bytes(tmp_path: Path) -> None:
    run = Run.from_rankings("r", {"1": [("a", 2.0), ("b", math.pi)]})
    write_run(tmp_path / "one.gz", run)
    write_run(tmp_path / "two.gz", run)
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()


def test_frames_of_one_kind_are_equal_by_value(tmp_path: Path) -> None:
    grades_of: dict[str, dict[str, float]] = {"1": {"a": 1, "b": 0}}
    assert Qrels.from_grades(grades_of) == Qrels.from_grades(grades_of)
    assert Qrels.from_grades(grades_of).grades() == grades_of
    rows: Any = [Judgment("1", "a", "b", Outcome.LEFT, sides_known=False)]
    one = Preferences.from_judgments(rows)
    assert list(one.judgments()) == rows
    assert one == Preferences(one.frame, sides_known=False)
    assert one != Preferences(one.frame, sides_known=True)
    assert one.frame.schema == dict.fromkeys(("topic", "left", "right", "outcome"), pl.String)


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 1500, 60_000])
def test_hashes_of_several_rows_are_those_that_sorting_finds(rows: int) -> None:
    random = np.random.default_rng(rows)
    keys = random.integers(2**64, size=rows, dtype=np.uint64)
    close = keys[: rows // 3] & np.uint64(2**64 - 2**30)  # others in the same slots, some of them equal
    keys = random.permutation(np.concatenate((keys, close, close[: rows // 9], keys[: rows // 9])))
    ordered = np.sort(keys)
    expected = ordered[1:][ordered[1:] == ordered[:-1]]
    none = np.zeros(0, dtype=np.int64)
    assert RowKeys((), none, none, keys, Texts(b"", none, none)).twice().tolist() == expected.tolist()


def test_unpickled_run_computes_its_keys_again() -> None:
    run = Run.from_rankings("r", {"1": [("a", 2.0), ("b", 1.0)], "2": [("a", 1.0)]})
    keys = run.row_keys()
    assert run.row_keys() is keys
    other = pickle.loads(pickle.dumps(run))
    assert (other, other.name, other.notices) == (run, run.name, run.notices)
    assert not other._keys
    renamed = replace(run, frame=run.frame.with_columns(docno=pl.lit("c")))
    assert len(renamed.row_keys().twice()) == 1
    assert other.row_keys().topics == keys.topics


@given(st.lists(st.tuples(st.sampled_from("12"), st.sampled_from("abc")), min_size=1, max_size=12))
def test_repeats_are_rows_with_an_earlier_equal(rows: list[tuple[str, str]]) -> None:
    topics, docnos = (pl.Series([row[at] for row in rows]) for at in (0, 1))
    expected = [at for at, row in enumerate(rows) if row in rows[:at]]
    for weak in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            if weak:
                patch.setattr(Texts, "hashes", lambda texts, seed: (texts.sizes + seed).astype(np.uint64) % 2)
            assert repeats(RowKeys.of(topics, docnos)).tolist() == expected


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.data())
def test_a_repeat_in_topics_of_any_size_is_found(sizes: list[int], data: st.DataObject) -> None:
    rows = [(str(topic), f"d{at}") for topic, size in enumerate(sizes) for at in range(size)]
    repeated = data.draw(st.none() | st.integers(0, len(rows) - 1))
    if repeated is not None:  # once more, somewhere behind in the same topic
        last = max(at for at, row in enumerate(rows) if row[0] == rows[repeated][0])
        place = data.draw(st.integers(repeated + 1, last + 1))
        rows.insert(place, rows[repeated])
    topics, docnos = (pl.Series([row[at] for row in rows]) for at in (0, 1))
    assert repeats(RowKeys.of(topics, docnos)).tolist() == ([] if repeated is None else [place])
    with (
        pytest.MonkeyPatch.context() as patch
    ):  # halves of hashes that look like those of rows that aren't there
        patch.setattr(Texts, "hashes", lambda texts, seed: (texts.sizes.astype(np.uint64) << 32) * (1 - seed))
        assert repeats(RowKeys.of(topics, docnos)).tolist() == ([] if repeated is None else [place])
