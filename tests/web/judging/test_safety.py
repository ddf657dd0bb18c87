"""Untrusted texts on the page: nothing in them runs, loads or links away, and they are shown literally."""

import re
import unicodedata
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Page

from duelpool.records import Passage, Topic
from duelpool.store import schema
from duelpool.web.judging import passages
from support.browsing import People, Person, Site
from support.xss import PAYLOADS

CHUNK = 15
CHUNKS = [" ¦ ".join(PAYLOADS[at : at + CHUNK]) for at in range(0, len(PAYLOADS), CHUNK)]
HARMLESS = (
    "p, h3, h4, h5, h6, ul, ol, li, blockquote, pre, hr, br, table, thead, tbody, tr, th, td, "
    "strong, em, s, code, img"
)
STRANGE = """(selector => [...document.querySelectorAll(selector)].flatMap(text => [...text.querySelectorAll('*')])
  .filter(each => !each.matches(HARMLESS + ', a[href^="http"], a[href^="mailto:"], a:not([href])')
    || [...each.attributes].some(one => !['src', 'alt', 'start', 'href', 'rel', 'title'].includes(one.name))
    || (each.src ?? '').startsWith('http'))
  .map(each => each.outerHTML))""".replace("HARMLESS", repr(HARMLESS))


def test_there_are_enough_payloads() -> None:
    assert len(set(PAYLOADS)) >= 150


def shown(page: Page) -> dict[str, list[str]]:
    """Return the texts that the page shows, by place."""
    texts: dict[str, list[str]] = page.evaluate(
        "Object.fromEntries(['#topic', '.description', '.talk li', '.title', '.body > .text']"
        ".map(place => [place, [...document.querySelectorAll(place)].map(each => each.textContent)]))"
    )
    return texts


def expected(text: str) -> dict[str, list[str]]:
    return {
        "#topic": [text],
        ".description": [text],
        ".talk li": [text, text],
        ".title": [text] * 2,
        ".body > .text": [text] * 2,
    }


@pytest.mark.long
def test_payloads_are_shown_literally_by_server_and_script(site: Site, people: People) -> None:
    topics = tuple(
        Topic(f"t{at}", text, description=text, conversation=(text, text), snippets=(text,))
        for at, text in enumerate(CHUNKS)
    )

    def text_of(item: str) -> Passage:
        text = CHUNKS[int(item.split("-", maxsplit=1)[0][1:])]
        return Passage(item, text, title=text)

    campaign = site.campaign(
        subjects=topics, items=2, known=0, texts=text_of, strategy="allpairs", cap=1, feedback=False
    )
    person = people()
    page = person.page
    person.enter(site.link(campaign, "reader"))
    seen: list[str] = []
    last = ""
    while person.state == "judging":
        last = person.wait_for_pair(last)  # a script has drawn it, but for the first
        text = page.evaluate("document.getElementById('topic').textContent")
        assert shown(page) == expected(text)
        page.reload()  # the server has drawn it
        last = person.wait_for_pair()
        assert shown(page) == expected(text)
        page.keyboard.press("c")
        page.wait_for_selector("#snippets li .text")
        assert page.evaluate("document.querySelector('#snippets .text').textContent") == text
        page.keyboard.press("Escape")
        page.keyboard.press("n")
        page.fill("#note-text", text)
        page.keyboard.press("Escape")
        page.wait_for_selector("#note", state="hidden")
        seen.append(text)
        person.press("ArrowLeft", last)
        person.wait_until(
            "last => document.body && (!['judging', ''].includes(document.body.dataset.state) "
            "|| ![undefined, '', last].includes(document.documentElement.dataset.open))",
            last,
        )
    assert sorted(seen) == sorted(CHUNKS)
    assert sorted(row.note for row in site.answers(campaign)) == sorted(CHUNKS)


def judging(site: Site, people: People) -> Person:
    person = people()
    person.enter(site.link(site.campaign(), "somebody"))
    person.wait_for_pair()
    return person


SCRIPTS = """const url = document.querySelector('script[type=module]').src;
  const js = name => import(url.replace('page', name));"""


