"""Every reader of files on files that are nearly right: no crash, and an error names the file.

python tests/fuzz_files.py [--seconds 600] [--reader run]

A short form runs with the tests. The table holds every function `read_...` that takes a file, imports and uploads.
"""

import argparse
import atexit
import gzip
import io
import json
import re
import shutil
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from duelpool.budget.plans.judged import read_judged
from duelpool.budget.plans.plan import read_plan
from duelpool.budget.plans.propensities import read_propensities
from duelpool.budget.units.metrics import parse_metric
from duelpool.budget.units.populations import read_weights
from duelpool.budget.units.sources import read_counts
from duelpool.campaign import Campaign, Settings
from duelpool.campaign.imports.importer import import_file
from duelpool.campaign.settings.file import read_changes, read_settings
from duelpool.errors import DuelpoolError
from duelpool.evaluation.sources import read_truth
from duelpool.files import (
    read_answers,
    read_duplicates,
    read_judgments,
    read_passages,
    read_pools,
    read_preferences,
    read_qrels,
    read_run,
    read_topics,
    read_votes,
)
from duelpool.files.assessed import read_assessed
from duelpool.files.run_names import read_groups
from duelpool.judges.llm.prompts import read_prompt
from duelpool.judges.simulated import read_matrix
from duelpool.preferences.prior import read_prior
from duelpool.records import Topic
from duelpool.setup.answer_tests import read_answer_tests
from duelpool.setup.inputs import read_files
from duelpool.setup.test_pairs import read_test_pairs
from duelpool.setup.uploads import UploadFolder
from duelpool.store import open_store
from duelpool.submissions import check_runs
from support.campaigns import make_campaign

RUN = b"one Q0 a 1 2.5 tag\none Q0 b 2 1.5 tag\ntwo Q0 c 1 0.5 tag\n"
QRELS = b"one 0 a 2\none 0 b 0\ntwo 0 c 1\n"
PAIRS = b"one a b a\none c b c\ntwo a b b\n"
WINNERS = b"one a b\ntwo c b\n"
LEVELS = b"one 1 1 a 1\none 1 1 b 0\none 2 1 c 1\none 2 1 b 0\n"
LINES = b"\n".join(
    json.dumps(row).encode()
    for row in (
        {
            "topic": "one",
            "left": "a",
            "right": "b",
            "outcome": "left",
            "seq": 1,
            "assessor": "p1",
            "seconds": 2.5,
        },
        {
            "topic": "one",
            "left": "b",
            "right": "c",
            "outcome": "tie",
            "seq": 2,
            "note": "x",
            "phase": "final-1",
        },
        {"event": "retraction", "topic": "one", "refers_to": 1, "seq": 3, "reason": "slip"},
        {"event": "phase-closed", "topic": "one", "phase": "final-1", "survivors": ["a", "b"], "seq": 4},
        {"topic": "two", "left": "a", "outcome": "grade", "grade": 1, "kind": "grade"},
    )
)
ASSESSED = b"topic\tleft\tright\twinner\tassessor\none\ta\tb\ta\tp1\none\tb\tc\tb\tp2\n"
JUDGMENTS = b"\n".join(LINES.splitlines()[:2])
TOPICS = b'{"id": "one", "text": "Who is it?", "tags": ["x"], "weight": 2}\n{"id": "two", "text": "Where?"}\n'
TABBED = b"one\tWho is it?\ntwo\tWhere?\n"
XML = b"<topics><topic number='1'><query>Who?</query></topic></topics>"
PASSAGES = b'{"id": "a", "text": "A text.", "format": "markdown"}\n{"id": "b", "text": "B", "title": "T"}\n'
POOLS = b'{"topic": "one", "items": ["a", "b"]}\n{"topic": "two", "items": ["c"]}\n'
TWINS = b'{"topic": "one", "item": "a", "twin_of": "b"}\n'
SETTINGS = b'strategy = "prefbest"\nseed = 1\ncap = 3\nsteps = ["consent"]\n'
AS_JSON = b'{"strategy": "prefbest", "seed": 1, "languages": ["en"], "check": []}'
MATRIX = b"0.5 0.7\n0.3 0.5\n"
WEIGHTS = b"one a s1 0.5\none b s1 0.25\ntwo c s2 1\n"
COUNTS = b"one 3\ntwo 2.5\n"
PLAN = b"\n".join(
    json.dumps(row).encode()
    for row in (
        {
            "plan": 1,
            "metric": "DCG@10",
            "goal": "absolute",
            "design": "hedged",
            "draw": "systematic",
            "estimator": "difference",
            "n": 1,
            "budget": 1,
            "seed": 1,
            "top": 1.0,
            "systems": ["s"],
            "topics": ["one"],
            "topic_weights": None,
            "repeats": 1,
            "round": 1,
            "questions": 1,
            "units": 2,
            "price": 0,
            "relevant": None,
            "outlook": [{"name": "s", "width": None, "unreachable": 0.0}],
            "notes": [],
            "propensities": "beside.txt",
        },
        {"topic": "one", "item": "a", "times": 1, "expected": 0.5},
    )
)
PROMPT = b"You judge.\n---\n{question}\n{left}\n{right}\n"
LIST_PROMPT = b"You judge.\n---\n{question}\n{items}\n"
GROUPS = b"bm25 mine\nother theirs\n"
PROPENSITIES = b"one a 0.5 - 0.1\none b known 1 0.2\n"

