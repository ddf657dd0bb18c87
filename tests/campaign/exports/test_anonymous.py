"""An anonymised release: nothing of the people is in it, and texts that may name one are refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from duelpool.campaign import Campaign
from duelpool.campaign.exports import anonymous
from duelpool.campaign.exports.anonymous import KEPT, LOOKS_LIKE, IdentifyingText, new_names, write_anonymous
from duelpool.campaign.exports.codebook import JUDGMENTS
from duelpool.campaign.exports.files import CSV_COLUMNS, judgment_cells
from duelpool.campaign.settings import Settings
from duelpool.records import Judgment, Outcome, Pool, Topic
from duelpool.store import open_store
from support.campaigns import make_campaign

WORKERS = ("5f0000000000000000000001", "anna.k", "worker-7")


@pytest.fixture
def campaign(tmp_path: Path) -> Iterator[Campaign]:
    with open_store(str(tmp_path / "x.db"), create=True) as store:
        made = make_campaign(
            store, [Pool("one", tuple("abc")), Pool("two", tuple("de"))], strategy="allpairs"
        )
        made.add_judgments(
            [
                Judgment("one", "a", "b", Outcome.LEFT, assessor=WORKERS[0], note="I am Anna", seconds=3.7),
                Judgment("one", "b", "c", Outcome.TIE, assessor=WORKERS[1]),
                Judgment("two", "d", "e", Outcome.RIGHT, assessor=WORKERS[2]),
            ]
        )
        yield made


def texts(folder: Path) -> str:
    read = [
        str(pl.read_parquet(path).rows()) if path.suffix == ".parquet" else path.read_text()
        for path in folder.iterdir()
    ]
    return "\n".join(read)


def test_a_release_names_no_person(campaign: Campaign, tmp_path: Path) -> None:
    made = write_anonymous(campaign, str(tmp_path / "release"))
    written = texts(tmp_path / "release")
    assert not [each for each in (*WORKERS, "Anna") if each in written]
    assert (made.judgments, made.assessors, made.with_few) == (3, 3, 3)
    table = pl.read_parquet(tmp_path / "release" / "judgments.parquet")
    assert tuple(table.columns) == KEPT
    assert "time" not in KEPT
    assert sorted(table.get_column("assessor").to_list()) == ["P001", "P002", "P003"]
    assert table.get_column("seconds").to_list()[0] == 4
    assert set(table.get_column("day").to_list()) == {0}
    codebook = (tmp_path / "release" / "CODEBOOK.md").read_text()
    assert all(f"| `{name}` | {JUDGMENTS[name].type} |" in codebook for name in KEPT)


def test_days_are_counted_from_the_first_judgment(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def later(*given: Any) -> Iterator[list[object]]:
        for row, day in zip(judgment_cells(*given), ("2026-02-27", "2026-03-02", "2026-02-28"), strict=True):
            yield [
                f"{day}T23:59:00Z" if name == "time" else value
                for name, value in zip(CSV_COLUMNS, row, strict=True)
            ]

    monkeypatch.setattr(anonymous, "judgment_cells", later)
    write_anonymous(campaign, str(tmp_path / "release"))
    assert pl.read_parquet(tmp_path / "release" / "judgments.parquet").get_column("day").to_list() == [
        0,
        3,
        1,
    ]


def test_new_names_follow_the_seed_and_not_the_old_ones() -> None:
    names = {f"w{at}" for at in range(50)}
    one, other = new_names(names, 1), new_names(names, 2)
    assert one == new_names(names, 1) != other
    assert [one[name] for name in sorted(names)] != sorted(one.values())


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("write to anna@example.org", "an e-mail address"),
        ("seen at 192.168.10.4", "an address of a machine"),
        ("worker 5f12ab34cd56ef7890ab12cd", "a Prolific id"),
        ("by A2XJKL8MNP4QRS", "a Mechanical Turk id"),
        ("call +44 20 7946 0958", "a phone number"),
        ("asked by anna.k", "the pseudonym of an assessor"),
    ],
)
def test_texts_that_may_identify_a_person_are_refused_or_accepted(
    tmp_path: Path, text: str, what: str
) -> None:
    with open_store(str(tmp_path / "y.db"), create=True) as store:
        made = Campaign.create(
            store, "x", Settings(), topics=[Topic("one", text)], pools=[Pool("one", ("a", "b"))]
        )
        made.add_judgments([Judgment("one", "a", "b", Outcome.LEFT, assessor="anna.k")])
        with pytest.raises(IdentifyingText, match=f"topics.jsonl, line 1: .* looks like {what}"):
            write_anonymous(made, str(tmp_path / "release"))
        assert not (tmp_path / "release").exists()
        release = write_anonymous(made, str(tmp_path / "release"), accept=True)
        assert what in release.accepted[0]
        assert release.accepted[0] in (tmp_path / "release" / "CODEBOOK.md").read_text()


def test_an_id_of_a_person_is_never_accepted(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "y.db"), create=True) as store:
        made = make_campaign(store, [Pool("one", ("SECRET-7", "b"))])
        made.add_judgments([Judgment("one", "SECRET-7", "b", Outcome.LEFT, assessor="anna.k")])
        row = f"insert into identity values ('{made.id}', 'anna.k', 'prolific', 'SECRET-7')"
        store.write(lambda connection, now: connection.exec_driver_sql(row))
        with pytest.raises(IdentifyingText, match="an id of a person of this store"):
            write_anonymous(made, str(tmp_path / "release.zip"), accept=True)
    assert not list(tmp_path.glob("*release*"))


def test_plain_texts_pass() -> None:
    plain = "Version 1.2.3.4.5 of 20 items, id 0123456789, sha 5f12, A2B, DOI 10.1145/3477495.3531991, c@d"
    assert not [what for what, pattern in LOOKS_LIKE.items() if pattern.search(plain)]
