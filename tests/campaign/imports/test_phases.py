"""Imports checked against their phases: rows grouped by topic, phases that are too short, finals in any order."""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, groupby
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duelpool.campaign import Campaign
from duelpool.campaign.exports.files import write_log
from duelpool.campaign.imports.importer import import_file
from duelpool.cli import app
from duelpool.errors import BadFile, BadParameter
from duelpool.files import read_qrels
from duelpool.records import Pool
from duelpool.store import Store, log, open_store
from support.campaigns import judge_all, make_campaign

ITEMS = "abcdefgh"
RING = [(ITEMS[at], ITEMS[(at + step) % 8]) for at in range(8) for step in (1, 2)]
HALF = "abcdef"  # who wins half of the ring when the earlier letter wins
RULES = "prefbest:n=3,m=6"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "campaign.db", create=True) as opened:
        yield opened


def rows_of(pairs: list[tuple[str, str]], topic: str = "one") -> list[str]:
    return [f"{topic} {a} {b} {min(a, b)}" for a, b in pairs]


def final(items: str = HALF) -> list[tuple[str, str]]:
    return list(combinations(items, 2))


def interleaved(*lists: list[str]) -> list[str]:
    """Return the rows of several lists in turn, so that hardly two neighbours are of one list."""
    return [row for rows in zip(*lists, strict=True) for row in rows]


def file_of(tmp_path: Path, rows: list[str], name: str = "rows.txt") -> Path:
    path = tmp_path / name
    path.write_text("".join(f"{row}\n" for row in rows))
    return path


def lines_in(store: Store) -> int:
    return int(store.read(lambda c: c.exec_driver_sql("select count(*) from log").scalar_one()))


def refused(campaign: Campaign, path: Path, rows: list[tuple[int, int]] | None = None) -> str:
    with pytest.raises(BadFile) as caught:
        import_file(campaign, path, rows=rows or [], phases="blocks")
    assert lines_in(campaign.store) == 0
    return str(caught.value)


# ---- rows in any order


def test_interleaved_finals_are_grouped_by_topic(store: Store, tmp_path: Path) -> None:
    pools = {"one": "abcdef", "two": "abcdef"}
    campaign = make_campaign(store, pools, strategy="prefbest:final_phases=2")
    rows = interleaved(rows_of(final()), [f"two {a} {b} {b}" for a, b in final()])
    taken = import_file(campaign, file_of(tmp_path, rows * 2), phases="blocks")
    assert (taken.judgments, taken.closings) == (60, 4)
    assert campaign.done
    assert campaign.result("one").levels == tuple((item,) for item in "abcdef")
    assert campaign.result("two").levels == tuple((item,) for item in "fedcba")
    assert Campaign.open(store, campaign.name).result("two") == campaign.result("two")


def test_an_interleaved_pruning_phase_takes_all_rows_of_its_range(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, {"one": ITEMS, "two": ITEMS}, strategy=RULES)
    rows = interleaved(rows_of(RING), rows_of(RING, "two")) + rows_of(final()) + rows_of(final(), "two")
    import_file(campaign, file_of(tmp_path, rows), rows=[(1, 32), (33, 62)], phases="blocks")
    assert campaign.done
    for topic in ("one", "two"):
        assert campaign.live.state(topic).closed_in_log == ("prune-1", "final-1")
        assert campaign.result(topic).levels[-1] == ("g", "h")


def test_phases_that_are_mixed_in_one_range_are_refused(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, {"one": ITEMS}, strategy=RULES)
    message = refused(campaign, file_of(tmp_path, rows_of(RING) + rows_of(final())))
    assert "rows.txt:17: The pair 'a', 'b' of topic 'one' appears twice in phase 'prune-1'" in message
    assert "--rows" in message
    import_file(campaign, tmp_path / "rows.txt", rows=[(1, 16), (17, 31)], phases="blocks")
    assert campaign.result("one").best == ("a",)


def test_ranges_of_rows_are_taken_in_the_given_order(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, {"one": ITEMS}, strategy=RULES)
    path = file_of(tmp_path, rows_of(final()) + rows_of(RING))
    assert "prune-1" in refused(campaign, path, [(1, 15), (16, 31)])
    import_file(campaign, path, rows=[(16, 31), (1, 15)], phases="blocks")
    assert campaign.live.state("one").closed_in_log == ("prune-1", "final-1")
    assert campaign.done