def test_each_payload_is_drawn_literally(site: Site, people: People) -> None:
    person = judging(site, people)
    wrong = person.page.evaluate(
        f"""async payloads => {{
            {SCRIPTS}
            const {{ drawQuestion, fill }} = await js('panes');
            const words = JSON.parse(document.getElementById('words').textContent);
            const text = place => [...document.querySelectorAll(place)].map(each => each.textContent);
            const wrong = [];
            for (const payload of payloads) {{
              const shown = {{ format: 'text', title: payload, text: payload }};
              drawQuestion({{ id: payload, attempt: 1, criterion: payload, outcomes: ['left'],
                left: shown, right: shown,
                topic: {{ text: payload, description: payload, conversation: [payload] }} }}, words);
              const places = ['#topic', '.description', '.talk li', '.title', '.body > .text'].flatMap(text);
              if (places.length !== 7 || places.some(each => each !== payload)) wrong.push(payload);
              if (document.querySelector('#answer input[name=question]').value !== payload) wrong.push(payload);
              if (!document.getElementById('ask').textContent.includes(payload)) wrong.push(payload);
              if (fill('a {{n}} b', {{ n: payload }}) !== `a ${{payload}} b`) wrong.push(payload);
              const image = {{ format: 'image', title: payload, src: 'data:image/png;base64,AAAA' }};
              drawQuestion({{ id: 'q', attempt: 1, criterion: 'overall', outcomes: ['left'], left: image, right: image,
                topic: {{ text: '', conversation: [] }} }}, words);
              if (document.querySelector('.body img').alt !== payload) wrong.push(payload);
            }}
            return wrong;
        }}""",
        [each for each in PAYLOADS if "\n" not in each],  # a hidden field's value has one line
    )
    assert wrong == []


def test_markdown_of_payloads_is_harmless(site: Site, people: People) -> None:
    person = judging(site, people)
    page = person.page
    htmls = [passages.markdown(each, links=links) for each in PAYLOADS for links in (False, True)]
    texts = page.evaluate(
        "htmls => htmls.map(html => { const made = document.createElement('div'); made.className = 'text payload'; "
        "made.innerHTML = html; document.getElementById('main').append(made); return made.textContent; })",
        htmls,
    )
    assert page.evaluate(f"{STRANGE}('.payload')") == []
    plain = [each for each in PAYLOADS if not re.search(r"[*_\[\]`!#|&~\\\n\t\x0c\x0b:]|^\s|\s$|^[+-]", each)]
    assert len(plain) >= 30
    for payload in plain:
        assert texts[2 * PAYLOADS.index(payload)].strip() == payload
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")


def test_guidelines_and_consent_of_payloads_are_harmless(site: Site, people: People) -> None:
    text = "\n\n".join(PAYLOADS)
    campaign = site.crowd(steps=("consent", "guide"), guidelines=text, consent=text)
    person = people()
    page = person.page
    person.enter(site.link(campaign))
    for state in ("consent", "guide"):
        person.wait_for_state(state)
        assert page.evaluate(f"{STRANGE}('.text')") == []
        assert "<svg><script>alert(1)</script></svg>" in page.inner_text(".text")
        page.click(".sheet form button")
    person.wait_for_pair()
    page.keyboard.press("?")
    page.wait_for_selector("#guide", state="visible")
    assert page.evaluate(f"{STRANGE}('#guide .text')") == []


def test_html_of_payloads_stays_in_its_frame(site: Site, people: People) -> None:
    def text_of(item: str) -> Passage:
        return Passage(
            item, "\n".join(PAYLOADS[:: 1 if item.endswith("0") else -1]), title="<b>", format="html"
        )

    campaign = site.campaign(topics=1, items=2, known=0, texts=text_of, strategy="allpairs", feedback=False)
    person = people()
    page = person.page
    person.enter(site.link(campaign, "reader"))
    person.wait_for_pair()
    page.wait_for_load_state("load")
    assert [frame.get_attribute("sandbox") for frame in page.query_selector_all("iframe.frame")] == ["", ""]
    assert page.evaluate("[...document.querySelectorAll('iframe')].map(each => each.contentDocument)") == [
        None,
        None,
    ]
    assert page.get_attribute("#left iframe", "title") == "<b>"


@pytest.mark.long
def test_worker_ids_of_payloads_are_stored_literally(site: Site, people: People) -> None:
    campaign = site.crowd(steps=("consent",), visitors_per_address=0)
    person = people()
    for payload in PAYLOADS:
        reply = person.context.request.get(site.link(campaign, worker=payload))
        assert reply.status == 200
        agreed = person.context.request.post(
            f"{site.address}/j/{campaign.id}/step",
            form={"step": "consent", "agree": "yes"},
            headers={"Origin": site.address},
        )
        assert agreed.status == 200
        person.context.clear_cookies()
    assert sorted(row.external for row in site.rows(schema.identity, campaign)) == sorted(PAYLOADS)
    person.enter(site.link(campaign, worker=PAYLOADS[0]))
    person.wait_for_state("judging")
    assert "alert" not in person.page.content()


