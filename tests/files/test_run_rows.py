"""The fast way to read a run, held to the tolerant reader, and texts as places in bytes, held to Python's."""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelpool.compiling import compiled
from duelpool.files import Run, read_run
from duelpool.files.columns import read_tolerant
from duelpool.files.rows import run_rows as module
from duelpool.files.rows.run_rows import RunRows, rows_of
from duelpool.files.rows.scanning import scan_lines
from duelpool.files.rows.texts import Texts
from duelpool.files.runs import RUN_LAYOUT
from duelpool.files.source import Source

words = st.text("ab1#-.", min_size=1, max_size=12) | st.sampled_from(
    ["q1", "q2", "d" * 31, "d" * 32, "d" * 70]
)
similar_words = st.sampled_from(["q1", "q2", "q12", "d" * 40, "d" * 39 + "e"])
plain_numbers = st.integers(-(10**9), 10**9)
odd_numbers = st.sampled_from(
    ["1e-3", "inf", "-inf", "nan", "+1.5", ".5", "5.", "-", "1.2.3", "0x1", "1_0", "--1.5"]
)


@pytest.fixture(autouse=True, scope="module", params=["plain", "compiled"])
def _form(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test twice: in blocks so small that files of a few lines are several of them, and compiled."""
    form = module.scan_blocks if request.param == "plain" else compiled(scan_lines)
    assert form, "Numba is among what the tests need."
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", 64)
        patch.setattr(module, "scan", form)
        yield


def rows_by_definition(data: bytes) -> list[tuple[str, str, float, str]]:
    return read_tolerant(Source("file", data), RUN_LAYOUT).frame.rows()


def rows_read(rows: RunRows) -> list[tuple[str, str, float]]:
    topics = np.repeat(np.array(rows.topics, dtype=object), np.diff(rows.starts, append=len(rows)))
    return list(zip(topics.tolist(), rows.docnos.read(), rows.scores.tolist(), strict=True))


def require_same(data: bytes) -> None:
    rows = rows_of(Source("file", data))
    if rows is None:
        return
    expected = rows_by_definition(data)
    assert [(topic, docno, repr(score)) for topic, docno, score in rows_read(rows)] == [
        (topic, docno, repr(score)) for topic, docno, score, _ in expected
    ]
    assert all(one != other for one, other in pairwise(rows.topics))
    assert rows.tag == expected[0][3]
    assert rows.other_tags.tolist() == [at for at, row in enumerate(expected) if row[3] != expected[0][3]]
    assert rows.hashes.tolist() == rows.docnos.hashes(0).tolist()


@given(
    st.lists(
        st.tuples(similar_words | words, words, plain_numbers, similar_words | words), min_size=1, max_size=12
    ),
    st.integers(0, 7),
)
def test_rows_are_those_of_the_tolerant_reader(lines: list[tuple[str, str, int, str]], decimals: int) -> None:
    data = "".join(
        f"{topic} Q0 {docno} 1 {number / 10**decimals:.{decimals}f} {tag}\n"
        for topic, docno, number, tag in lines
    ).encode()
    require_same(data)
    assert (rows_of(Source("file", data)) is None) == any(topic.startswith("#") for topic, *_ in lines)


@given(st.lists(st.lists(words | odd_numbers | st.just(""), min_size=5, max_size=7), min_size=1, max_size=4))
def test_files_of_another_form_are_left_to_other_readers(lines: list[list[str]]) -> None:
    data = "".join(" ".join(line) + "\n" for line in lines).encode()
    if data.strip():
        require_same(data)


@pytest.mark.parametrize("changed", [0, 2, 5])
@pytest.mark.parametrize(("one", "other"), [("q1", "q2"), ("q1", "q12"), ("q12", "q1"), ("q1", "q1")])
def test_fields_of_two_rows_that_are_alike(changed: int, one: str, other: str) -> None:
    rows = [["q1", "Q0", "q1", "1", "2.5", "q1"] for _ in range(2)]
    rows[0][changed], rows[1][changed] = one, other
    require_same("".join(" ".join(row) + "\n" for row in rows).encode())


@pytest.mark.parametrize(
    "score",
    [
        "18446744073709551617",  # 2^64 + 1
        "88957938504939883.2",  # divided by ten, its digits would be rounded twice
        "44667375401.9253275",
        "0.00000000000000000012345",
        "123456789012345678901234567890",
        "-0",
        "-0.0",
        "007.50",
        ".",
        "-.",
        "-.5",
        "-5.",
        "1-1",
    ],
)
def test_scores_that_are_easily_misread(score: str) -> None:
    require_same(f"1 Q0 a 1 2.5 tag\n1 Q0 b 2 {score} tag\n".encode())


@given(st.lists(plain_numbers.map(str) | odd_numbers | st.floats().map(repr), min_size=1, max_size=6))
def test_scores_of_any_form_are_read_as_numbers_or_not_at_all(scores: list[str]) -> None:
    require_same("".join(f"1 Q0 d{at} 1 {score} tag\n" for at, score in enumerate(scores)).encode())


@given(st.lists(st.tuples(st.integers(0, 10**10), st.booleans()), min_size=1, max_size=8), st.integers(0, 7))
def test_decimal_numbers_are_the_nearest_doubles(numbers: list[tuple[int, bool]], decimals: int) -> None:
    texts = []
    for digits, negative in numbers:
        whole, rest = divmod(digits, 10**decimals)
        texts.append(f"{'-' * negative}{whole}" + (f".{rest:0{decimals}}" if decimals else ""))
    data = "".join(f"1 Q0 d{at} 1 {text} tag\n" for at, text in enumerate(texts)).encode()
    rows = rows_of(Source("file", data))
    assert rows is not None
    assert [repr(score) for score in rows.scores.tolist()] == [repr(float(text)) for text in texts]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"1 Q0 d 1 2.5 tag",
        b"1 Q0 d 1 2.5 tag\r\n",
        b"1\tQ0\td\t1\t2.5\ttag\n",
        b" 1 Q0 d 1 2.5 tag\n",
        b"1 Q0  1 2.5 tag\n",
        b"1 Q0 d 1 2.5\n1 Q0 d 1 2.5 tag more\n",
        b"1 Q0 d 1 2.5 tag\n\n",
        b"# a comment of six words\n",
        b"1 Q0 d 1 2.5 tag 1 Q0 d 1 2.5 tag\n",
        *("1 Q0 d 1 2.5 tag\n".replace(field, "é").encode() for field in ("Q0", "d", "2.5", "tag")),
        b"1 Q0 \xff 1 2.5 tag\n",
        "é Q0 d 1 2.5 tag\n".encode(),
        "1 Q0 d é 2.5 tag\n".encode(),
        b"1 Q0 d 1 2.5 tag\n1 Q0 d 1 two tag\n",
        b"1 Q0 d 1 2.5\n1 tag Q0 d 1 2.5 tag\n",
    ],
)
def test_what_is_not_of_the_usual_form(content: bytes) -> None:
    assert rows_of(Source("file", content)) is None


def test_run_that_was_read_makes_its_frame_when_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "one.run"
    path.write_bytes(b"2 Q0 b 1 2.5 tag\n2 Q0 a 2 1.5 tag\n1 Q0 a 1 -1.5 other\n2 Q0 a 3 0.5 tag\n")
    frame = pl.DataFrame(
        {"topic": ["2", "2", "1", "2"], "docno": ["b", "a", "a", "a"], "score": [2.5, 1.5, -1.5, 0.5]}
    )
    run, expected = read_run(path), Run("one", frame, "tag")
    assert (len(run), run.topics, run.scores().tolist()) == (4, ["2", "1"], [2.5, 1.5, -1.5, 0.5])
    assert [(notice.count, notice.first_line) for notice in run.notices] == [(1, 4), (1, 3)]
    keys = run.row_keys()
    assert pickle.loads(pickle.dumps(run)) == expected == run
    assert run.frame is run.frame
    assert run.row_keys().keys.tolist() == keys.keys.tolist() == expected.row_keys().keys.tolist()
    assert (len(run), run.topics, run.scores().tolist()) == (4, ["2", "1"], [2.5, 1.5, -1.5, 0.5])
    assert replace(read_run(path), name="two").frame.equals(frame)
    with pytest.raises(AttributeError, match="no 'score'"):
        _ = run.score


texts = st.lists(
    st.text(max_size=5)
    | st.text("aé", min_size=28, max_size=70)
    | st.sampled_from(["", "a", "a\0", "b" * 64]),
    max_size=12,
)


@given(texts, texts)
def test_texts_are_equal_and_hashed_as_texts(some: list[str], others: list[str]) -> None:
    one, other = (Texts.of(pl.Series(each, dtype=pl.String)) for each in (some, others))
    assert one.read() == some
    pairs = [(a, b) for a in range(len(some)) for b in range(len(others))]
    rows, their_rows = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    expected = [some[a] == others[b] for a, b in pairs]
    assert one.equal(rows, other, their_rows).tolist() == expected
    hashes, their_hashes = one.hashes(1), other.hashes(1)
    assert (hashes[rows] == their_hashes[their_rows]).tolist() == expected
    assert one.changes().tolist() == [at for at in range(len(some)) if not at or some[at] != some[at - 1]]


def test_hashes_of_ids_that_differ_in_one_or_two_signs_differ() -> None:
    ids = [f"doc{a}-aaaaaaaaaaa{b}-aaaa{c}" for a in "abcdefgh" for b in range(100) for c in range(100)]
    hashes = Texts.of(pl.Series(ids)).hashes(0)
    assert len(set(hashes.tolist())) == len(ids)
    for shift in (0, 16, 44):  # any twenty bits of them differ as random ones do
        bits = hashes >> np.uint64(shift) & np.uint64(2**20 - 1)
        filled = len(set(bits.tolist())) / 2**20
        assert shift == 0 or abs(filled - (1 - np.exp(-len(ids) / 2**20))) < 0.02
