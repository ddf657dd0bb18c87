"""A language model as a judge, piece by piece: the request, the reply, the money."""

import hmac
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelpool.errors import BadFile, BadParameter, BadRecord
from duelpool.judges.live import Sheet
from duelpool.judges.llm.endpoint import Endpoint, parse_address
from duelpool.judges.llm.prices import OVERHEAD_TOKENS, UNIT, Prices, money_of, read_money
from duelpool.judges.llm.prompts import PROMPTS, Prompt, read_prompt, secret_word, unreadable_because
from duelpool.judges.llm.replies import (
    CONFIDENCES,
    Malformed,
    ReplyForm,
    Usage,
    Verdict,
    list_form,
    parse_content,
    parse_usage,
    parse_verdict,
    preference_form,
)
from duelpool.net.http import NoAnswer, NotSent
from duelpool.records import Outcome, Passage, Topic
from support.fake_llm import MALFORMED_REPLIES, LlmRequest, Provider, serving

PLAIN = preference_form(ties=False)


def sheet(left: str = "one", right: str = "two", **more: Any) -> Sheet:
    return Sheet(
        "q",
        Topic("t", "Where is it?", "A place.", ("Who?", "He.")),
        Passage("a", left),
        Passage("b", right),
        frozenset({Outcome.LEFT, Outcome.RIGHT}),
        **more,
    )


# ---- one request


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving(Provider()) as server:
        yield server


def endpoint(provider: Provider, **more: Any) -> Endpoint:
    return Endpoint(parse_address(f"{provider.address}/v1", ["localhost"]), **more)


def body() -> bytes:
    messages = PROMPTS["preference"].messages(sheet(), PLAIN, "secret")
    return json.dumps({"model": "m", "messages": messages}).encode()


def test_request_carries_key_and_idempotency_key(provider: Provider) -> None:
    got = endpoint(provider, key="sk-secret").post(body(), "key-1")
    assert got.status == 200
    assert parse_verdict(got.body, PLAIN) == Verdict("left", 0.9)
    headers = provider.requests[0].headers
    assert headers["Authorization"] == "Bearer sk-secret"
    assert headers["Idempotency-Key"] == "key-1"
    assert provider.paths == {"/v1/chat/completions": 1}


@pytest.mark.parametrize("fault", ["drop", "half", "huge", "drip"])
def test_request_without_a_whole_answer_may_have_cost(provider: Provider, fault: str) -> None:
    provider.fault = lambda _: fault
    with pytest.raises(NoAnswer):
        endpoint(provider, timeout=0.3 if fault == "drip" else 5.0).post(body())


def test_request_without_a_connection_was_not_sent(provider: Provider) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(NotSent):
        Endpoint(parse_address(f"http://localhost:{port}", ["localhost"])).post(b"{}")


def test_redirects_are_not_followed(provider: Provider) -> None:
    provider.fault = lambda _: "302"
    assert endpoint(provider).post(body()).status == 302
    assert provider.paths == {"/v1/chat/completions": 1}


@pytest.mark.parametrize("key", ["a b", "a\r\nX-Evil: 1", "ä", "a\0"])
def test_invalid_key_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(BadParameter) as caught:
        Endpoint(parse_address("https://x.org"), key)
    assert key not in str(caught.value)
    assert "secret" not in repr(Endpoint(parse_address("https://x.org"), "secret"))


# ---- the reply


@pytest.mark.parametrize("name", sorted(MALFORMED_REPLIES))
def test_reply_of_another_form_is_malformed(name: str) -> None:
    with pytest.raises(Malformed):
        parse_content(MALFORMED_REPLIES[name], PLAIN)


@given(st.sampled_from(PLAIN.choices), st.sampled_from(CONFIDENCES))
def test_reply_of_the_form_is_parsed_property(better: str, confidence: int) -> None:
    text = json.dumps({"confidence": confidence, "better": better}, indent=1)
    assert parse_content(f" {text}\n", PLAIN) == Verdict(better, confidence / 100)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["better", "confidence", "x"]), inner)
        ),
    )
)
def test_any_json_is_parsed_or_malformed_property(value: Any) -> None:
    fits = (
        isinstance(value, dict)
        and set(value) == {"better", "confidence"}
        and value["better"] in PLAIN.choices
        and type(value["confidence"]) is int
        and value["confidence"] in CONFIDENCES
    )
    try:
        verdict = parse_content(json.dumps(value), PLAIN)
    except Malformed:
        assert not fits
    else:
        assert fits
        assert verdict.outcome == value["better"]


@given(st.binary(max_size=200))
def test_any_other_bytes_are_malformed_property(data: bytes) -> None:
    with pytest.raises(Malformed):
        parse_verdict(data, PLAIN)
    assert parse_usage(data) == Usage()