@pytest.mark.parametrize("finals", [1, 2])
def test_a_later_final_takes_the_place_of_one_that_is_left_out(
    store: Store, tmp_path: Path, finals: int
) -> None:
    campaign = make_campaign(store, {"one": "abc"}, strategy=f"prefbest:final_phases={finals}")
    wins = [f"one {a} {b} {w}" for w in "abc" for a, b in final("abc") if w in (a, b)]  # two wins each
    rest = {"a": "one b c b", "b": "one a c c", "c": "one a b a"}
    rows = [row for at, item in enumerate("abc") for row in (*wins[2 * at : 2 * at + 2], rest[item])]
    taken = import_file(campaign, file_of(tmp_path, rows[: 3 * finals + 3]), phases="blocks", skip_finals=1)
    assert {notice.what: notice.count for notice in taken.notices} == {"judgments of finals left out": 3}
    assert (taken.judgments, campaign.done) == (3 * finals, True)
    assert [judgment.phase for judgment in campaign.judgments("one")] == [
        f"final-{at + 1}" for at in range(finals) for _ in range(3)
    ]
    assert set(campaign.result("one").best) == ({"b"} if finals == 1 else {"c"})


def test_finals_are_left_out_only_where_rows_are_read_as_phases(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, {"one": "abc"})
    with pytest.raises(BadParameter, match="--phases blocks"):
        import_file(campaign, file_of(tmp_path, rows_of(final("abc"))), skip_finals=1)


def test_judgments_of_duplicates_are_no_second_judgments_of_their_pair(store: Store, tmp_path: Path) -> None:
    pools = [Pool("one", tuple("abc"), twins={"a": ("a2",)}), Pool("two", tuple("bc"))]
    campaign = make_campaign(store, pools, strategy="prefbest:final_phases=2")
    one = [f"one {x} {y} {x}" for x, y in combinations(["a", "b", "c", "a2"], 2) if {x, y} != {"a", "a2"}]
    two = ["two b c b"]
    rows = [*one[:2], *two, *one[2:]] * 2
    import_file(campaign, file_of(tmp_path, rows), phases="blocks")
    assert campaign.done
    assert Counter(judgment.phase for judgment in campaign.judgments("one")) == {"final-1": 5, "final-2": 5}


# ---- phases that are too short, rows that fit none


@pytest.mark.parametrize("strategy", [RULES, "topk:k=2,P=3,F=6"])
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [*rows_of(RING), "two a b a", *rows_of(final()[:-1])],
            "rows.txt:31: The phase 'final-1' of topic 'one' closes with 14 judgments, and its rule needs 15: "
            "each pair of its 6 items once.",
        ),
        (
            rows_of(RING[2:]),
            "rows.txt:14: The phase 'prune-1' of topic 'one' closes with 14 judgments, and its rule needs 12: "
            "each of its 8 items meets 3 others, and 'a' has met 2.",
        ),
        (
            [*rows_of(RING), "two a b a", *rows_of([("a", "b"), ("a", "h")])],
            "rows.txt:19: The item 'h' of topic 'one' isn't in phase 'final-1': it left before.",
        ),
        (
            [*rows_of(RING), "two a b a", *rows_of([("a", "b"), ("b", "a")])],
            "rows.txt:19: The pair 'a', 'b' of topic 'one' appears twice in phase 'final-1'",
        ),
        (
            ["two a b a", *rows_of(RING), "two a b a"],
            "rows.txt:18: Topic 'two' has no phase for this row: it is done after 'final-1'.",
        ),
    ],
    ids=["final", "pruning", "item that left", "pair twice", "nothing open"],
)
def test_rows_that_are_no_whole_phases_are_refused(
    store: Store, tmp_path: Path, strategy: str, rows: list[str], message: str
) -> None:
    campaign = make_campaign(store, {"one": ITEMS, "two": "ab"}, strategy=strategy)
    assert message in refused(campaign, file_of(tmp_path, rows))


def test_a_bad_item_needs_no_more_judgments(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, {"one": "abcd"}, strategy="prefbest")
    rows = [{"topic": "one", "left": "a", "right": "d", "outcome": "right-bad"}]
    rows += [{"topic": "one", "left": a, "right": b, "outcome": "left"} for a, b in final("abc")]
    import_file(campaign, file_of(tmp_path, [json.dumps(row) for row in rows]), phases="blocks")
    assert campaign.done
    assert campaign.result("one").levels == (("a",), ("b",), ("c",), ("d",))


