"""Imports: every form, duplicates, unknown ids, phases from blocks, whole logs, and all or nothing."""

import gzip
import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duelpool.campaign import Campaign
from duelpool.campaign.exports.files import write_csv, write_log
from duelpool.campaign.imports import importer as intake_module
from duelpool.campaign.imports.batch import Changed
from duelpool.campaign.imports.importer import import_file
from duelpool.cli import app
from duelpool.cli.campaign.importing import ranges
from duelpool.errors import BadFile, BadParameter, DuelpoolError
from duelpool.files import read_qrels
from duelpool.records import Answer, Judgment, Outcome, Pool
from duelpool.store import Reading, Store, log, open_store
from duelpool.store.holdings import TestPair
from duelpool.testing.stores import audit
from support.campaigns import judge_all, make_campaign


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "campaign.db", create=True) as opened:
        yield opened


def file_of(tmp_path: Path, *lines: str, name: str = "given.txt") -> Path:
    path = tmp_path / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def winners(campaign: Campaign, topic: str) -> list[str | None]:
    return [judgment.winner for judgment in campaign.judgments(topic)]


def lines_in(store: Store) -> int:
    return int(store.read(lambda c: c.exec_driver_sql("select count(*) from log").scalar_one()))


# ---- forms


@pytest.mark.parametrize(
    "lines",
    [
        ("one a b a", "one c b c"),
        ("one a b", "one c b"),
        ("one 1 1 a 1", "one 1 1 b 0", "one 2 1 c 1", "one 2 1 b 0"),
        (
            '{"topic": "one", "left": "a", "right": "b", "outcome": "left"}',
            '{"event": "judgment", "topic": "one", "left": "c", "right": "b", "outcome": "left"}',
        ),
        ("Assessor,Topic,A,B,Winner", "them,one,a,b,a", ",one,c,b,c"),
        ("topic\tright\tleft\toutcome\tseconds", "one\tb\ta\tleft\t2.5", "one\tb\tc\tleft\t"),
    ],
    ids=["pairs", "winners", "trec", "jsonl", "commas", "tabs"],
)
def test_every_form_of_preferences(store: Store, tmp_path: Path, lines: tuple[str, ...]) -> None:
    campaign = make_campaign(store, strategy="allpairs")
    taken = import_file(campaign, file_of(tmp_path, *lines), assessor="them")
    assert (taken.judgments, taken.topics, taken.others) == (2, 1, 0)
    assert winners(campaign, "one") == ["a", "c"]
    assert {judgment.assessor for judgment in campaign.judgments("one")} == {"them"}
    assert campaign.live.state("one").position == lines_in(store) == 2


def test_columns_have_all_that_a_table_of_judgments_has(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, {"one": "abc", "two": "abc"}, strategy="allpairs", ties=True)
    judge_all(campaign)
    campaign.retract("one", [1], "a slip")
    table = tmp_path / "judgments.csv"
    write_csv(campaign, table)
    other = make_campaign(store, {"one": "abc", "two": "abc"}, name="other", strategy="allpairs", ties=True)
    taken = import_file(other, table)
    assert [(notice.what, notice.count) for notice in taken.notices] == [
        ("judgments that don't count left out", 1)
    ]

    def known(of: Campaign) -> list[tuple[object, ...]]:
        return [
            (each.topic, each.left, each.right, each.outcome, each.assessor, each.seconds, each.sides_known)
            for topic in ("one", "two")
            for each in of.judgments(topic)
        ]

    assert known(other) == known(campaign)


def test_a_bad_row_of_a_table_is_refused_with_its_line(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, strategy="allpairs")
    for row, problem in (
        ("one,a,b,b,x", "the header has 4"),
        ("one,a,b,sideways", "no outcome called 'sideways'"),
        ("one,a,x,left", "'x'"),
    ):
        path = file_of(tmp_path, "topic,left,right,outcome", "one,a,b,left", row, name="table.csv")
        with pytest.raises(BadFile, match=problem) as refused:
            import_file(campaign, path)
        assert str(refused.value).startswith("table.csv:3:") or "table.csv:3:" in str(refused.value)
    assert lines_in(store) == 0