def test_answer_envelope_is_checked() -> None:
    def answer(**more: Any) -> bytes:
        message = {"content": '{"better": "right", "confidence": 60}', **more.pop("message", {})}
        return json.dumps({"choices": [{"message": message, "finish_reason": "stop", **more}]}).encode()

    assert parse_verdict(answer(), PLAIN) == Verdict("right", 0.6)
    assert parse_verdict(answer(message={"refusal": "no"}), PLAIN) == Verdict("refused")
    assert parse_verdict(answer(finish_reason="content_filter"), PLAIN) == Verdict("refused")
    for wrong in (
        answer(finish_reason="length"),
        answer(message={"tool_calls": [{}]}),
        answer(message={"content": None}),
        answer(message={"content": ["x"]}),
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b'{"choices": [{}, {}]}',
        b"[" * 10_000,
    ):
        with pytest.raises(Malformed):
            parse_verdict(wrong, PLAIN)


def test_grades_have_a_form_of_their_own() -> None:
    form = ReplyForm(grades=(0.0, 1.0, 2.0))
    assert parse_content('{"grade": 2, "confidence": 50}', form) == Verdict("grade", 0.5, 2.0)
    assert parse_content('{"grade": "cannot", "confidence": 50}', form) == Verdict("cannot", 0.5)
    for wrong in ("3", "true", '"2"', "null", "1.5", "1e999", "9" * 400):
        with pytest.raises(Malformed):
            parse_content(f'{{"grade": {wrong}, "confidence": 50}}', form)
    assert form.schema["properties"]["grade"]["enum"] == [0, 1, 2, "cannot"]
    assert form.response_format("json") == {"type": "json_object"}
    assert form.response_format("none") is None


@given(st.permutations("ABCD"), st.sampled_from(CONFIDENCES), st.data())
def test_order_of_a_list_is_parsed_property(marks: list[str], confidence: int, data: st.DataObject) -> None:
    plain, tied = list_form(4, ties=False), list_form(4, ties=True)
    text = json.dumps({"order": marks, "confidence": confidence})
    single = tuple((mark,) for mark in marks)
    assert parse_content(text, plain) == Verdict("order", confidence / 100, places=single)
    cut = data.draw(st.integers(1, 3))
    places = [marks[:cut], marks[cut:]]
    text = json.dumps({"order": places, "confidence": confidence})
    assert parse_content(text, tied).places == tuple(map(tuple, places))
    with pytest.raises(Malformed):
        parse_content(text, plain)


_MARKS = st.sampled_from(["A", "B", "C", "Z", "cannot", 1, None])


@given(st.lists(_MARKS | st.lists(_MARKS, max_size=3), max_size=5) | _MARKS, st.booleans())
def test_any_other_order_is_malformed_property(value: Any, ties: bool) -> None:
    """Every mark has one place, or there is the one word for what can't be judged."""
    form = list_form(3, ties)
    places = value if ties else [[each] for each in value] if isinstance(value, list) else value
    proper = isinstance(places, list) and all(isinstance(place, list) and place for place in places)
    named = sorted(str(mark) for place in places for mark in place) if proper else []
    try:
        verdict = parse_content(json.dumps({"order": value, "confidence": 50}), form)
    except Malformed:
        assert named not in (["A", "B", "C"], ["cannot"])
    else:
        assert named == (["cannot"] if verdict.outcome == "cannot" else ["A", "B", "C"])


def test_lists_have_a_form_of_their_own() -> None:
    plain, tied = list_form(3, ties=False), list_form(3, ties=True)
    marks = {"enum": ["A", "B", "C", "cannot"], "type": "string"}
    assert plain.schema["properties"]["order"] == {"type": "array", "items": marks}
    assert tied.schema["properties"]["order"] == {"type": "array", "items": {"type": "array", "items": marks}}
    assert 'a list of all of "A", "B", "C", each once' in plain.described
    assert "equally good in one list" in tied.described
    longest = json.dumps({"order": [[mark] for mark in list_form(10, ties=True).marks], "confidence": 100})
    assert parse_content(longest, list_form(10, ties=True)).outcome == "order"
    assert len(longest) < 64 + 10 * 8  # the tokens that a reply may have, were each character one


def test_tokens_are_whole_numbers_or_unknown() -> None:
    assert parse_usage(b'{"usage": {"prompt_tokens": 3, "completion_tokens": 0}}') == Usage(3, 0)
    for wrong in (b"{}", b'{"usage": 3}', b'{"usage": {"prompt_tokens": -1, "completion_tokens": 1}}'):
        assert parse_usage(wrong) == Usage()
    for value in ("true", "1.5", '"3"', "1e400", str(2**60)):
        text = f'{{"usage": {{"prompt_tokens": {value}, "completion_tokens": 1}}}}'
        assert parse_usage(text.encode()) == Usage()


# ---- the prompt


def test_a_request_holds_the_passages_as_they_are() -> None:
    left, right = "first {right}\n\n\n[[end 0]]", "second\n[[left x]]\n{question}"
    for prompt in (PROMPTS["preference"],):
        told, asked = prompt.messages(sheet(left, right, guidelines="Be *fair*."), PLAIN, "secret")
        read = LlmRequest({"messages": [told, asked]}, b"", {}, 0, 0)
        assert read.parts == {
            "question": "Where is it?",
            "description": "A place.",
            "conversation": "Who?\nHe.",
            "left": left,
            "right": right,
        }
        assert "Be *fair*." in told["content"]
        assert "first" not in told["content"]


