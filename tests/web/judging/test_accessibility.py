"""Accessibility of every judging page and state: axe in narrow, wide and dark layouts, focus, announcements."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from duelpool.campaign import Campaign
from duelpool.campaign.settings.welcome import STEPS
from duelpool.records import Passage, Topic
from support.accessibility import look_with_axe
from support.browsing import People, Person, Site, by_key
from web.judging.test_judging import taken_by_another

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5Er"
    "kJggg=="
)


@pytest.mark.long
def test_pages_before_judging_pass_axe(site: Site, people: People) -> None:
    campaign = site.crowd(steps=STEPS)
    person = people()
    page = person.page
    person.enter(site.link(campaign))
    look_with_axe(page, "consent")
    page.click('button[name="agree"]')
    person.wait_for_state("guide")
    look_with_axe(page, "guide")
    page.click('button[value="guide"]')
    for attempt in ("check", "second try"):
        person.wait_for_state("check")
        look_with_axe(page, attempt)
        for name in ("c1", "c2"):
            page.check(f'input[name="{name}"][value="2"]')
        page.click(".sheet form button")
    person.wait_for_state("check-failed")
    look_with_axe(page, "check failed")


@pytest.mark.long
def test_practice_passes_axe(site: Site, people: People) -> None:
    campaign = site.crowd(steps=("practice",))
    person = people()
    person.enter(site.link(campaign))
    look_with_axe(person.page, "practice")
    person.page.click('button[value="right"]')
    person.page.wait_for_selector(".feedback.wrong")
    look_with_axe(person.page, "practice, feedback")


def shapes(item: str) -> Passage:
    """Return a passage of every format."""
    at = int(item.rsplit("-", 1)[1])
    if at == 0:
        return Passage(
            item, "# A head\n\nSome *text* with `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |", format="markdown"
        )
    if at == 1:
        return Passage(item, PIXEL, title="A picture", format="image")
    if at == 2:
        return Passage(item, "<h1>A page</h1><p>in a frame</p>", title="A page", format="html")
    return Passage(
        item, "Plain text, מעורב, with terms known. " * (1 if at == 3 else 80), title="With a title"
    )


SUBJECT = Topic(
    "t0",
    "What is known about this?",
    description="A good answer says what is known.",
    conversation=("Hello", "And?"),
)


@pytest.mark.long
def test_judging_passes_axe(site: Site, people: People) -> None:
    campaign = site.campaign(
        subjects=(SUBJECT,),
        items=5,
        kind="definite",
        ties=True,
        same=True,
        texts=shapes,
        strategy="allpairs",
        cap=1,
    )
    person = people()
    page = person.page
    person.enter(site.link(campaign, "axe"))
    seen: set[str] = set()
    last = ""
    for _ in range(10):
        last = person.wait_for_pair(last)
        kinds = page.evaluate(
            "[...document.querySelectorAll('.body > *')].map(each => each.className + each.tagName)"
        )
        if not set(kinds) <= seen:
            seen |= set(kinds)
            look_with_axe(page, f"judging {kinds}")
        if len(seen) == 4:
            break
        person.press("ArrowLeft", last)
    assert len(seen) == 4
    for name in ("guide", "options", "note", "stop", "context"):
        page.evaluate("name => document.getElementById(name).showPopover()", name)
        look_with_axe(page, f"window {name}", f"#{name}")
        page.keyboard.press("Escape")


@pytest.mark.long
def test_grading_passes_axe(site: Site, people: People) -> None:
    campaign = site.campaign(stage="grading", scale="five")
    person = people()
    person.enter(site.link(campaign, "axe"))
    person.wait_for_pair()
    look_with_axe(person.page, "grading")


@pytest.mark.long
def test_lost_connection_passes_axe(site: Site, people: People) -> None:
    campaign = site.crowd(targets=2, tests=2)
    person = people()
    person.enter(site.link(campaign))
    person.wait_for_pair()
    person.context.set_offline(True)
    last = ""
    for _ in range(4):
        last = person.wait_for_pair(last)
        person.press("ArrowLeft", last)
    person.wait_until("!document.getElementById('warning').hidden")
    look_with_axe(person.page, "offline")


def in_the_end(site: Site, person: Person) -> None:
    campaign = site.crowd(completion_code="C0DE", targets=2, tests=2)
    person.enter(site.link(campaign))
    person.judge_on(Person.better_side, by_key)


def no_work(site: Site, person: Person) -> None:
    person.enter(site.link(site.crowd(budget=1)))


def waiting(site: Site, person: Person) -> None:
    campaign = site.campaign(topics=1, items=2, known=0, cap=1, strategy="allpairs")
    campaign.enrol("first", "dedicated")
    assert campaign.next_question("first") is not None
    person.enter(site.link(campaign, "second"))


def paused(site: Site, person: Person) -> None:
    in_state(site, person, lambda campaign: campaign.set_state("paused"))


def ended(site: Site, person: Person) -> None:
    in_state(site, person, lambda campaign: campaign.set_state("closed"))


def in_state(site: Site, person: Person, change: Callable[[Campaign], Any]) -> None:
    campaign = site.crowd()
    change(campaign)
    person.enter(site.link(campaign))


def excluded(site: Site, person: Person) -> None:
    campaign = site.crowd(targets=2, tests=2)
    person.enter(site.link(campaign))
    person.judge_on(Person.worse_side, by_key)


def preview(site: Site, person: Person) -> None:
    person.enter(site.link(site.crowd(steps=("consent",)), kind="manager"))


def lease_lost(site: Site, person: Person) -> None:
    campaign = site.campaign(topics=1, items=2, known=0, cap=1, feedback=False, strategy="allpairs")
    person.enter(site.link(campaign, "slow"))
    question = person.page.get_attribute('#answer input[name="question"]', "value")
    assert question is not None
    taken_by_another(site, campaign, question)
    person.page.evaluate(  # as a browser without scripts would send it
        """() => {
          const form = document.getElementById("answer"), chosen = document.createElement("input");
          Object.assign(chosen, { type: "hidden", name: "outcome", value: "left" });
          form.append(chosen);
          HTMLFormElement.prototype.submit.call(form);
        }"""
    )


def error(site: Site, person: Person) -> None:
    person.enter(f"{site.address}/j/nowhere/")


@contextmanager
def german(people: People) -> Iterator[Person]:
    yield people(locale="de-DE")


STATES: dict[str, Callable[[Site, Person], None]] = {
    "no-work": no_work,
    "waiting": waiting,
    "paused": paused,
    "ended": ended,
    "excluded": excluded,
    "consent": preview,
    "lease-lost": lease_lost,
    "error": error,
}


@pytest.mark.long
@pytest.mark.parametrize("state", STATES)
def test_each_state_passes_axe(site: Site, people: People, state: str) -> None:
    with german(people) as person:  # longer words
        STATES[state](site, person)
        person.wait_for_state(state)
        assert person.page.locator("h1").count() == 1
        look_with_axe(person.page, state)


@pytest.mark.long
def test_the_last_page_passes_axe(site: Site, people: People) -> None:
    person = people()
    in_the_end(site, person)
    person.wait_for_state("feedback")
    look_with_axe(person.page, "feedback")
    person.page.click(".sheet .act button")
    person.wait_for_state("complete")
    look_with_axe(person.page, "complete")


# ---- focus and announcements


def test_focus_follows_the_reading_order(site: Site, people: People) -> None:
    campaign = site.campaign(kind="definite", ties=True, same=True, feedback=False)
    person = people()
    page = person.page
    person.enter(site.link(campaign, "tab"))
    person.press("ArrowLeft", person.wait_for_pair())
    person.wait_until_saved()
    person.wait_for_pair()
    assert (
        page.evaluate("document.activeElement.id") == "topic"
    )  # on a new pair the focus moves to the question
    page.evaluate("document.activeElement.blur()")
    page.evaluate("getSelection().removeAllRanges(); document.body.tabIndex = -1; document.body.focus()")
    order: list[str] = []
    for _ in range(40):
        page.keyboard.press("Tab")
        name = page.evaluate(
            "(() => { const at = document.activeElement; if (at === document.body) return ''; "
            "return at.matches('a') ? 'link' : at.value || at.id || "
            "at.getAttribute('popovertarget') || at.closest('#undo')?.id || at.className; })()"
        )
        if not name or (order and name == order[0]):
            break
        order.append(name)
    assert order == [
        *("link", "guide", "options", "stop", "context", "note-open"),
        *("left-bad", "body", "right-bad", "body"),
        *("definitely-left", "left", "tie", "right", "definitely-right"),
        *("undo", "same", "both-bad", "cannot-judge", "skip"),
    ]


def test_changes_are_announced_to_screen_readers(site: Site, people: People) -> None:
    campaign = site.crowd()
    person = people()
    page = person.page
    person.enter(site.link(campaign))
    assert page.get_attribute("#said", "role") == "status"
    first = person.wait_for_pair()
    person.press("ArrowLeft", first)
    person.said("Chosen: Left")
    second = person.wait_for_pair(first)
    assert page.evaluate("document.activeElement.tagName") == "H1"
    person.press("p", second)
    person.said("Chosen: Right is bad")
    person.wait_until_saved()
    page.keyboard.press("u")
    person.said("Answer undone")
    assert page.inner_text("#saved") == "Saved ✓"


def test_a_dialog_takes_the_focus_and_returns_it(site: Site, people: People) -> None:
    campaign = site.crowd()
    person = people()
    page = person.page
    person.enter(site.link(campaign))
    person.wait_for_pair()
    page.focus("#note-open")
    page.keyboard.press("Enter")
    person.wait_until("document.getElementById('note').contains(document.activeElement)")
    page.keyboard.press("Escape")
    person.wait_until("document.activeElement.id === 'note-open'")
    page.keyboard.press("?")
    person.wait_until("document.getElementById('guide').matches(':popover-open')")
    assert "less irrelevant text" in page.inner_text("#guide")
    page.keyboard.press("?")
    person.wait_until("!document.getElementById('guide').matches(':popover-open')")
