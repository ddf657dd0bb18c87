"""A campaign in which systems compete: what is asked, weighed and counted, on both back ends."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, update
from typer.testing import CliRunner

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.checks.campaigns import contradictions
from duelpool.campaign.exports.bundle import write_bundle
from duelpool.campaign.exports.files import write_csv, write_log
from duelpool.campaign.imports.importer import import_file
from duelpool.campaign.log import campaign_events
from duelpool.campaign.views.status import recounted_status, status
from duelpool.campaign.views.summaries import check_summaries, refresh
from duelpool.cli import app
from duelpool.errors import BadParameter, DuelpoolError
from duelpool.files import Run
from duelpool.files.packed import pack_run
from duelpool.records import Answer, Outcome, Passage, Pool, Topic
from duelpool.setup.challenge import find_challenges
from duelpool.store import Store, Writing, holdings, leases, open_store, schema
from duelpool.store.holdings import PackedRun, TestPair
from duelpool.store.leases import Wanted
from duelpool.testing.stores import audit
from support.campaigns import judge_all
from support.stores import BACK_ENDS, new_target

QUESTIONS = ("q1", "q2", "q3")
SYSTEMS = {"A": "a", "B": "b", "C": "c", "C2": "c2"}  # C2 gave the same text as C


@pytest.fixture(params=BACK_ENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_target(request.param, tmp_path) as target, open_store(target, create=True) as opened:
        yield opened


def packed(system: str, answers: dict[str, str]) -> PackedRun:
    run = Run.from_rankings(system, {topic: [(item, 1.0)] for topic, item in answers.items()})
    return PackedRun(system, len(answers), pack_run(run))


def create(
    store: Store, name: str = "systems", systems: dict[str, str] = SYSTEMS, **settings: Any
) -> Campaign:
    return Campaign.create(
        store,
        name,
        Settings(**{"goal": "systems", **settings}),
        topics=[Topic(question, f"What is {question}?") for question in QUESTIONS],
        pools=[Pool(question, ("a", "b", "c"), twins={"c": ("c2",)}) for question in QUESTIONS],
        passages=[Passage(item, f"Text of {item}.") for item in ("a", "b", "c", "c2")],
        runs=[packed(system, dict.fromkeys(QUESTIONS, item)) for system, item in systems.items()],
        test_pairs=[TestPair(f"k{at}", QUESTIONS[at % 3], "a", f"off-{at}") for at in range(9)],
    )


def answer(campaign: Campaign, person: str, outcome: Outcome = Outcome.LEFT) -> tuple[str, str, str]:
    question = campaign.next_question(person)
    assert question is not None
    campaign.answer(question.id, person, Answer(outcome))
    return (question.topic, *question.pair)


def test_systems_are_ordered_by_votes_over_all_questions(store: Store) -> None:
    campaign = create(store)
    assert campaign.settings.strategy == "systems"
    assert judge_all(campaign, people=2) == 9  # three pairs of different answers to each of three questions
    assert campaign.done
    decided = campaign.decision()
    assert decided.systems is not None
    assert decided.systems.levels == (("A",), ("B",), ("C", "C2"))
    assert decided.topics["q1"].levels == (("a",), ("b",), ("c",))
    assert {each.strategy for topic in QUESTIONS for each in campaign.judgments(topic)} == {"systems/2"}
    assert audit(store, campaign.id, 6) == []
    now = status(campaign)
    assert all(topic.status.done for topic in now.topics)
    assert sum(topic.status.judgments for topic in now.topics) == 9


def test_bad_answers_stay_and_both_bad_is_a_tie(store: Store) -> None:
    campaign = create(store)
    campaign.enrol("ann", "dedicated")
    asked = {answer(campaign, "ann", Outcome.BOTH_BAD) for _ in range(9)}
    assert len(asked) == 9
    assert campaign.next_question("ann") is None
    assert campaign.decision().systems.levels == (("A", "B", "C", "C2"),)  # type: ignore[union-attr]


def test_compare_asks_about_two_systems(store: Store) -> None:
    campaign = create(store, goal="compare:A,C2", strategy="round-robin:votes=2")
    assert judge_all(campaign, people=3) == 6
    assert campaign.decision().systems.levels == (("A",), ("C2",))  # type: ignore[union-attr]
    assert all(each.pair == ("a", "c") for question in QUESTIONS for each in campaign.judgments(question))


def test_people_on_two_servers_spread_over_pairs_and_questions(store: Store) -> None:
    servers = create(store), Campaign.open(store)
    met: Counter[tuple[str, str]] = Counter()
    for at in range(9):
        servers[0].enrol(f"p{at}", "dedicated")
        question = servers[at % 2].next_question(f"p{at}")
        assert question is not None
        met[question.pair] += 1
        assert max(met.values()) - min(met[pair] for pair in (("a", "b"), ("a", "c"), ("b", "c"))) <= 1
    servers[0].enrol("late", "dedicated")
    assert servers[1].next_question("late") is None


def test_weights_are_an_event_that_every_server_follows(store: Store, tmp_path: Path) -> None:
    first = create(store, strategy="round-robin:votes=2")
    second = Campaign.open(store)
    for person in ("ann", "ben"):
        first.enrol(person, "dedicated")
    for at in range(9):
        answer(first, "ann", Outcome.LEFT_BAD if at % 2 else Outcome.RIGHT_BAD)
    judge_all(first, people=2)
    refresh(first)
    before = [topic.status.judgments for topic in status(second).topics]
    plain = second.decision()
    assert first.weigh({"ann": 0.0}, "calibrated") == 1
    assert first.weigh({"ann": 0.25, "p0": 3.0}) == 2
    for campaign in (first, second, Campaign.open(store, "systems")):
        assert campaign.decision() == first.decision()
    assert first.decision() != plain
    assert status(first).as_json() == recounted_status(first).as_json()
    assert first.read(lambda tx: list(check_summaries(tx, first))) == []
    assert [topic.status.judgments for topic in status(second).topics] == before
    events = first.read(campaign_events.events)
    assert [(each.seq, each.event, each.data["weights"]) for each in events] == [
        (1, "weights", {"ann": 0.0}),
        (2, "weights", {"ann": 0.25, "p0": 3.0}),
    ]
    assert audit(store, first.id, 6) == []
    write_bundle(first, str(tmp_path / "bundle"))
    lines = (tmp_path / "bundle" / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["weights"] for line in lines] == [{"ann": 0.0}, {"ann": 0.25, "p0": 3.0}]


def test_the_last_weights_hold_for_earlier_and_later_votes_on_every_server(store: Store) -> None:
    campaign = create(store, systems={"A": "a", "B": "b"}, strategy="round-robin:votes=3")
    other = Campaign.open(store)
    for person in ("ann", "ben", "cem"):
        campaign.enrol(person, "dedicated")

    def vote(person: str, item: str) -> None:
        for _ in QUESTIONS:
            question = campaign.next_question(person)
            assert question is not None
            outcome = Outcome.LEFT if question.left == item else Outcome.RIGHT
            campaign.answer(question.id, person, Answer(outcome))

    def order() -> tuple[tuple[str, ...], ...]:
        found = {each.decision().systems for each in (campaign, other, Campaign.open(store))}
        assert len(found) == 1
        (levels,) = found
        assert levels is not None
        return levels.levels

    vote("ann", "b")
    assert order() == (("B",), ("A",))
    campaign.weigh({"ann": 0.0})
    assert order() == (("A", "B"),)
    vote("ben", "a")
    assert order() == (("A",), ("B",))
    campaign.weigh({"ann": 2.0})
    assert order() == (("B",), ("A",))
    campaign.weigh({"ann": 0.0, "cem": 0.0})
    vote("cem", "b")
    assert order() == (("A",), ("B",))
    first = next(each for each in campaign.judgments("q1") if each.assessor == "ben")
    campaign.retract("q1", [first.seq or 0], "to see")
    assert order() == (("A",), ("B",))


def test_a_system_that_joins_with_known_answers_counts_on_every_server(store: Store) -> None:
    campaign = create(store, systems={"A": "a", "B": "b", "C": "c"})
    other = Campaign.open(store)
    judge_all(campaign, people=2)
    assert other.decision().systems.levels == (("A",), ("B",), ("C",))  # type: ignore[union-attr]
    assert campaign.add_system("Z", dict.fromkeys(QUESTIONS, "b")) == 3
    for each in (campaign, other, Campaign.open(store)):
        assert each.decision().systems.levels == (("A",), ("B", "Z"), ("C",))  # type: ignore[union-attr]
        assert each.done


def test_a_weight_needs_an_assessor_and_a_number(store: Store) -> None:
    campaign = create(store)
    campaign.enrol("ann", "dedicated")
    for weights in ({"nobody-known": 1.0}, {"ann": -1.0}, {"ann": float("nan")}):
        with pytest.raises(BadParameter):
            campaign.weigh(weights)
    assert campaign.read(campaign_events.events) == []


def test_a_retraction_and_an_exclusion_take_votes_out(store: Store) -> None:
    campaign = create(store)
    judge_all(campaign, people=2)
    plain = campaign.decision()
    campaign.exclude("p0", "to see")
    assert not campaign.done
    assert campaign.decision() == Campaign.open(store, "systems").decision() != plain
    campaign.reinstate("p0")
    assert campaign.decision() == plain
    campaign.retract("q1", [campaign.judgments("q1")[0].seq or 0], "to see")
    assert campaign.decision() == Campaign.open(store, "systems").decision()


def test_a_system_joins_later_and_earlier_votes_stay(store: Store) -> None:
    campaign = create(store)
    judge_all(campaign, people=2)
    campaign.add_items(Pool("q1", ("a", "b", "c", "z")), [Passage("z", "A late answer.")])
    assert campaign.add_system("Z", {"q1": "z", "q2": "a", "q3": "missing"}) == 2
    assert not campaign.done
    assert judge_all(campaign, people=2) == 3
    assert campaign.decision() == Campaign.open(store, "systems").decision()
    assert "Z" in {name for level in campaign.decision().systems.levels for name in level}  # type: ignore[union-attr]


def test_a_crowd_draws_questions_and_their_chances_are_stored(store: Store) -> None:
    campaign = create(store, judges="crowd", targets=4, tests=1)
    campaign.enrol("w1", "crowd")
    assignment = campaign.next_assignment("w1")
    assert assignment is not None
    for question in assignment.questions:
        right = Outcome.RIGHT if question.left.startswith("off") else Outcome.LEFT
        campaign.answer(question.id, "w1", Answer(right))
    assert campaign.decision() == create(store, "untouched").decision()  # held until the assignment ends
    campaign.finish(assignment.id)
    judged = [each for topic in QUESTIONS for each in campaign.judgments(topic)]
    assert len(judged) == 4
    assert all(each.propensity is not None and 0 < each.propensity <= 1 for each in judged)
    assert campaign.decision() == Campaign.open(store, "systems").decision()


def test_answers_that_wait_for_their_assignment_count_as_asked(store: Store) -> None:
    campaign = create(store, systems={"A": "a", "B": "b", "C": "c"}, judges="crowd", targets=1, tests=0)
    met: Counter[tuple[str, str]] = Counter()
    for at in range(9):
        campaign.enrol(f"w{at}", "crowd")
        assignment = campaign.next_assignment(f"w{at}")
        assert assignment is not None
        (question,) = assignment.questions
        campaign.answer(question.id, f"w{at}", Answer(Outcome.LEFT))
        met[question.pair] += 1
        assert max(met.values()) - min(met[pair] for pair in (("a", "b"), ("a", "c"), ("b", "c"))) <= 1


def test_imported_votes_between_same_answers_count(store: Store, tmp_path: Path) -> None:
    campaign = create(store)
    file = tmp_path / "votes.jsonl"
    rows = [
        {"topic": "q1", "left": "c2", "right": "c", "outcome": "left", "assessor": f"x{at}"}
        for at in range(3)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert import_file(campaign, file).judgments == 3
    assert campaign.decision().systems.levels[0] == ("C2",)  # type: ignore[union-attr]
    write_log(campaign, tmp_path / "log.jsonl")
    again = create(store, "again")
    assert import_file(again, tmp_path / "log.jsonl").judgments == 3
    assert again.decision() == campaign.decision()
    write_csv(campaign, tmp_path / "log.csv")
    assert audit(store, campaign.id, 6) == []


@pytest.mark.parametrize(
    ("settings", "systems", "problem"),
    [
        ({"goal": "compare:A,X"}, SYSTEMS, "no system 'X'"),
        ({"goal": "systems"}, {"A": "a"}, "one run"),
        ({"goal": "systems"}, {}, "no runs"),
        ({"goal": "systems", "strategy": "prefbest"}, SYSTEMS, "prefbest"),
        ({"goal": "systems", "stage": "grading"}, SYSTEMS, "stage"),
        ({"goal": "best", "strategy": "round-robin"}, SYSTEMS, "round-robin"),
        ({"goal": "worst"}, SYSTEMS, "no goal 'worst'"),
    ],
)
def test_what_a_goal_cannot_be_reached_with_is_refused(
    tmp_path: Path, settings: dict[str, Any], systems: dict[str, str], problem: str
) -> None:
    with open_store(tmp_path / "c.db", create=True) as store:
        with pytest.raises(DuelpoolError, match=problem):
            create(store, systems=systems, **settings)
        assert store.read(holdings.campaigns) == []


def test_the_check_finds_gaps_between_events_and_answers_that_no_pool_has(store: Store) -> None:
    campaign = create(store)
    campaign.enrol("ann", "dedicated")
    for weight in (1.0, 2.0, 3.0):
        campaign.weigh({"ann": weight})
    assert campaign.read(lambda tx: contradictions(tx, 6)) == []
    event, answered = schema.campaign_event, schema.answer
    campaign.write(lambda tx: tx.connection.execute(delete(event).where(event.c.seq == 2)))
    campaign.write(
        lambda tx: tx.connection.execute(update(answered).where(answered.c.system == "B").values(item="gone"))
    )
    found = campaign.read(lambda tx: contradictions(tx, 6))
    assert {each.kind for each in found} == {"event", "system"}
    assert len(found) == 1 + len(QUESTIONS)


def test_the_goal_is_an_option_of_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for system, item in {"A": "a", "B": "b", "C": "c"}.items():
        rows = [f"{question} Q0 {item} 1 2.0 {system}" for question in QUESTIONS]
        Path(f"{system}.run").write_text("\n".join(rows) + "\n")
    files = ["A.run", "B.run", "C.run", "--depth", "1"]
    made = CliRunner().invoke(app, ["pool", *files, "--goal", "systems", "-o", "mine.db", "--json"])
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout)["estimate"]["judgments"] == 9
    refused = CliRunner().invoke(app, ["pool", *files, "--goal", "compare:A,D", "-o", "other.db"])
    assert refused.exit_code == 2
    assert "There is no system 'D' to compare." in refused.output
    assert not Path("other.db").exists()
    dry = CliRunner().invoke(app, ["pool", *files, "--goal", "systems", "--dry-run", "--json"])
    assert dry.exit_code == 0, dry.output
    assert json.loads(dry.stdout)["estimate"]["judgments"] == 9
    for more in (["--max-cost", "100"], ["--learn-from", "mine.db"]):
        refused = CliRunner().invoke(app, ["pool", *files, "--goal", "systems", *more, "-o", "other.db"])
        assert refused.exit_code == 2
        assert "choose among strategies" in refused.output
    learnt = CliRunner().invoke(app, ["pool", *files, "--learn-from", "mine.db", "-o", "other.db"])
    assert learnt.exit_code == 2
    assert "compares systems" in learnt.output
    judged = CliRunner().invoke(app, ["judge", "simulated", "mine.db", "--model", "bt:sd=1", "--json"])
    assert judged.exit_code == 0, judged.output
    with open_store(tmp_path / "mine.db") as store:
        assert Campaign.open(store).done


def test_answers_that_no_pool_holds_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for system, item in {"A": "a", "B": "b", "C": "c"}.items():
        Path(f"{system}.run").write_text(f"q1 Q0 {item} 1 2.0 {system}\n")
    Path("grades.txt").write_text("q1 0 a 1\nq1 0 b 1\n")
    command = ["pool", "A.run", "B.run", "C.run", "--goal", "systems", "-o", "mine.db"]
    made = CliRunner().invoke(app, [*command, "--qrels", "grades.txt"])
    assert made.exit_code == 0, made.output
    assert "don't count: 1 (first: 'c', of 'C' to 'q1')" in " ".join(made.output.split())


def test_a_late_run_does_not_challenge_where_systems_compete(store: Store) -> None:
    campaign = create(store)
    late = Run.from_rankings("Z", {"q1": [("z", 1.0)]})
    with pytest.raises(BadParameter, match="don't compete for the best"):
        find_challenges(campaign, late)


def test_answers_that_leave_a_pool_count_no_more(store: Store, tmp_path: Path) -> None:
    campaign, other = create(store), None
    file = tmp_path / "votes.jsonl"
    file.write_text(
        json.dumps({"topic": "q1", "left": "c2", "right": "c", "outcome": "left", "assessor": "x"}) + "\n"
    )
    import_file(campaign, file)
    judge_all(campaign, people=2)
    other = Campaign.open(store)
    assert other.decision().systems.levels == (("A",), ("B",), ("C2",), ("C",))  # type: ignore[union-attr]
    campaign.remove("q1", "c2")
    for each in (campaign, other, Campaign.open(store)):
        # C2 has lost to A and B on two questions only, and the vote between the same texts is gone.
        assert each.decision().systems.levels == (("A",), ("B",), ("C2",), ("C",))  # type: ignore[union-attr]
        assert each.live.look("q1", None, lambda part: part.systems) == ("A", "B", "C")  # type: ignore[attr-defined]
    campaign.remove("q1", "a")
    assert campaign.decision() == other.decision() == Campaign.open(store).decision()
    assert other.live.look("q1", None, lambda part: part.systems) == ("B", "C")  # type: ignore[attr-defined]


def test_a_question_of_one_topic_counts_what_is_asked_about_elsewhere(store: Store) -> None:
    campaign = create(store, systems={"A": "a", "B": "b", "C": "c"})
    met: Counter[tuple[str, str]] = Counter()
    for at, question in enumerate(("q1", "q1", "q2", "q2", "q3", "q3")):
        campaign.enrol(f"p{at}", "dedicated")
        (asked,) = campaign.next_questions(f"p{at}", 1, {question})
        met[asked.pair] += 1
        pairs = (("a", "b"), ("a", "c"), ("b", "c"))
        assert max(met.values()) - min(met[pair] for pair in pairs) <= 1


def test_weights_do_not_wait_for_a_lease(tmp_path: Path) -> None:
    """Whoever opens an assignment holds topics in any order: a wait for them could end in a deadlock."""
    with new_target("postgresql", tmp_path) as target, open_store(target, create=True) as store:
        campaign = create(store)
        campaign.enrol("ann", "dedicated")
        weighed: list[int] = []

        def weigh() -> None:
            with open_store(target) as opened:
                weighed.append(Campaign.open(opened).weigh({"ann": 0.5}))

        def lease_meanwhile(tx: Writing) -> None:
            leases.lease(tx, [Wanted("q2", "a", "b")], ["own"], assessor="ann", cap=6, seconds=60)
            other = threading.Thread(target=weigh)
            other.start()
            other.join(20)
            assert weighed == [1]

        campaign.write(lease_meanwhile)


def test_a_strategy_of_topics_that_is_named_where_systems_compete_is_refused() -> None:
    assert Settings(goal="systems").strategy == "systems"
    with pytest.raises(BadParameter, match="finds the best items of a topic"):
        Settings(goal="systems", strategy="swissfinals")
    assert Settings(strategy="swissfinals").goal == "best"
    kept = Settings(goal="compare:A,B", strategy="round-robin")
    assert Settings.from_json(kept.as_json()) == kept
    assert replace(kept, seed=5).strategy == "round-robin"