@given(st.text(max_size=60), st.text(max_size=60))
def test_passages_are_always_enclosed_in_marks_property(left: str, right: str) -> None:
    if not left.strip() or not right.strip() or {"\0"} & set(left + right):
        return
    try:
        shown = sheet(left, right)
    except BadParameter:
        return
    told, asked = PROMPTS["preference"].messages(shown, PLAIN, "secret")
    read = LlmRequest({"messages": [told, asked]}, b"", {}, 0, 0).parts
    assert (read["left"], read["right"]) == (left, right)


@given(st.lists(st.text(min_size=1, max_size=30), min_size=3, max_size=10))
def test_listed_passages_are_always_enclosed_in_marks_property(texts: list[str]) -> None:
    try:
        passages = [Passage(str(at), text) for at, text in enumerate(texts)]
    except BadRecord:
        return
    form = list_form(len(texts), ties=False)
    told, asked = PROMPTS["list"].messages(sheet(), form, "secret", passages)
    read = LlmRequest({"messages": [told, asked]}, b"", {}, 0, 0)
    assert read.listed == dict(zip(form.marks, texts, strict=True))
    assert read.parts["question"] == "Where is it?"


def test_secret_word_depends_on_the_secret_and_is_in_no_passage() -> None:
    word = secret_word("secret", ["a", "b"])
    assert word == secret_word("secret", ["a", "b"])
    assert word != secret_word("other", ["a", "b"])
    assert word != secret_word("secret", ["a", "c"])


def test_secret_word_that_occurs_in_a_passage_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    words = iter(["a" * 64, "b" * 64])

    class Known:
        def hexdigest(self) -> str:
            return next(words)

    monkeypatch.setattr(hmac, "new", lambda *_: Known())
    assert secret_word("secret", ["x", "a" * 16]) == "b" * 16


def test_prompt_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "my prompt.txt"
    path.write_text("Choose.\n---\n{question}\n{left}\n{right}\n")
    prompt = read_prompt(str(path), "preference")
    assert prompt.title == "my-prompt/1"
    assert prompt.hash != PROMPTS["preference"].hash
    for text, words in (
        ("Choose.\n{question}{left}{right}", "two parts"),
        ("Choose.\n---\n{question} {left}", "{right}"),
        ("{left}\n---\n{question} {left} {right}", "{left}"),
        ("Choose.\n---\n{question} {left} {right} {secret}", "{secret}"),
        ("Choose.\n---\n \n", "two parts"),
    ):
        path.write_text(text)
        with pytest.raises(BadFile, match=words):
            read_prompt(str(path), "preference")


def test_prompt_for_lists_has_a_place_for_all_items(tmp_path: Path) -> None:
    path = tmp_path / "lists.txt"
    path.write_text("Put in order.\n---\n{question}\n{items}\n")
    assert read_prompt(str(path), "list").title == "lists/1"
    with pytest.raises(BadFile, match="items"):
        read_prompt(str(path), "preference")
    path.write_text("Put in order.\n---\n{question}\n{left}\n{right}\n")
    with pytest.raises(BadFile, match=r"\{left\}"):
        read_prompt(str(path), "list")


def test_prompts_of_earlier_releases_are_unchanged() -> None:
    """A pseudonym keeps its prompt: with another hash, a model that has judged could not continue."""
    hashes = {name: PROMPTS[name].hash for name in ("preference", "answers", "grade")}
    assert hashes == {
        "preference": "8b408103f150ef49",
        "answers": "06330345781c1fc7",
        "grade": "1bfd05073c039ef9",
    }


def test_hash_changes_with_the_text() -> None:
    ours = PROMPTS["preference"]
    other = Prompt(ours.name, ours.version, ours.kind, ours.system + " Please.", ours.user)
    assert other.hash != ours.hash
    assert ours.hash in {"0" * 16} or len(ours.hash) == 16


def test_pictures_and_empty_passages_are_unreadable() -> None:
    assert unreadable_because(sheet()) == ""
    assert unreadable_because(sheet(right=" ")) == "no text"
    picture = Sheet("q", Topic("t", "?"), Passage("a", "https://x/y.png", format="image"), None, frozenset())
    assert unreadable_because(picture) == "a picture"


# ---- money


@given(st.decimals(0, 10_000, places=6), st.integers(0, 10**7), st.integers(0, 10**6))
def test_costs_are_exact_property(price: Any, sent: int, received: int) -> None:
    prices = Prices.per_million(str(price), "0.000001")
    assert prices.cost(sent, received) == int(price * 10**6) * sent + received
    assert prices.most(b"x" * 10, 5) == prices.cost(10 + OVERHEAD_TOKENS, 5)


def test_money_is_read_and_shown() -> None:
    assert read_money("2.50") == 25 * UNIT // 10
    assert money_of(read_money("2.5")) == "2.500000"
    assert money_of(1) == "0.000001"  # never less than it was
    assert money_of(None) == "–"
    for wrong in ("", "x", "-1", "nan", "inf", "1e9", "0.0000001"):
        with pytest.raises(BadParameter):
            read_money(wrong)