ANSWERS = b"\n".join(
    json.dumps(row).encode()
    for row in (
        {"question_id": "one", "question": "Who?", "system": "a", "answer": "She.", "citations": ["A text."]},
        {"question_id": "one", "question": "Who?", "system": "b", "answer": "He.", "tags": ["x"]},
        {"question_id": "two", "question": "Where?", "system": "a", "answer": "Here.", "reference": "There."},
    )
)
ANSWER_TABLE = b"question,system,answer\nWho?,a,She.\nWho?,b,He.\n"
TREC_RAG = (
    b'{"run_id": "a", "topic_id": "1", "topic": "Who?", "references": ["d1"], '
    b'"answer": [{"text": "She.", "citations": [0]}]}\n'
)
VOTES = b"\n".join(
    json.dumps(row).encode()
    for row in (
        {"question_id": "one", "model_a": "a", "model_b": "b", "winner": "model_a", "judge": "p1"},
        {"question_id": "two", "model_a": "b", "model_b": "c", "winner": "tie (bothbad)", "judge": "p2"},
    )
)
VOTE_TABLE = b"left,right,winner,worker,prompt\na,b,left,p1,Who?\nb,c,tie,p2,Who?\n"
ANSWER_TESTS = b'{"question_id": "one", "better": "She.", "worse": "They."}\n'