@pytest.mark.parametrize(
    "strategy", ["prefbest:n=3,m=5", "topk:k=2,P=3,F=5", "round-efficient", "swissfinals"]
)
def test_a_log_that_closes_a_phase_too_early_is_refused(store: Store, tmp_path: Path, strategy: str) -> None:
    pools = {"one": "abcdefghijklmnopqrst"}
    first = make_campaign(store, pools, strategy=strategy)
    judge_all(first)
    write_log(first, tmp_path / "whole.jsonl")
    lines = (tmp_path / "whole.jsonl").read_text().splitlines()
    closing = next(at for at, line in enumerate(lines) if '"phase-closed"' in line)
    phase = json.loads(lines[closing])["phase"]
    judged = [at for at, line in enumerate(lines[:closing]) if json.loads(line).get("phase") == phase]
    before = lines_in(store)
    for lost in (judged[::2], judged[1:]):
        second = make_campaign(store, pools, strategy=strategy, name=f"without {len(lost)}")
        some = [line for at, line in enumerate(lines) if at not in lost]
        with pytest.raises(BadFile) as caught:
            import_file(second, file_of(tmp_path, some, f"{len(lost)}.jsonl"))
        message = str(caught.value)
        assert f".jsonl:{closing - len(lost) + 1}: The phase '{phase}' of topic 'one' closes with" in message
        assert "its rule needs" in message
        assert lines_in(store) == before
    whole = make_campaign(store, pools, strategy=strategy, name="whole")
    import_file(whole, tmp_path / "whole.jsonl")
    assert whole.result("one") == first.result("one")


@pytest.mark.parametrize("strategy", ["prefbest:n=3,m=5", "topk:k=2,P=3,F=5", "round-efficient"])
def test_a_log_that_closes_a_phase_that_has_not_begun_is_refused(
    store: Store, tmp_path: Path, strategy: str
) -> None:
    first = make_campaign(store, {"one": ITEMS}, strategy=strategy)
    judge_all(first)
    write_log(first, tmp_path / "whole.jsonl")
    lines = (tmp_path / "whole.jsonl").read_text().splitlines()
    closings = [at for at, line in enumerate(lines) if '"phase-closed"' in line]
    assert len(closings) > 1
    second = make_campaign(store, {"one": ITEMS}, strategy=strategy, name="second")
    last = closings[-1]
    early = file_of(tmp_path, [lines[last], *lines[:last], *lines[last + 1 :]], "early.jsonl")
    with pytest.raises(BadFile, match=r"early.jsonl:1: This line doesn't follow"):
        import_file(second, early)