def test_fields_of_json_lines_are_kept(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, strategy="allpairs")
    row = {
        "topic": "one", "left": "a", "right": "b", "outcome": "definitely-left", "kind": "definite",
        "assessor": "anna", "seconds": 3.5, "note": "clear", "confidence": 0.9, "propensity": 0.25,
        "sides_known": False, "strategy": "other/2", "question": "theirs", "seq": 77,
    }  # fmt: skip
    import_file(campaign, file_of(tmp_path, json.dumps(row)), assessor="unnamed")
    (judgment,) = campaign.judgments("one")
    assert (judgment.outcome, judgment.assessor, judgment.seconds, judgment.note) == (
        Outcome.DEFINITELY_LEFT, "anna", 3.5, "clear",
    )  # fmt: skip
    assert (judgment.confidence, judgment.propensity, judgment.sides_known, judgment.strategy) == (
        0.9,
        0.25,
        False,
        "other/2",
    )
    assert judgment.seq == 1
    assert judgment.question != "theirs"


def test_rows_of_a_gzipped_file(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, strategy="allpairs")
    path = tmp_path / "given.gz"
    path.write_bytes(gzip.compress(b"# a comment\none a b a\n\none a c c\none b c b\none a d a\n"))
    import_file(campaign, path, rows=[(1, 1), (3, 4)])
    assert winners(campaign, "one") == ["a", "b", "a"]


# ---- what doesn't fit


def test_duplicates_count_for_the_item_that_is_judged_for_them(store: Store, tmp_path: Path) -> None:
    pool = Pool("one", ("a", "b", "c"), twins={"a": ("a2", "a3")})
    campaign = make_campaign(store, [pool], strategy="allpairs")
    taken = import_file(campaign, file_of(tmp_path, "one a2 b a2", "one a a3 a", "one a2 a3 a3", "one b c c"))
    assert [(j.left, j.right) for j in campaign.judgments("one")] == [("a", "b"), ("b", "c")]
    assert {notice.what: notice.count for notice in taken.notices} == {
        "judgments of duplicates, counted for the item that is judged for them": 1,
        "judgments between duplicates dropped": 2,
    }


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("six a b a", ":4: The campaign has no topic 'six'."),
        ("one a zz a", ":4: The pool of topic 'one' has no item 'zz'."),
    ],
)
def test_unknown_ids_are_refused_with_their_line_or_counted(
    store: Store, tmp_path: Path, line: str, problem: str
) -> None:
    campaign = make_campaign(store, strategy="allpairs")
    path = file_of(tmp_path, "# comment", "one a b a", "", line, "one b c b")
    with pytest.raises(BadFile) as refused:
        import_file(campaign, path)
    assert f"given.txt{problem}" in str(refused.value)
    assert lines_in(store) == 0
    taken = import_file(campaign, path, skip_unknown=True)
    assert taken.judgments == 2
    assert any("left out" in notice.what and notice.first_line == 4 for notice in taken.notices)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"event": "hello", "topic": "one"}', ":2: There is no event called 'hello'"),
        ('{"event": "release"}', ':2: The field "topic" is missing'),
        ('{"event": "retraction", "topic": "one"}', ':2: The field "refers_to"'),
        ('{"event": "retraction", "topic": "one", "refers_to": 9}', "refers to line 9"),
        ('{"event": "phase-closed", "topic": "one", "phase": "x", "survivors": "a"}', ":2: \"survivors\" must"),
        ('{"event": "phase-closed", "topic": "one", "phase": "x", "survivors": ["a"]}', ":2: This line doesn't follow"),
        ('{"topic": "one", "left": "a", "right": "b"}', ':2: The field "outcome"'),
        ('{"topic": "one", "left": "a", "right": "b", "outcome": "left", "told": 3}', ':2: "told"'),
        ('{"topic": "one", "left": "a", "right": "o", "outcome": "left", "test_pair": "x"}', "no test pair 'x'"),
        ("{", ":2: This is not valid JSON"),
    ],
)  # fmt: skip
def test_wrong_lines_are_refused_and_nothing_is_written(
    store: Store, tmp_path: Path, line: str, problem: str
) -> None:
    campaign = make_campaign(store)
    good = '{"topic": "one", "left": "a", "right": "b", "outcome": "left", "seq": 1, "phase": "final-1"}'
    with pytest.raises(DuelpoolError) as refused:
        import_file(campaign, file_of(tmp_path, good, line))
    assert problem in str(refused.value)
    assert lines_in(store) == 0