@cache
def _campaign() -> Campaign:
    folder = tempfile.mkdtemp(prefix="dp-fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    store = open_store(Path(folder, "c.db"), create=True)
    atexit.register(store.close)
    return make_campaign(store, {"one": "abc", "two": "abc"}, strategy="allpairs", ties=True)


def _import(path: Path) -> Any:
    return import_file(_campaign(), path, skip_unknown=True, again=True)


def _zipped(**members: bytes) -> bytes:
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as archive:
        for kind, data in members.items():
            archive.writestr(zipfile.ZipInfo(f"{kind}/given.txt"), data)
    return kept.getvalue()


ZIPPED = _zipped(runs=RUN, qrels=QRELS, topics=TABBED, texts=PASSAGES)


def _upload(kind: str) -> Callable[[Path], Any]:
    """Return what happens to a file that is sent to a draft: it is received, unpacked where it is packed, and read."""

    def take(path: Path) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            uploads = UploadFolder(Path(folder) / "draft")
            name = "given.zip" if kind == "archive" else path.name
            if kind not in ("runs", "qrels", "prefs", "archive"):
                with uploads.receiving("qrels", "grades.txt") as write:
                    write(QRELS)
            with uploads.receiving(kind, name) as write:
                write(path.read_bytes())
            with uploads.without_folder():
                return read_files(uploads.files("none"))

    return take


def _as_parquet(**columns: list[Any]) -> bytes:
    table = io.BytesIO()
    pl.DataFrame(columns).write_parquet(table)
    return table.getvalue()


RUN_TABLE = _as_parquet(qid=["1", "1"], docno=["a", "b"], score=[2.0, 1.0], label=[1, 0])
READERS: dict[str, tuple[Callable[[Path], Any], tuple[bytes, ...]]] = {
    "read_run": (read_run, (RUN, RUN_TABLE)),
    "read_qrels": (read_qrels, (QRELS, RUN_TABLE)),
    "check_runs": (lambda path: check_runs([path]), (RUN,)),
    "read_preferences": (read_preferences, (PAIRS, WINNERS, LEVELS, LINES)),
    "read_assessed": (read_assessed, (JUDGMENTS, LINES, PAIRS, ASSESSED)),
    "read_judgments": (lambda path: list(read_judgments(path)), (JUDGMENTS, LINES)),
    "read_topics": (read_topics, (TOPICS, TABBED, XML)),
    "read_passages": (lambda path: list(read_passages(path)), (PASSAGES, TABBED)),
    "read_pools": (read_pools, (POOLS, QRELS)),
    "read_duplicates": (read_duplicates, (WINNERS, TWINS)),
    "read_truth": (read_truth, (QRELS, PAIRS, LINES)),
    "read_prior": (read_prior, (PAIRS, QRELS, RUN)),
    "read_matrix": (lambda path: read_matrix.__wrapped__(str(path)), (MATRIX,)),
    "read_settings": (lambda path: read_settings(str(path), Settings()), (SETTINGS, AS_JSON)),
    "read_changes": (
        lambda path: read_changes(str(path), Settings()),
        (b"reward = 100\n", b'{"reward": 100}'),
    ),
    "read_prompt": (lambda path: read_prompt(str(path), "preference"), (PROMPT,)),
    "prompt for lists": (lambda path: read_prompt(str(path), "list"), (LIST_PROMPT,)),
    "read_test_pairs": (lambda path: read_test_pairs(path, ("one", "two")), (PAIRS, WINNERS)),
    "read_groups": (lambda path: read_groups(str(path)), (GROUPS,)),
    "read_weights": (read_weights, (WEIGHTS,)),
    "read_counts": (read_counts, (COUNTS,)),
    "read_judged": (lambda path: read_judged(path, parse_metric("DCG@10")), (QRELS, JUDGMENTS)),
    "read_plan": (read_plan, (PLAN,)),
    "read_propensities": (read_propensities, (PROPENSITIES,)),
    "read_answers": (lambda path: read_answers([path]), (ANSWERS, ANSWER_TABLE, TREC_RAG)),
    "read_votes": (read_votes, (VOTES, VOTE_TABLE)),
    "read_answer_tests": (
        lambda path: read_answer_tests(str(path), {"one": Topic("one", "Who?")}),
        (ANSWER_TESTS,),
    ),
    "import": (_import, (PAIRS, LINES, LEVELS, ASSESSED)),
    "upload of a run": (_upload("runs"), (RUN,)),
    "upload of qrels": (_upload("qrels"), (QRELS,)),
    "upload of topics": (_upload("topics"), (TOPICS, TABBED, XML)),
    "upload of texts": (_upload("texts"), (PASSAGES, TABBED)),
    "upload of groups": (_upload("groups"), (GROUPS,)),
    "upload of an archive": (_upload("archive"), (ZIPPED,)),
}
ODD = (
    *(
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"\r",
        b"\r\n",
        b"\t",
        b"\x1f\x8b",
        b"\x0b",
        b"\xc2\x85",
    ),
    *(
        b"nan",
        b"inf",
        b"-inf",
        b"1e999",
        b"-0",
        b"1_0",
        b"99999999999999999999",
        b"0x10",
        b"9" * 400,
        b"1e-400",
    ),
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b"null",
        b"true",
        b"[[[[",
        b"{}",
        b'{"a": ',
        b"\\u0000",
        b"\\ud800",
        b"NaN",
    ),
    *(
        b"#",
        b"=",
        b"'",
        b"<",
        b"&x;",
        b"<!ENTITY",
        b"\xe2\x80\xa8",
        b"\xf0\x9f\x98\x80",
        b" " * 50,
        b"\n" * 5,
    ),
    *(
        b'"seq": -1',
        b'"outcome": "left"',
        b'"grade": 1e400',
        b'"survivors": [1]',
        b'"refers_to": 99',
        b'"told": 1',
    ),
)

_NUMBER = re.compile(rb"(?<![\w.])-?\d+(\.\d+)?(?![\w.])")
ODD_NUMBERS = (
    *(
        b"9" * 400,
        b"-" + b"9" * 400,
        b"9" * 5000,
        b"1e999",
        b"-1e999",
        b"1e-400",
        b"NaN",
        b"Infinity",
        b"-1",
        b"0",
        b"-0",
    ),
    *(
        b"1.5",
        b"9223372036854775808",
        b"18446744073709551616",
        b"2147483648",
        b"1e308",
        b"01",
        b"1_0",
        b"true",
        b"null",
    ),
    *(b'"1"', b"[1]", b"\xc2\xb2", b"\xd9\xa1"),
)
"""What may stand where a file has a number; the last two are a superscript and a digit of another script."""