def test_a_log_whose_survivors_had_left_before_is_refused(store: Store, tmp_path: Path) -> None:
    campaign = make_campaign(store, {"one": ITEMS, "two": ITEMS}, strategy=RULES)
    blocks = file_of(tmp_path, [*rows_of(RING), *rows_of(RING, "two"), *rows_of(final())])
    import_file(campaign, blocks, rows=[(1, 32), (33, 47)], phases="blocks")
    write_log(campaign, tmp_path / "log.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    last = next(at for at, line in enumerate(lines) if line.get("phase") == "final-1" and "survivors" in line)
    del lines[last - 1]  # so that the log closes the final, and not the strategy
    lines[last - 1]["survivors"] = [*HALF, "h"]
    second = make_campaign(store, {"one": ITEMS, "two": ITEMS}, strategy=RULES, name="second")
    with pytest.raises(BadFile, match=r"The item 'h' can't survive 'final-1': it left before"):
        import_file(second, file_of(tmp_path, [json.dumps(line) for line in lines], "raised.jsonl"))


@pytest.mark.parametrize("strategy", ["prefbest:n=3,m=5", "round-efficient", "swissfinals"])
def test_a_log_is_whole_though_judgments_of_closed_phases_were_retracted(
    store: Store, tmp_path: Path, strategy: str
) -> None:
    pools = {"one": "abcdefghijklmnopqrst"}
    first = make_campaign(store, pools, strategy=strategy)
    judge_all(first)
    first.retract("one", [1, 2, 3], "mistaken")
    write_log(first, tmp_path / "log.jsonl")
    second = make_campaign(store, pools, strategy=strategy, name="second")
    import_file(second, tmp_path / "log.jsonl")
    assert second.result("one") == first.result("one")


def test_a_closing_replaces_one_that_the_strategy_made_itself_phases_ago(
    store: Store, tmp_path: Path
) -> None:
    """At a cap of 1 all later phases are complete as soon as they open; the file's own closings still hold."""
    campaign = make_campaign(store, {"one": ITEMS}, strategy="prefbest:n=2,m=3", cap=1)
    asked = {proposal.pair for proposal in campaign.live.state("one").strategy.ask(99)}
    pairs = sorted(combinations(ITEMS, 2), key=lambda pair: pair not in asked)
    import_file(campaign, file_of(tmp_path, rows_of(pairs)), phases="blocks")
    state = campaign.live.state("one")
    closings = {line.phase: set(line.survivors) for line in state.lines if line.event == log.PHASE_CLOSED}
    assert closings["prune-1"] == set("abcd")
    assert {closing.phase: set(closing.survivors) for closing in state.strategy.closed} == closings
    assert campaign.done
    assert campaign.result("one").best == ("a",)


# ---- three finals of a real campaign

MAIN, SECOND, THIRD = "1-9713", "10698-11681", "9714-10697"


def best_by_wins(data: Path, finals: str) -> dict[str, set[str]]:
    """Count wins in some finals of each topic straight from the rows; most wins, ties together."""
    rows = [line.split() for line in (data / "dl21" / "judgments.txt").read_text().splitlines()]
    last_runs = {topic: list(run) for topic, run in groupby(rows[:9713], key=lambda row: row[0])}
    chosen = {
        "I": [row for run in last_runs.values() for row in run],
        "II": rows[10697:],
        "III": rows[9713:10697],
    }
    wins: dict[str, Counter[str]] = {topic: Counter() for topic in last_runs}
    for name in finals.split("+"):
        for topic, _, _, winner in chosen[name]:
            wins[topic][winner] += 1
    return {topic: {i for i, won in own.items() if won == max(own.values())} for topic, own in wins.items()}


def call(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.stderr
    return done.stdout


def best_of(qrels: str) -> dict[str, set[str]]:
    return {topic: set(grades) for topic, grades in read_qrels(qrels).grades().items()}


@pytest.mark.long
@pytest.mark.parametrize(
    ("finals", "rows", "skipped", "items"),
    [
        ("I+II+III", f"{MAIN},{THIRD},{SECOND}", 0, 55),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("I", MAIN, 0, 75),
                ("II", f"{MAIN},{SECOND}", 1, 75),
                ("III", f"{MAIN},{THIRD}", 1, 80),
                ("I+II", f"{MAIN},{SECOND}", 0, 66),
                ("I+III", f"{MAIN},{THIRD}", 0, 71),
                ("II+III", f"{MAIN},{SECOND},{THIRD}", 1, 62),
                ("II+III", f"{MAIN},{THIRD},{SECOND}", 1, 62),
                ("I+II+III", f"{MAIN},{SECOND},{THIRD}", 0, 55),
                ("I+II+III", "1-11681", 0, 55),
            )
        ),
    ],
)
def test_finals_of_a_real_campaign_are_combined_in_any_order(
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    finals: str,
    rows: str,
    skipped: int,
    items: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    judgments = str(data / "dl21" / "judgments.txt")
    phases = finals.count("+") + 1
    call("pool", "--prefs", judgments, "--strategy", f"prefbest:final_phases={phases}", "-o", "dl21.db")
    how = ("--rows", rows, "--phases", "blocks", "--skip-finals", str(skipped), "--json")
    taken = json.loads(call("import", "dl21.db", judgments, *how))
    assert taken["phases_closed"] == 78 + 50 * phases
    assert taken["notices"] == ({"judgments of finals left out": 984} if skipped else {})
    call("export", "dl21.db", "--as", "qrels", "-o", "best.qrels")
    best = best_of("best.qrels")
    assert best == best_by_wins(data, finals)
    assert (len(best), sum(map(len, best.values()))) == (50, items)


def test_an_interleaved_final_alone_gives_the_best_of_every_topic(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = (data / "dl21" / "judgments.txt").read_text().splitlines()[9713:10697]
    assert len(list(groupby(row.split()[0] for row in rows))) == 957
    file_of(tmp_path, rows, "final.txt")
    call("pool", "--prefs", "final.txt", "--strategy", "prefbest", "-o", "final.db")
    output = call("import", "final.db", "final.txt", "--phases", "blocks")
    assert output == "Imported 984 judgments of 50 topics, 50 phases closed.\n"
    call("export", "final.db", "--as", "qrels", "-o", "final.qrels")
    assert best_of("final.qrels") == best_by_wins(data, "III")
