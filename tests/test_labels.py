"""Names that people can read: first words, ids without their common prefix, numbers with their noun."""

from pathlib import Path

import pytest

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.views.labels import item_labels
from duelpool.frames import counted
from duelpool.labels import Label, first_words, id_prefix, label_of, plain
from duelpool.records import Passage, Pool, Topic
from duelpool.store import open_store


@pytest.mark.parametrize(
    ("ids", "prefix"),
    [
        (["msmarco_passage_05_398000222", "msmarco_passage_61_12"], "msmarco_passage_"),
        (["msmarco_passage_05_1", "msmarco_passage_05_2"], "msmarco_passage_05_"),
        (["WSJ880101-0001", "WSJ880101-0009"], "WSJ880101-"),
        (["doc12", "doc13"], ""),  # no part ends there
        (["a-1", "a-2"], ""),  # too short to leave out
        (["one_thing_1"], ""),
        ([], ""),
        (["same_thing_", "same_thing_x"], "same_thing_"),
    ],
)
def test_ids_share_a_prefix_of_whole_parts(ids: list[str], prefix: str) -> None:
    assert id_prefix(ids) == prefix


def test_an_id_that_is_the_prefix_or_lacks_it_stays_whole() -> None:
    assert label_of("same_thing_", prefix="same_thing_").short_id == "same_thing_"
    assert label_of("other", prefix="same_thing_").short_id == "other"
    label = label_of("same_thing_x", "Some text.", prefix="same_thing_")
    assert (label.prefix + label.rest, label.short_id) == ("same_thing_x", "…x")
    assert str(label) == "Some text. (…x)"
    assert str(Label("x")) == "x"


def test_first_words_end_at_a_word() -> None:
    assert first_words("  two\n words ") == "two words"
    long = "alpha beta gamma delta " * 20
    cut = first_words(long, 30)
    assert cut == "alpha beta gamma delta alpha…"
    assert first_words("x" * 50, 10) == "x" * 9 + "…"
    for at_most in range(8, 60):
        assert len(first_words(long, at_most)) <= at_most


@pytest.mark.parametrize(
    ("text", "form", "shown"),
    [
        ("<p>Fish &amp; <b>chips</b></p><script>x('<p>')</script>", "html", "Fish & chips"),
        ("Fish <b>and</b> chips <img src='cut", "html", "Fish and chips"),
        ("<!-- no --><style>p { }</style>Fish", "html", "Fish"),
        ("## Fish\n\n* **chips** and [peas](https://x.example)", "markdown", "Fish chips and peas"),
        ("1 < 2 * 3", "text", "1 < 2 * 3"),
        ("data:image/png;base64,AAAA", "image", "(picture)"),
    ],
)
def test_marks_of_a_format_are_left_out(text: str, form: str, shown: str) -> None:
    assert first_words(plain(text, form)) == shown


def test_labels_of_items_are_their_beginnings(tmp_path: Path) -> None:
    ids = [f"corpus_part_{at}" for at in range(4)]
    texts = [Passage(each, f"Text {each[-1]} " + "word " * 100, title="A title") for each in ids[:3]]
    topics, pools = [Topic("t", "What?")], [Pool("t", tuple(ids))]
    with open_store(tmp_path / "campaign.db", create=True) as store:
        made = Campaign.create(store, "c", Settings(), topics=topics, pools=pools, passages=texts)
        labels = made.read(lambda tx: item_labels(tx, [*ids, "elsewhere", ids[0], ""]))
    assert list(labels) == [*ids, "elsewhere"]
    assert labels[ids[0]].words.startswith("A title · Text 0 word")
    assert labels[ids[0]].prefix == "corpus_part_"
    assert labels[ids[3]] == Label(ids[3], prefix="corpus_part_")  # it has no text
    assert labels["elsewhere"].prefix == ""


def test_numbers_have_their_noun() -> None:
    assert [counted(each, "topic") for each in (0, 1, 2000)] == ["0 topics", "1 topic", "2,000 topics"]
    assert counted(2, "person", "people") == "2 people"