@st.composite
def nearly_right(draw: st.DrawFn, samples: tuple[bytes, ...]) -> bytes:
    """Draw a file: a sample with some damage, parts of another kind of file, or anything at all."""
    everything = tuple(each for _, more in READERS.values() for each in more)
    if draw(st.integers(0, 19)) == 0:
        return draw(
            st.binary(max_size=300) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))
        )
    data = draw(st.sampled_from(samples) if draw(st.integers(0, 9)) else st.sampled_from(everything))
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 12)))
        what = draw(st.integers(0, 7))
        if what == 0:
            data = data[:at] + draw(st.sampled_from(ODD)) + data[at:]
        elif what == 1:
            data = data[:at] + draw(st.sampled_from(ODD)) + data[end:]
        elif what == 2:
            data = data[:at] + data[end:]
        elif what == 3:
            data = data[:at]
        elif what == 4:
            data = data[:at] + draw(st.binary(max_size=4)) + data[end:]
        elif what == 5:
            lines = data.splitlines(keepends=True)
            data = b"".join(draw(st.permutations(lines))) if len(lines) < 8 else data
        elif what == 6:
            numbers = list(_NUMBER.finditer(data))
            if numbers:
                number = draw(st.sampled_from(numbers))
                data = data[: number.start()] + draw(st.sampled_from(ODD_NUMBERS)) + data[number.end() :]
        else:
            data += draw(st.sampled_from(everything))
    wrapped = draw(st.integers(0, 11))
    if wrapped == 0:
        return gzip.compress(data, mtime=0)
    if wrapped == 1:
        return gzip.compress(data, mtime=0)[: draw(st.integers(1, 60))]
    if wrapped == 2:
        return data.decode("utf-8", "replace").encode("utf-16")
    return data.replace(b"\n", b"\r\n") if wrapped == 3 else data


def try_on(name: str, data: bytes, folder: Path) -> str:
    """Let a reader read a file; return what came of it, or raise what must not be."""
    read, _ = READERS[name]
    path = folder / "given.txt"
    path.write_bytes(data)
    (folder / "beside.txt").write_bytes(PROPENSITIES)
    try:
        read(path)
    except DuelpoolError as error:
        said = str(error)
        if "given" not in said:
            raise AssertionError(f"{name}: an error doesn't name the file: {said}") from error
        return "refused with its line" if re.search(r"given\.txt:\d+", said) else "refused as a whole"
    return "read"


def fuzz(name: str, examples: int, number: int | None, folder: Path) -> Counter[str]:
    """Try so many files on a reader; return how often what came of it. A number makes other files each time."""
    outcomes: Counter[str] = Counter()

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=number is None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(data=nearly_right(READERS[name][1]))
    def attempt(data: bytes) -> None:
        outcomes[try_on(name, data, folder)] += 1

    (attempt if number is None else seed(number)(attempt))()
    return outcomes


def main() -> int:
    """Go round the readers until the time is over; return how many of them crashed."""
    reading = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reading.add_argument("--seconds", type=float, default=600.0)
    reading.add_argument("--reader", choices=READERS, action="append")
    asked = reading.parse_args()
    end = time.monotonic() + asked.seconds
    outcomes: dict[str, Counter[str]] = {name: Counter() for name in asked.reader or READERS}
    crashed: dict[str, BaseException] = {}
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end and len(crashed) < len(outcomes):
            number += 1
            for name in outcomes:
                if name in crashed or time.monotonic() > end:
                    continue
                try:
                    outcomes[name] += fuzz(name, 100, number, Path(folder))
                except BaseException as error:
                    if isinstance(error, KeyboardInterrupt):
                        raise
                    crashed[name] = error
    for name, counts in outcomes.items():
        counted = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
        verdict = (
            f"CRASHED: {type(crashed[name]).__name__}: {crashed[name]}" if name in crashed else "all well"
        )
        print(f"{name}: {counted}: {verdict}", flush=True)
        if name in crashed:
            print("\n".join(getattr(crashed[name], "__notes__", [])), flush=True)
    print(f"{sum(sum(each.values()) for each in outcomes.values())} files, {len(crashed)} readers crashed")
    return len(crashed)


if __name__ == "__main__":
    sys.exit(main())