# ---- marks

LETTERS = [
    *"abAB12_ .,-'\n\u00e9\u00c9\u00df\u03c3\u03a3\u0434\u0414",
    *"\u05e9\u0644\u0915\u093f\u4e2d\u6587\u304b\u30ab\u0e01",
    "e\u0301",
    "\U0001f600",
    "\u200d",
]
PIECES = st.lists(st.sampled_from(LETTERS), max_size=12).map("".join)
UNSPACED = re.compile("[\u4e00-\u9fff\u3040-\u30ff\u0e00-\u0e7f]")


def in_word(letter: str) -> bool:
    return letter == "_" or unicodedata.category(letter)[0] in "LMN"


def small(text: str) -> str:
    return text.lower().replace("\u03c2", "\u03c3")


def places_by_definition(text: str, terms: list[str]) -> list[str]:
    """Return the highlighted parts: whole words, or any occurrence in scripts without spaces."""
    matches: list[tuple[int, int]] = []
    for term in filter(None, terms):
        for at in range(len(text) - len(term) + 1):
            end = at + len(term)
            cuts = (text[place - 1 : place + 1] for place in (at, end) if 0 < place < len(text))
            whole = not any(in_word(cut[0]) and in_word(cut[1]) for cut in cuts)
            if small(text[at:end]) == small(term) and (whole or UNSPACED.search(term)):
                matches.append((at, end))
    kept: list[str] = []
    last = 0
    for start, end in sorted(matches, key=lambda each: (each[0], -each[1])):
        if start >= last:
            kept.append(text[start:end])
            last = end
    return kept


MARK = f"""async cases => {{
  {SCRIPTS}
  const {{ mark, unmark }} = await js('highlight');
  const home = document.querySelector('#left .body');
  return cases.map(([parts, terms]) => {{
    const made = parts.map((part, at) => {{
      const each = document.createElement(at % 2 ? 'b' : 'span');
      each.textContent = part;
      return each;
    }});
    home.replaceChildren(...made);
    const before = [home.innerHTML, home.innerText, home.textContent];
    const count = mark([home], terms);
    const ranges = [...(CSS.highlights.get('term') ?? [])];
    const marked = made.map(each => ranges.filter(one => each.contains(one.startContainer))
      .map(one => one.startContainer.data.slice(one.startOffset, one.endOffset)));
    const after = [home.innerHTML, home.innerText, home.textContent];
    unmark();
    return [before.every((each, at) => each === after[at]), count === ranges.length, marked,
      CSS.highlights.has('term'), home.textContent];
  }});
}}"""


def test_highlighting_keeps_the_text_and_marks_the_right_places(site: Site, people: People) -> None:
    person = judging(site, people)
    case = st.tuples(st.lists(PIECES, min_size=1, max_size=4), st.lists(PIECES.map(str.strip), max_size=3))

    @settings(max_examples=6, phases=[Phase.generate])  # a batch of many doesn't get shorter in useful time
    @given(st.lists(case, min_size=60, max_size=80))
    def hold(cases: list[tuple[list[str], list[str]]]) -> None:
        given_terms = [
            (parts, [*terms, *(re.split(r"\W+", parts[0])[:1])]) for parts, terms in cases
        ]  # so that there is a match
        results: list[Any] = person.page.evaluate(MARK, given_terms)
        for (parts, terms), (same, counted, marked, left_over, text) in zip(
            given_terms, results, strict=True
        ):
            assert same
            assert counted
            assert not left_over
            assert text == "".join(parts)
            assert marked == [places_by_definition(part, terms) for part in parts], (parts, terms)

    hold()


def test_highlighting_is_visible(site: Site, people: People) -> None:
    campaign = site.campaign()
    person = people()
    person.enter(site.link(campaign, "looks"))
    person.wait_for_pair()
    assert person.page.evaluate("CSS.highlights.get('term').size") > 0
    before = person.page.screenshot()
    person.page.keyboard.press("h")
    person.said("no longer highlighted")
    assert person.page.evaluate("CSS.highlights.has('term')") is False
    assert person.page.screenshot() != before