@pytest.mark.parametrize("rows", [[(0, 3)], [(3, 2)], [(1, 5), (4, 6)], [(1, 99)]])
def test_invalid_row_ranges_are_refused(store: Store, tmp_path: Path, rows: list[tuple[int, int]]) -> None:
    campaign = make_campaign(store)
    with pytest.raises(DuelpoolError, match=r"Rows|rows"):
        import_file(campaign, file_of(tmp_path, *["one a b a"] * 8), rows=rows)


def test_file_without_a_line_of_the_campaign_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="No line of the file"):
        import_file(make_campaign(store), file_of(tmp_path, "six a b a"), skip_unknown=True)


def test_judgments_made_during_an_import_are_kept(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = make_campaign(store, strategy="allpairs")
    plan = intake_module._plan
    tries: list[int] = []

    def planned_then_judged(*given: object, **more: object) -> object:
        planned = plan(*given, **more)  # type: ignore[arg-type]
        if not tries:
            campaign.add_judgments([Judgment("one", "d", "e", Outcome.LEFT)])
        tries.append(1)
        return planned

    monkeypatch.setattr(intake_module, "_plan", planned_then_judged)
    import_file(campaign, file_of(tmp_path, "one a b a"))
    assert len(tries) == 2
    assert winners(campaign, "one") == ["d", "a"]

    def never_first(*given: object, **more: object) -> object:
        planned = plan(*given, **more)  # type: ignore[arg-type]
        campaign.add_judgments([Judgment("one", "d", "e", Outcome.LEFT)])
        return planned

    monkeypatch.setattr(intake_module, "_plan", never_first)
    with pytest.raises(Changed, match="judged during every try"):
        import_file(campaign, file_of(tmp_path, "one b a a"))


# ---- phases


def test_judgments_without_a_phase_are_counted(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, {"one": "abc"})
    taken = import_file(campaign, file_of(tmp_path, "one a b a"))
    assert "can't score" in taken.notices[0].what
    with pytest.raises(BadParameter, match="has no phases"):
        import_file(
            make_campaign(store, {"one": "abc"}, strategy="allpairs", name="other"),
            file_of(tmp_path, "one a b a"),
            phases="blocks",
        )


def blocks(items: str, *pairs_of_phases: list[tuple[str, str]]) -> list[str]:
    """Return rows of topic one, phase by phase, with a row of another topic after each phase."""
    rows: list[str] = []
    for other, pairs in zip(("two", "three"), pairs_of_phases, strict=True):
        rows += [f"one {a} {b} {min(a, b)}" for a, b in pairs] + [f"{other} a b a"]
    return rows


def test_blocks_become_phases_and_the_rule_names_survivors(store: Store, tmp_path: Path) -> None:
    items = "abcdefgh"
    ring = [(items[at], items[(at + step) % 8]) for at in range(8) for step in (1, 2)]
    pools = {"one": items, "two": "ab", "three": "ab"}
    campaign = make_campaign(store, pools, strategy="prefbest:n=3,m=6")
    half = "abcdef"  # in this ring, who won at least half of the games
    wins = {item: sum(item == min(pair) for pair in ring if item in pair) for item in items}
    assert sorted(item for item in items if 2 * wins[item] >= 4) == list(half)
    rows = blocks(items, ring, list(combinations(half, 2)))
    taken = import_file(campaign, file_of(tmp_path, *rows), phases="blocks")
    state = campaign.live.state("one")
    assert state.closed_in_log == ("prune-1", "final-1")
    closing = next(line for line in state.lines if line.event == log.PHASE_CLOSED)
    assert set(closing.survivors) == set(half)
    assert campaign.result("one").levels == (*((item,) for item in half), tuple("gh"))
    assert campaign.done
    assert taken.closings == 4
    assert_replays(store, campaign)


def assert_replays(store: Store, campaign: Campaign) -> None:
    fresh = Campaign.open(store, campaign.name)
    for topic in campaign.live.heads():
        assert fresh.result(topic) == campaign.result(topic)
        assert fresh.live.state(topic).strategy.ask(99) == campaign.live.state(topic).strategy.ask(99)


def test_second_import_continues_the_phases_of_the_first(store: Store, tmp_path: Path) -> None:
    items = "abcdefgh"
    ring = [(items[at], items[(at + step) % 8]) for at in range(8) for step in (1, 2)]
    campaign = make_campaign(store, {"one": items}, strategy="prefbest:n=3,m=6")
    import_file(campaign, file_of(tmp_path, *(f"one {a} {b} {min(a, b)}" for a, b in ring)), phases="blocks")
    campaign.enrol("p")
    question = campaign.next_question("p")
    assert question is not None
    assert question.phase == "final-1"
    campaign.give_back(question.id, "p")
    final = combinations("abcdef", 2)
    import_file(campaign, file_of(tmp_path, *(f"one {a} {b} {a}" for a, b in final)), phases="blocks")
    assert campaign.done


def test_whole_block_decides_a_phase_that_closes_early(store: Store, tmp_path: Path) -> None:
    """All pairs are judged, more than the strategy would have asked; the last rows turn d's luck."""
    items = "abcdefgh"
    campaign = make_campaign(store, {"one": items}, strategy="prefbest:n=2,m=3")
    asked = {proposal.pair for proposal in campaign.live.state("one").strategy.ask(99)}
    pairs = sorted(combinations(items, 2), key=lambda pair: pair not in asked)
    rows = [f"one {a} {b} {a}" for a, b in pairs]
    assert len(asked) < len(pairs)
    import_file(campaign, file_of(tmp_path, *rows), phases="blocks")
    closing = next(line for line in campaign.live.state("one").lines if line.event == log.PHASE_CLOSED)
    assert set(closing.survivors) == set("abcd")
    assert_replays(store, campaign)


def test_log_with_phases_refuses_blocks(store: Store, tmp_path: Path) -> None:
    path = file_of(tmp_path, '{"event": "release", "topic": "one", "assignment": "x"}')
    with pytest.raises(BadParameter, match="closes its phases itself"):
        import_file(make_campaign(store), path, phases="blocks")


# ---- whole logs


@pytest.mark.parametrize("strategy", ["prefbest:n=3,m=5", "swissfinals"])
def test_a_whole_log_moves_to_another_campaign(store: Store, tmp_path: Path, strategy: str) -> None:
    pools = {"one": "abcdefghij", "two": "abcd"}
    known = [TestPair(f"k{n}", "one", "a", f"off{n}") for n in range(9)]
    first = make_campaign(store, pools, strategy=strategy, judges="crowd", known=known)
    for name in ("w1", "w2", "w3"):
        first.enrol(name, "crowd")
        assignment = first.next_assignment(name)
        assert assignment is not None
        for question in assignment.questions:
            assert question.right is not None
            first.answer(
                question.id, name, Answer(Outcome.LEFT if question.left < question.right else Outcome.RIGHT)
            )
        if name != "w3":  # the third one's answers are still held
            first.finish(assignment.id)
    judge_all(first)
    first.retract("one", [1, 2], "mistaken")
    write_log(first, tmp_path / "log.jsonl")
    second = make_campaign(store, pools, strategy=strategy, judges="crowd", known=known, name="second")
    taken = import_file(second, tmp_path / "log.jsonl")
    assert taken.judgments + taken.others == len((tmp_path / "log.jsonl").read_text().splitlines())
    for topic in pools:
        mine, theirs = first.live.state(topic), second.live.state(topic)
        assert mine.strategy.result() == theirs.strategy.result()
        assert mine.strategy.ask(99) == theirs.strategy.ask(99)
        assert mine.closed_in_log == theirs.closed_in_log
        assert mine.counts == theirs.counts
        assert [j.winner for j in mine.held()] == [j.winner for j in theirs.held()]


def test_a_log_of_other_phases_is_refused(store: Store, tmp_path: Path) -> None:
    first = make_campaign(store, {"one": "abcdefghij"}, strategy="prefbest:n=3,m=5")
    judge_all(first)
    write_log(first, tmp_path / "log.jsonl")
    second = make_campaign(store, {"one": "abcdefghij"}, strategy="prefbest:m=10", name="second")
    judge_all(second)
    before = lines_in(store)
    with pytest.raises(BadFile, match="doesn't follow from the campaign's log"):
        import_file(second, tmp_path / "log.jsonl")
    assert lines_in(store) == before


def test_retraction_of_a_skipped_line_is_skipped_too(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, strategy="allpairs")
    rows = [
        {"topic": "one", "left": "a", "right": "stranger", "outcome": "left", "seq": 1},
        {"topic": "one", "left": "a", "right": "b", "outcome": "left", "seq": 2},
        {"event": "retraction", "topic": "one", "refers_to": 1, "seq": 3},
        {"event": "retraction", "topic": "one", "refers_to": 2, "seq": 4},
        {"event": "restoration", "topic": "one", "refers_to": 2, "seq": 5},
    ]
    taken = import_file(campaign, file_of(tmp_path, *map(json.dumps, rows)), skip_unknown=True)
    assert (taken.judgments, taken.others) == (1, 2)
    assert winners(campaign, "one") == ["a"]


# ---- by command line


def call(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_ranges_as_they_are_written() -> None:
    assert ranges("1-9713, 10698-11681,20000") == [(1, 9713), (10698, 11681), (20000, 20000)]
    for wrong in ("", "a", "1-", "-5", "1,,2", "1-2-3"):
        with pytest.raises(BadParameter, match="no range"):
            ranges(wrong)


@pytest.mark.long
def test_the_released_labels_come_out_of_the_real_judgments(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By command line alone: pool, import with phases, export; 50 of 50 topics as they were released."""
    monkeypatch.chdir(tmp_path)
    judgments = str(data / "dl21" / "judgments.txt")
    call("pool", "--prefs", judgments, "--strategy", "prefbest:final_phases=2", "-o", "dl21.db")
    rows = "1-9713,10698-11681"
    output = call("import", "dl21.db", judgments, "--rows", rows, "--phases", "blocks", "--json")
    assert json.loads(output) == {
        "judgments": 10697,
        "other_lines": 178,
        "topics": 50,
        "phases_closed": 178,
        "notices": {},
    }
    call("export", "dl21.db", "--as", "qrels", "-o", "dl21.qrels")
    released = read_qrels(data / "dl21" / "Combined-I+II.qrels").grades()
    assert read_qrels("dl21.qrels").grades() == released
    assert len(released) == 50


def test_same_rows_are_imported_once(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, strategy="allpairs")
    file = file_of(tmp_path, "one a b a", "one c b c")
    import_file(campaign, file)
    with pytest.raises(BadFile, match="imported before") as caught:
        import_file(campaign, file)
    assert "--again" in str(caught.value)
    assert lines_in(store) == 2
    import_file(campaign, file, rows=[(1, 1)])
    import_file(campaign, file, again=True)
    import_file(campaign, file, again=True)
    assert lines_in(store) == 7


def test_imported_judgments_hold_slots_and_retracted_ones_none(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, {"one": "ab"}, strategy="allpairs:repeats=3", cap=3)
    rows: list[dict[str, object]] = [
        {"topic": "one", "left": "a", "right": "b", "outcome": "left", "assessor": "anna", "seq": 1},
        {"topic": "one", "left": "a", "right": "b", "outcome": "left", "assessor": "bert", "seq": 2},
        {"event": "retraction", "topic": "one", "refers_to": 1, "seq": 3},
    ]
    import_file(campaign, file_of(tmp_path, *map(json.dumps, rows)))
    for person in ("anna", "bert", "carla", "dora"):
        campaign.enrol(person)
    assert campaign.next_question("bert") is None
    for person in ("anna", "carla"):
        question = campaign.next_question(person)
        assert question is not None
        campaign.answer(question.id, person, Answer(Outcome.LEFT))
    assert campaign.next_question("dora") is None
    assert len(campaign.judgments("one")) == 3


# ---- large files


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every file with more than three lines be a large one."""
    monkeypatch.setattr(intake_module, "AT_ONCE", 3)
    monkeypatch.setattr(intake_module, "BREATH_SECONDS", 0.0)


def long_file(tmp_path: Path) -> Path:
    """Return a file of three topics: two of judgments alone, one with a retraction."""
    rows: list[dict[str, object]] = [
        {"topic": topic, "left": left, "right": right, "outcome": "left", "assessor": f"p{at}", "seq": at}
        for topic in ("one", "two", "three")
        for at, (left, right) in enumerate(combinations("abcde", 2), 1)
    ]
    rows.append({"event": "retraction", "topic": "three", "refers_to": 2, "seq": 11, "reason": "slip"})
    return file_of(tmp_path, *map(json.dumps, rows), name="long.jsonl")


POOLS = {"one": "abcde", "two": "abcde", "three": "abcde"}


def _by(line: log.Line) -> str:
    return line.judgment.assessor if line.judgment is not None else ""


def logged(campaign: Campaign) -> list[tuple[object, ...]]:
    """Return what the log says, without times and ids."""

    def look(tx: Reading) -> list[tuple[object, ...]]:
        return [
            (
                line.topic,
                line.seq,
                line.event,
                line.refers_to,
                line.judgment and line.judgment.pair,
                _by(line),
            )
            for topic in POOLS
            for line in log.read_lines(tx, topic)
        ]

    return campaign.read(look)


def interrupt_import(
    campaign: Campaign, file: Path, stop_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Begin an import that ends after some of its writes."""
    database, left = campaign.store.database, stop_after
    write = database.write

    def dies(work: object) -> object:
        nonlocal left
        if not left:
            raise KeyboardInterrupt
        left -= 1
        return write(work)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(database, "write", dies)
        with pytest.raises(KeyboardInterrupt):
            import_file(campaign, file)


@pytest.mark.parametrize("stop_after", range(1, 11))
def test_interrupted_import_resumes(
    store: Store, tmp_path: Path, in_pieces: None, monkeypatch: pytest.MonkeyPatch, stop_after: int
) -> None:
    campaign = make_campaign(store, POOLS, strategy="allpairs")
    other = make_campaign(store, POOLS, strategy="allpairs", name="undisturbed")
    file = long_file(tmp_path)
    import_file(other, file)
    interrupt_import(campaign, file, stop_after, monkeypatch)
    assert (
        len(logged(campaign)) < 31 or stop_after == 10
    )  # all is written then, but the import is not marked done
    taken = import_file(campaign, file)
    assert (taken.judgments, taken.others, taken.topics) == (30, 1, 3)
    assert logged(campaign) == logged(other)
    assert audit(store, campaign.id, 10**6) == []
    with pytest.raises(BadFile, match="imported before"):
        import_file(campaign, file)


def test_assessors_judge_between_the_pieces_of_an_import(
    store: Store, tmp_path: Path, in_pieces: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = make_campaign(store, POOLS, strategy="allpairs", cap=20)
    write, at_work = store.database.write, False

    def judged_first(work: object) -> object:
        nonlocal at_work
        if not at_work:
            at_work = True
            for topic in POOLS:
                campaign.add_judgments([Judgment(topic, "d", "e", Outcome.LEFT, assessor="in between")])
            at_work = False
        return write(work)  # type: ignore[arg-type]

    monkeypatch.setattr(store.database, "write", judged_first)
    with pytest.raises(
        Changed, match="import again: the import continues"
    ):  # 'three' hangs together, and never rests
        import_file(campaign, long_file(tmp_path))
    monkeypatch.setattr(store.database, "write", write)
    import_file(campaign, long_file(tmp_path))
    own = [row for row in logged(campaign) if row[2] == "judgment" and row[5] != "in between"]
    assert len(own) == 30
    assert len(set(own)) == 30
    assert audit(store, campaign.id, 10**6) == []


# ---- lines that are there twice


def judged_log(store: Store, tmp_path: Path, strategy: str) -> list[str]:
    """Return the lines of the log of a campaign that is judged to its end."""
    first = make_campaign(store, {"one": "abcd", "two": "abc"}, strategy=strategy, name="origin")
    judge_all(first)
    write_log(first, tmp_path / "origin.jsonl")
    return (tmp_path / "origin.jsonl").read_text().splitlines()


@pytest.mark.parametrize("strategy", ["prefbest", "topk", "swissfinals", "round-efficient", "allpairs"])
def test_line_of_a_log_that_is_there_twice_is_refused(store: Store, tmp_path: Path, strategy: str) -> None:
    lines = judged_log(store, tmp_path, strategy)
    campaign = make_campaign(store, {"one": "abcd", "two": "abc"}, strategy=strategy, name="second")
    before = lines_in(store)
    whole = [*lines, *lines]
    repeated = [*lines[:3], "", lines[1], *lines[3:]]
    for at, bad, place in ((0, whole, f":{len(lines) + 1}:"), (1, repeated, ":5:")):
        file = file_of(tmp_path, *bad, name=f"bad-{at}.jsonl")
        with pytest.raises(BadFile, match=rf"repeats row {at + 1} \(line {at + 1}\)") as caught:
            import_file(campaign, file)
        assert place in str(caught.value)
        assert "Remove one of them" in str(caught.value)
    closings = [line for line in lines if '"phase-closed"' in line]
    for closing in closings[:1]:
        with pytest.raises(BadFile, match="repeats row"):
            import_file(campaign, file_of(tmp_path, *lines, closing, name="closing.jsonl"))
    assert lines_in(store) == before


def test_judgment_without_seq_is_recognised_by_its_question_time_and_assessor(
    store: Store, tmp_path: Path
) -> None:
    row = {"topic": "one", "left": "a", "right": "b", "outcome": "left", "question": "q7", "assessor": "anna"}
    timed = json.dumps(row | {"time": "2026-01-01T00:00:00Z"})
    campaign = make_campaign(store, strategy="allpairs")
    with pytest.raises(BadFile, match="Row 2 repeats row 1"):
        import_file(campaign, file_of(tmp_path, timed, timed))
    with pytest.raises(BadFile, match="Row 2 repeats row 1"):
        import_file(campaign, file_of(tmp_path, f"[{timed},{timed}]"))
    other = json.dumps(row | {"time": "2026-01-01T00:00:00Z", "assessor": "bert"})
    assert import_file(campaign, file_of(tmp_path, timed, other)).judgments == 2


def test_rows_that_name_no_question_may_repeat(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, strategy="allpairs")
    row = '{"topic": "one", "left": "a", "right": "b", "outcome": "left", "question": "pair-1"}'
    assert import_file(campaign, file_of(tmp_path, row, row)).judgments == 2
    assert import_file(campaign, file_of(tmp_path, "one a b a", "one a b a")).judgments == 2
    assert import_file(campaign, file_of(tmp_path, row, row, row)).judgments == 3


@pytest.mark.parametrize("refers_to", [2, 3, 9])
def test_retraction_refers_to_a_judgment_above_it(store: Store, tmp_path: Path, refers_to: int) -> None:
    rows = [
        {"topic": "one", "left": "a", "right": "b", "outcome": "left", "seq": 1},
        {"event": "retraction", "topic": "one", "refers_to": refers_to, "seq": 2},
        {"topic": "one", "left": "a", "right": "c", "outcome": "left", "seq": 3},
    ]
    with pytest.raises(BadFile, match="isn't in the file as a judgment above it") as caught:
        import_file(make_campaign(store, strategy="allpairs"), file_of(tmp_path, *map(json.dumps, rows)))
    assert ":2:" in str(caught.value)
    assert lines_in(store) == 0


@pytest.mark.parametrize("strategy", ["prefbest", "swissfinals", "allpairs"])
def test_growing_log_counts_once(store: Store, tmp_path: Path, strategy: str) -> None:
    lines = judged_log(store, tmp_path, strategy)
    first = make_campaign(store, {"one": "abcd", "two": "abc"}, strategy=strategy, name="second")
    import_file(first, file_of(tmp_path, *lines[:4], name="part.jsonl"))
    before = lines_in(store)
    known = sum('"event": "judgment"' in line for line in lines[:4])
    with pytest.raises(BadFile, match=f"{known} judgments of the file are in the campaign already") as caught:
        import_file(first, tmp_path / "origin.jsonl")
    assert f"--rows 5-{len(lines)}" in str(caught.value)
    assert lines_in(store) == before
    import_file(first, tmp_path / "origin.jsonl", rows=[(5, len(lines))])
    assert lines_in(store) == 2 * len(lines)
    assert audit(store, first.id, 10**6) == []
    with pytest.raises(BadFile, match="Nothing to do"):
        import_file(first, file_of(tmp_path, *lines, "", name="same-lines.jsonl"))


def test_own_log_is_recognised(store: Store, tmp_path: Path) -> None:
    judged_log(store, tmp_path, "allpairs")
    with pytest.raises(BadFile, match="in the campaign already"):
        import_file(Campaign.open(store, "origin"), tmp_path / "origin.jsonl")


def test_log_counts_again_when_told_so(store: Store, tmp_path: Path) -> None:
    lines = judged_log(store, tmp_path, "allpairs")
    campaign = make_campaign(store, {"one": "abcd", "two": "abc"}, strategy="allpairs", name="second")
    import_file(campaign, file_of(tmp_path, *lines[:2], name="part.jsonl"))
    for _ in range(2):
        assert import_file(campaign, tmp_path / "origin.jsonl", again=True).judgments == len(lines)
    assert lines_in(store) == len(lines) + 2 + 2 * len(lines)
    assert audit(store, campaign.id, 10**6) == []


def test_interrupted_import_of_a_log_resumes(
    store: Store, tmp_path: Path, in_pieces: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = judged_log(store, tmp_path, "allpairs")
    campaign = make_campaign(store, {"one": "abcd", "two": "abc"}, strategy="allpairs", name="second")
    interrupt_import(campaign, tmp_path / "origin.jsonl", 2, monkeypatch)
    assert len(lines) < lines_in(store) < 2 * len(lines)
    import_file(campaign, tmp_path / "origin.jsonl")
    assert lines_in(store) == 2 * len(lines)
