"""The judging page in a browser: whole assignments, network failures, undo, keys and leases."""

from typing import Any

import pytest
from playwright.sync_api import Page, Route
from sqlalchemy import Connection, update

from duelpool.campaign import Campaign
from duelpool.campaign.settings.welcome import STEPS
from duelpool.records import Answer, Outcome, Passage, Topic
from duelpool.store import schema
from support.browsing import OFF_TOPIC, PATIENCE, People, Person, Site, by_key, by_mouse


def better(person: Person) -> str:
    return person.better_side()


def worse(person: Person) -> str:
    return person.worse_side()


def rewards(site: Site, campaign: Campaign) -> list[int]:
    return [row.amount for row in site.rows(schema.ledger, campaign) if row.entry == "reward"]


def answers_to(site: Site, campaign: Campaign) -> list[tuple[str, str]]:
    return [(row.question, row.outcome) for row in site.answers(campaign)]


def feedback(site: Site, campaign: Campaign) -> list[tuple[Any, ...]]:
    return [(row.confidence, row.understanding, row.text) for row in site.rows(schema.feedback, campaign)]


# ---- whole assignments


@pytest.mark.long
def test_a_whole_assignment_by_keyboard_alone(site: Site, people: People) -> None:
    campaign = site.crowd(steps=STEPS, completion_code="C0DE")
    person = people()
    person.enter(site.link(campaign))
    keyboard = person.page.keyboard
    person.wait_for_state("consent")
    person.tab_to('button[name="agree"]')
    keyboard.press("Enter")
    person.wait_for_state("guide")
    person.tab_to('button[value="guide"]')
    keyboard.press("Enter")
    person.wait_for_state("check")
    for name, moves in (("c1", 1), ("c2", 0)):
        person.tab_to(f'input[name="{name}"]')
        keyboard.press("Space")
        for _ in range(moves):
            keyboard.press("ArrowDown")
    person.tab_to(".sheet button")
    keyboard.press("Enter")
    for number, side in ((1, "left"), (2, "left")):
        person.wait_for_state("practice")
        person.page.wait_for_selector(f'input[name="number"][value="{number}"]', state="attached")
        if number == 1:
            person.tab_to(f'button[value="{side}"]')
            keyboard.press("Enter")
        else:
            keyboard.press("ArrowLeft")
        person.page.wait_for_selector(".feedback." + ("right" if number == 1 else "wrong"))
        person.page.wait_for_selector('button[name="go_on"]:focus')
        keyboard.press("Enter")
    assert person.judge_on(better, by_key) == 13
    assert person.state == "feedback"
    person.tab_to('input[name="confidence"]')
    keyboard.press("ArrowRight")
    person.tab_to('input[name="understanding"]')
    keyboard.press("ArrowRight")
    keyboard.press("ArrowRight")
    person.tab_to("textarea")
    keyboard.type("Keys only: 1 2 q p x.")
    person.tab_to(".act button")
    keyboard.press("Enter")
    person.wait_for_state("complete")
    assert person.page.inner_text("#code") == "C0DE"
    person.tab_to('#completion[href="https://panel.example/done"]')
    stored = site.answers(campaign)
    assert len(stored) == len({row.question for row in stored}) == 13
    assert sorted(row.place for row in stored) == [row.place for row in stored]
    assert all(row.seconds >= 0.1 and row.highlighted for row in stored)
    assert rewards(site, campaign) == [200]
    ((confidence, understanding, text),) = feedback(site, campaign)
    assert (confidence, understanding, text) == (2, 3, "Keys only: 1 2 q p x.")


def test_a_whole_assignment_with_the_mouse(site: Site, people: People) -> None:
    campaign = site.crowd(feedback=False)
    person = people()
    person.enter(site.link(campaign))
    assert person.page.inner_text("#count") == "Pair 1 of 13"
    assert person.judge_on(better, by_mouse) == 13
    assert person.state == "complete"
    assert len({row.question for row in site.answers(campaign)}) == 13
    assert rewards(site, campaign) == [200]


@pytest.mark.long
def test_a_whole_assignment_without_javascript(site: Site, people: People) -> None:
    campaign = site.crowd(steps=STEPS)
    person = people(java_script_enabled=False)
    page = person.page
    person.enter(site.link(campaign))
    page.click('button[name="agree"]')
    page.click('button[value="guide"]')
    for wrong in (True, False):
        page.check(f'input[name="c1"][value="{0 if wrong else 1}"]')
        page.check('input[name="c2"][value="0"]')
        page.click(".sheet form button")
        assert page.locator("[role=alert]").count() == wrong
    for side in ("left", "right"):
        page.click(f'button[value="{side}"]')
        page.click('button[name="go_on"]')
    for at in range(13):
        assert page.inner_text("#count") == f"Pair {at + 1} of 13"
        assert not page.is_visible(".scripted >> nth=0")
        if at == 1:
            page.click("#note-open")
            page.fill("#note-text", "a note without a script")
            page.click("#note button")
        side = "right" if OFF_TOPIC in page.inner_text("#left .body") else "left"
        page.click(f'button.choice[value="{side}"]')
        if at == 5:
            page.click("#undo button")
            assert page.inner_text("#count") == "Pair 6 of 13"
            side = "right" if OFF_TOPIC in page.inner_text("#left .body") else "left"
            page.click(f'button.choice[value="{side}"]')
    person.wait_for_state("feedback")
    page.click(".sheet form button")
    person.wait_for_state("complete")
    stored = site.answers(campaign)
    assert len(stored) == 14
    assert len({row.question for row in stored}) == 13
    assert [row.note for row in stored if row.note] == ["a note without a script"]
    assert rewards(site, campaign) == [200]


@pytest.mark.long
def test_a_whole_assignment_on_a_phone(site: Site, people: People) -> None:
    def long(item: str) -> Passage:
        return Passage(item, f"Text {item}. " + "One thing is known, and then another one. " * 25)

    campaign = site.crowd(feedback=False, texts=long)
    person = people(360, 640, has_touch=True, is_mobile=True, reduced_motion="reduce")
    page = person.page
    person.enter(site.link(campaign))
    looked: list[str] = []

    def tap(person: Person, side: str) -> None:
        key = person.data("shown")
        if not person.sees_both():  # both must have been seen before the buttons work
            assert not page.is_visible(".choice")
            if looked:
                page.dispatch_event("#look-there", "click")
            else:
                page.keyboard.press("ArrowLeft")  # leads there, too, and judges nothing
                person.said("look at both")
            looked.append(key)
        person.wait_until_answerable()
        assert person.data("shown") == key
        page.evaluate("() => new Promise(done => setTimeout(done, 350))")  # two quick taps are a double tap
        page.tap(f'button.choice[value="{side}"]')

    assert person.judge_on(better, tap) == 13
    assert person.state == "complete"
    assert len(looked) >= 10  # the targets' texts are long; the tests' texts fit the screen
    assert len({row.question for row in site.answers(campaign)}) == 13


def test_no_horizontal_scrolling_and_equal_panes(site: Site, people: People) -> None:
    campaign = site.campaign(kind="definite", ties=True, same=True)
    person = people()
    person.enter(site.link(campaign, "wide"))
    person.wait_for_pair()
    for width, height in ((320, 640), (360, 640), (768, 1024), (1280, 800), (1920, 1080), (320, 256)):
        person.page.set_viewport_size({"width": width, "height": height})
        assert person.page.evaluate("document.documentElement.scrollWidth") <= width
        boxes = person.page.evaluate(
            "['left', 'right'].map(id => document.getElementById(id).getBoundingClientRect())"
            ".map(each => [each.width, each.height])"
        )
        assert boxes[0][0] == boxes[1][0]
        if width >= 768:
            assert boxes[0][1] == boxes[1][1]
        small = person.page.evaluate(
            "[...document.querySelectorAll('button, a.button')].filter(each => each.checkVisibility())"
            ".map(each => [each.textContent, each.getBoundingClientRect()])"
            ".filter(([, box]) => box.width < 44 || box.height < 44).map(([text]) => text)"
        )
        assert small == []


def test_texts_are_laid_out_in_their_own_direction(site: Site, people: People) -> None:
    def text_of(item: str) -> Passage:
        return Passage(item, "שלום, known מעורב" if item.endswith("0") else "Plain, with שלום in it.")

    campaign = site.campaign(topics=1, items=2, known=0, texts=text_of, strategy="allpairs", feedback=False)
    person = people()
    person.enter(site.link(campaign, "reader"))
    person.wait_for_pair()
    directions = person.page.evaluate(
        "[...document.querySelectorAll('.body .text')]"
        ".map(each => [each.textContent[0], getComputedStyle(each).direction])"
    )
    assert sorted(directions) == [["P", "ltr"], ["ש", "rtl"]]


# ---- nothing is lost, nothing counts twice


@pytest.mark.long
def test_offline_answers_are_queued_and_stored_once_in_order(site: Site, people: People) -> None:
    campaign = site.crowd(targets=18, feedback=False, test_share=0.0)  # and three test pairs
    person = people()
    page = person.page
    person.enter(site.link(campaign))
    person.press("ArrowLeft", person.wait_for_pair())
    person.wait_until_saved()
    person.context.set_offline(True)
    shown: list[str] = []
    last = ""
    for at in range(20):
        last = person.wait_for_pair(last)
        shown.append(last)
        by_key(person, "right" if at % 2 else "left")
        person.leave(last)
    person.wait_until("document.documentElement.dataset.waiting === '20'")
    person.wait_until("!document.getElementById('warning').hidden")
    assert "20" in page.inner_text("#warning-text")
    assert person.data("shown") == ""
    assert page.is_visible("#hold-text")
    assert page.locator("#completion").count() == 0
    assert len(site.answers(campaign)) == 1
    person.context.set_offline(False)
    person.wait_for_state("complete")
    page.wait_for_selector("#completion")
    stored = site.answers(campaign)[1:]
    assert [f"{row.question}/{row.attempt}" for row in stored] == shown
    assert [row.outcome for row in stored] == ["left", "right"] * 10


def test_answers_survive_a_closed_tab_and_lost_replies(site: Site, people: People) -> None:
    campaign = site.crowd()
    person = people()
    person.enter(site.link(campaign))
    lost: list[int] = []

    def lose_the_reply(route: Route) -> None:
        if not lost:
            lost.append(route.fetch().status)
        route.abort()

    person.page.route("**/answer", lose_the_reply)
    shown: list[str] = []
    person.wait_for_pair()
    for _ in range(3):
        shown.append(person.wait_for_pair(shown[-1] if shown else ""))
        person.press("ArrowLeft", shown[-1])
        if len(shown) == 1:
            person.wait_until("document.documentElement.dataset.trouble === 'offline'")
    assert lost == [200]
    assert len(site.answers(campaign)) == 1
    person.page.close()
    again = people.tab(person.context)
    again.enter(f"{site.address}/j/{campaign.id}/")
    again.wait_until_saved()
    assert again.wait_for_pair() not in shown
    again.wait_until("document.getElementById('count').textContent.includes('4')")
    assert [f"{row.question}/{row.attempt}" for row in site.answers(campaign)] == shown


def test_a_failed_request_is_retried(site: Site, people: People) -> None:
    campaign = site.crowd()
    person = people()
    person.enter(site.link(campaign))
    person.page.route("**/answer", lambda route: route.fulfill(status=503, body="{}"))
    key = person.wait_for_pair()
    person.press("ArrowRight", key)
    person.wait_until("document.documentElement.dataset.trouble === 'offline'")
    person.page.unroute("**/answer")
    person.page.dispatch_event("#warning-act", "click")  # or it has tried again by itself
    person.wait_until_saved()
    person.wait_until("document.getElementById('warning').hidden")
    assert [f"{row.question}/{row.attempt}" for row in site.answers(campaign)] == [key]


def test_queued_answers_survive_a_lost_session(site: Site, people: People) -> None:
    campaign = site.crowd()
    person = people()
    link = site.link(campaign, worker="W1")
    person.enter(link)
    key = person.wait_for_pair()
    person.context.clear_cookies()
    person.press("ArrowLeft", key)
    person.wait_until("document.documentElement.dataset.trouble === 'forgotten'")
    assert site.answers(campaign) == []
    person.enter(link)
    person.wait_for_pair()
    person.wait_until_saved()
    assert [f"{row.question}/{row.attempt}" for row in site.answers(campaign)] == [key]


def test_double_clicks_and_held_keys_answer_once(site: Site, people: People) -> None:
    campaign = site.crowd()
    person = people()
    person.enter(site.link(campaign))
    first = person.wait_for_pair()
    person.page.dblclick('button.choice[value="left"]')
    second = person.wait_for_pair(first)
    person.wait_until_saved()
    assert len(site.answers(campaign)) == 1
    box = person.page.locator('button.choice[value="left"]').bounding_box()
    assert box is not None
    person.page.mouse.move(box["x"] + 9, box["y"] + 9)
    person.page.mouse.down(click_count=2)  # the second click, as late as it may come
    person.page.mouse.up(click_count=2)
    assert person.data("shown") == second
    for _ in range(5):
        person.page.keyboard.down("ArrowRight")  # from the second on the browser says that it repeats
    third = person.wait_for_pair(second)
    for _ in range(5):
        person.page.keyboard.down("ArrowRight")
    person.page.keyboard.up("ArrowRight")
    person.wait_until_saved()
    assert person.data("shown") == third
    assert answers_to(site, campaign) == [(first.split("/")[0], "left"), (second.split("/")[0], "right")]


def test_two_tabs_follow_each_other(site: Site, people: People) -> None:
    campaign = site.crowd()
    one = people()
    one.enter(site.link(campaign))
    first = one.wait_for_pair()
    two = people.tab(one.context)
    two.enter(f"{site.address}/j/{campaign.id}/")
    assert two.wait_for_pair() == first
    one.press("ArrowLeft", first)
    second = two.wait_for_pair(first)
    assert one.wait_for_pair(first) == second
    two.press("ArrowRight", second)
    assert one.wait_for_pair(second) == two.wait_for_pair(second)
    one.wait_until_saved()
    assert [row.outcome for row in site.answers(campaign)] == ["left", "right"]


def test_the_first_of_two_different_answers_is_kept(site: Site, people: People) -> None:
    campaign = site.crowd()
    one = people()
    one.enter(site.link(campaign))
    first = one.wait_for_pair()
    two = people(storage_state=one.context.storage_state())  # another device with the same visit
    two.enter(f"{site.address}/j/{campaign.id}/")
    two.wait_for_pair()
    one.press("ArrowLeft", first)
    one.wait_until_saved()
    two.press("ArrowRight", first)
    two.said("first answer counts")
    two.wait_for_pair(first)
    assert [row.outcome for row in site.answers(campaign)] == ["left"]


# ---- undo, bad, notes, context


def test_undo_shows_the_same_pair_again(site: Site, people: People) -> None:
    campaign = site.crowd()
    person = people()
    person.enter(site.link(campaign))
    assert not person.page.is_visible("#undo button")
    first = person.wait_for_pair()
    text = person.page.inner_text("#left .body")
    person.press("ArrowLeft", first)
    person.wait_until_saved()
    second = person.wait_for_pair(first)
    person.page.keyboard.press("u")
    again = person.wait_for_pair(second)
    assert again == first.split("/")[0] + "/2"
    assert person.page.inner_text("#left .body") == text
    assert person.page.inner_text("#count") == "Pair 1 of 13"
    person.said("Answer undone")
    person.press("ArrowRight", again)
    assert person.wait_for_pair(again) == second
    person.wait_until_saved()
    assert [row.outcome for row in site.answers(campaign)] == ["left", "right"]
    assert sum(row.event == "retraction" for row in site.rows(schema.log, campaign)) == 1


def test_a_queued_answer_is_undone_on_the_device(site: Site, people: People) -> None:
    campaign = site.crowd()
    person = people()
    person.enter(site.link(campaign))
    first = person.wait_for_pair()
    person.context.set_offline(True)
    person.press("ArrowLeft", first)
    second = person.wait_for_pair(first)
    person.wait_until("document.documentElement.dataset.trouble === 'offline'")
    person.press("ArrowLeft", second)
    person.wait_for_pair(second)
    person.page.keyboard.press("u")
    person.wait_until("key => document.documentElement.dataset.open === key", second)
    person.press("ArrowRight", second)
    person.context.set_offline(False)
    person.wait_until_saved()
    assert [row.outcome for row in site.answers(campaign)] == ["left", "right"]
    assert [row.event for row in site.rows(schema.log, campaign)] == ["judgment"] * 2


@pytest.mark.long
def test_bad_removes_an_item_and_undo_restores_it(site: Site, people: People) -> None:
    campaign = site.campaign(topics=1, items=5, feedback=False, strategy="allpairs", cap=1)
    person = people()
    person.enter(site.link(campaign, "dedicated"))
    first = person.wait_for_pair()

    def item(side: str) -> str:
        return person.page.inner_text(f"#{side} .body").split(".")[0].removeprefix("Text ")

    bad = item("left")
    person.press("q", first)
    person.wait_until_saved()
    (row,) = site.answers(campaign)
    assert (row.outcome, row.left_item) == ("left-bad", bad)
    person.page.keyboard.press("u")
    again = person.wait_for_pair(first)
    while again.split("/")[0] != first.split("/")[0]:
        again = person.wait_for_pair(again)
    assert item("left") == bad
    person.press("q", again)
    person.wait_until_saved()
    seen: set[str] = set()

    def choose(person: Person) -> str:
        seen.update((item("left"), item("right")))
        return "left"

    # one pair was prefetched before the vote; from the next one on the item is gone
    held = person.wait_for_pair(again)
    person.press("ArrowLeft", held)
    person.judge_on(choose, by_key)
    assert bad not in seen
    assert len(seen) >= 3


def test_each_key_gives_its_answer(site: Site, people: People) -> None:
    campaign = site.crowd()
    person = people()
    person.enter(site.link(campaign))
    asked: dict[str, str] = {}
    last = ""
    for key, outcome in {"q": "left-bad", "p": "right-bad", "b": "both-bad", "x": "cannot-judge"}.items():
        last = person.wait_for_pair(last)
        asked[last.split("/")[0]] = outcome
        person.press(key, last)
    person.wait_until_saved()
    assert {row.question: row.outcome for row in site.rows(schema.log, campaign)} == asked


def test_definitely_ties_and_same(site: Site, people: People) -> None:
    campaign = site.campaign(kind="definite", ties=True, same=True, feedback=False)
    person = people()
    person.enter(site.link(campaign, "sure"))
    last = ""
    for key in ("Shift+ArrowLeft", "Shift+ArrowRight", "t", "s", "1", "2"):
        last = person.wait_for_pair(last)
        person.press(key, last)
    person.wait_until_saved()
    assert [row.outcome for row in site.answers(campaign)] == [
        *("definitely-left", "definitely-right", "tie", "same", "left", "right")
    ]


def test_grades_have_keys_and_equal_areas(site: Site, people: People) -> None:
    campaign = site.campaign(stage="grading", scale="five", feedback=False)
    person = people()
    person.enter(site.link(campaign, "grader"))
    first = person.wait_for_pair()
    width = person.page.evaluate("document.getElementById('only').offsetWidth")
    assert abs(width - (1280 - 32 - 12) / 2) <= 1  # as wide as one of two
    person.press("4", first)
    second = person.wait_for_pair(first)
    person.page.click('button[name="grade"][value="0"], button[name="grade"][value="0.0"]')
    person.leave(second)
    person.wait_until_saved()
    assert [(row.outcome, row.grade) for row in site.answers(campaign)] == [("grade", 3.0), ("grade", 0.0)]


def test_notes_context_and_highlighting_are_stored_with_the_answer(site: Site, people: People) -> None:
    campaign = site.crowd()
    person = people()
    page: Page = person.page
    person.enter(site.link(campaign))
    first = person.wait_for_pair()
    page.keyboard.press("c")
    page.wait_for_selector("#snippets li")
    assert 1 <= page.locator("#snippets li").count() <= 10
    page.keyboard.press("ArrowLeft")  # nothing is judged behind an open window
    page.keyboard.press("Escape")
    page.wait_for_selector("#context", state="hidden")
    assert person.data("shown") == first
    page.keyboard.press("h")
    person.said("no longer highlighted")
    page.keyboard.press("n")
    page.fill("#note-text", "x q 1 2 u: keys are letters here")
    page.locator("#note-text").press("ArrowLeft")
    page.keyboard.press("Escape")
    page.wait_for_selector("#note", state="hidden")
    person.press("ArrowLeft", first)
    person.press("ArrowRight", person.wait_for_pair(first))
    person.wait_until_saved()
    one, two = site.answers(campaign)
    assert (one.note, one.context_uses, one.highlighted) == ("x q 1 2 u: keys are letters here", 1, False)
    assert (two.note or "", two.context_uses, two.highlighted) == ("", 0, False)


@pytest.mark.long
def test_a_note_outlives_a_reload_and_an_undo_and_ends_with_its_pair(site: Site, people: People) -> None:
    campaign = site.crowd()
    person = people()
    page: Page = person.page
    person.enter(site.link(campaign))
    first = person.wait_for_pair()
    page.click("#note-open")
    page.fill("#note-text", "both are old")
    page.click("#note-save")
    page.wait_for_selector("#note", state="hidden")
    person.said("Note saved")
    page.reload()
    assert person.wait_for_pair() == first
    assert page.input_value("#note-text") == "both are old"
    assert page.get_attribute("#note-open", "data-noted") == ""
    person.press("ArrowLeft", first)
    second = person.wait_for_pair(first)
    assert page.input_value("#note-text") == ""
    assert page.get_attribute("#note-open", "data-noted") is None
    person.wait_until_saved()
    page.keyboard.press("u")
    person.said("Answer undone")
    again = person.wait_for_pair(second)
    assert page.input_value("#note-text") == "both are old"
    person.press("ArrowLeft", again)
    person.press("ArrowRight", person.wait_for_pair(again))
    person.wait_until_saved()
    assert [row.note or "" for row in site.answers(campaign)][-2:] == ["both are old", ""]
    assert page.evaluate("Object.keys(localStorage).filter(key => key.endsWith(':notes'))") == []


def test_a_topic_without_words_is_not_shown_as_its_number(site: Site, people: People) -> None:
    campaign = site.crowd(subjects=(Topic("2082", "2082"), Topic("2083", " ")))
    person = people()
    person.enter(site.link(campaign))
    person.wait_for_pair()
    assert person.page.inner_text("#topic") == "A question without text"


@pytest.mark.long
def test_second_tap_on_see_the_other_passage_answers_nothing(site: Site, people: People) -> None:
    campaign = site.crowd(texts=lambda item: Passage(item, f"Text {item}. " + "One thing is known. " * 60))
    person = people(390, 844, has_touch=True, is_mobile=True, reduced_motion="reduce")
    page: Page = person.page
    person.enter(site.link(campaign))
    shown = person.wait_for_pair()
    while person.sees_both():
        person.wait_until_answerable()
        page.tap(f"button.choice.{person.better_side()}")
        shown = person.wait_for_pair(shown)
    page.evaluate(  # a choice is tapped the moment that it appears under the finger
        """() => new Promise((done) => {
          const watching = new MutationObserver(() => {
            if (document.documentElement.dataset.seen !== "all") return;
            watching.disconnect();
            clearInterval(looking);
            document.querySelector("button.choice.left").click();
            done();
          });
          watching.observe(document.documentElement, { attributeFilter: ["data-seen"] });
          const looking = setInterval(() => document.getElementById("look-there").click(), 50);
        })"""
    )
    assert person.data("shown") == shown
    person.wait_until_answerable()
    page.tap("button.choice.left")
    assert person.wait_for_pair(shown) != shown


TELL_LATE = """
    window.untold = [];
    const Native = IntersectionObserver;
    window.IntersectionObserver = class extends Native {
      constructor(told, options) { super((...given) => window.untold.push(() => told(...given)), options); }
    };
"""
TELL = "() => window.untold.splice(0).forEach((each) => each())"


def test_what_a_browser_reports_late_does_not_count_for_the_next_pair(site: Site, people: People) -> None:
    def long(item: str) -> Passage:
        return Passage(item, f"Text {item}. " + "One thing is known. " * 90)

    campaign = site.campaign(topics=1, items=3, known=0, texts=long, strategy="allpairs", feedback=False)
    person = people(390, 844, has_touch=True, is_mobile=True, reduced_motion="reduce")
    page = person.page
    page.add_init_script(TELL_LATE)
    person.enter(site.link(campaign, "reader"))
    first = person.wait_for_pair()
    person.wait_until("window.untold.length")
    assert person.data("seen") == ""
    assert not page.is_visible(".choice")
    page.evaluate(TELL)
    assert person.data("seen") == "some"
    page.dispatch_event("#look-there", "click")
    person.wait_until("window.untold.length")
    page.evaluate(TELL)
    person.wait_until_answerable()
    page.evaluate("scrollTo(0, 0)")
    person.wait_until("window.untold.length")
    page.evaluate("window.late = window.untold.splice(0)")
    page.click("button.choice.left")
    person.wait_for_pair(first)
    page.evaluate("window.late.forEach((each) => each())")
    assert person.data("seen") == ""
    person.wait_until("window.untold.length")
    page.evaluate(TELL)
    assert person.data("seen") == "some"


@pytest.mark.long
@pytest.mark.parametrize(("width", "names"), [(390, ("Upper", "Lower")), (1280, ("Left", "Right"))])
def test_messages_name_the_places_that_the_screen_has(
    site: Site, people: People, width: int, names: tuple[str, str]
) -> None:
    campaign = site.crowd(ties=True)
    person = people(width, 800)
    page: Page = person.page
    person.enter(site.link(campaign))
    shown = person.wait_for_pair()
    assert page.locator(".pane h2").all_inner_texts() == list(names)
    for at, outcome in enumerate(("left", "right", "left-bad")):
        if not person.sees_both():
            page.dispatch_event("#look-there", "click")
        person.wait_until_answerable()
        page.click(f'button[value="{outcome}"]')
        person.said(f"Chosen: {names[at % 2]}")
        shown = person.wait_for_pair(shown)
    texts = page.evaluate("document.body.innerText")
    assert [word for word in ("Left", "Right", "Upper", "Lower") if word not in names and word in texts] == []


@pytest.mark.long
def test_keys_can_be_changed_and_switched_off(site: Site, people: People) -> None:
    campaign = site.crowd()
    person = people()
    page = person.page
    person.enter(site.link(campaign))
    first = person.wait_for_pair()
    page.click('[popovertarget="options"]')
    page.click("#key-left-bad")
    page.keyboard.press("x")
    assert page.inner_text("#key-left-bad") == "X"
    assert page.inner_text("#key-cannot-judge") == "Q"
    page.keyboard.press("Escape")
    person.press("x", first)
    second = person.wait_for_pair(first)
    person.wait_until_saved()
    assert [row.outcome for row in site.answers(campaign)] == ["left-bad"]
    page.click('[popovertarget="options"]')
    page.uncheck("#option-keys")
    page.click("#options .top button")
    for key in ("ArrowLeft", "x", "q", "1"):
        page.keyboard.press(key)
    page.reload()
    person.wait_for_pair()
    page.keyboard.press("ArrowLeft")
    assert person.data("shown") == second
    assert len(site.answers(campaign)) == 1


# ---- the end, and what comes in between


@pytest.mark.long
def test_failing_test_pairs_shows_a_neutral_page_and_pays(site: Site, people: People) -> None:
    campaign = site.crowd(targets=3)
    person = people()
    person.enter(site.link(campaign))
    assert person.judge_on(worse, by_key) == 6
    assert person.state == "excluded"
    text = person.page.inner_text("main").lower()
    assert "2.00 usd" in text
    assert not any(word in text for word in ("fail", "wrong", "test", "exclu", "quality", "bad", "attention"))
    assert rewards(site, campaign) == [200]
    assert [row.state for row in site.rows(schema.assessor, campaign)] == ["excluded"]
    assert person.page.get_attribute("#completion", "href") == "https://panel.example/done"
    person.page.reload()
    assert person.state == "excluded"


def test_stopping_early_is_paid(site: Site, people: People) -> None:
    campaign = site.crowd(feedback=False)
    person = people()
    person.enter(site.link(campaign))
    first = person.wait_for_pair()
    person.press(f"Arrow{person.better_side().title()}", first)  # it may be a test pair
    person.wait_for_pair(first)
    person.page.click('[popovertarget="stop"]')
    person.page.click("#stop-form button")
    person.wait_for_state("complete")
    assert rewards(site, campaign) == [16]  # 200 / 13, rounded up for the worker
    assert "0.16 USD" in person.page.inner_text("main")


def run_out(site: Site, question: str) -> None:
    """Let a lease expire."""
    columns = schema.question.c
    site.store.write(
        lambda connection, now: connection.execute(
            update(schema.question).where(columns.id == question).values(expires=now - 1)
        )
    )


def taken_by_another(site: Site, campaign: Campaign, question: str) -> None:
    """Let the lease expire, and another person judge the pair."""
    run_out(site, question)
    campaign.sweep()
    campaign.enrol("another", "dedicated")
    other = campaign.next_question("another")
    assert other is not None
    campaign.answer(other.id, "another", Answer(Outcome.LEFT))


@pytest.mark.parametrize("javascript", [True, False])
def test_judging_continues_after_a_lost_lease(site: Site, people: People, javascript: bool) -> None:
    campaign = site.campaign(topics=1, items=2, known=0, cap=1, feedback=False, strategy="allpairs")
    person = people(java_script_enabled=javascript)
    person.enter(site.link(campaign, "slow"))
    question = person.page.get_attribute('#answer input[name="question"]', "value")
    assert question is not None
    taken_by_another(site, campaign, question)
    if javascript:
        person.wait_for_pair()
        person.page.keyboard.press("ArrowRight")
        person.wait_for_state("no-work")
    else:
        person.page.click('button.choice[value="right"]')
        person.wait_for_state("lease-lost")
        assert "still get credit" in person.page.inner_text("main")
        person.page.click("a.button")
        person.wait_for_state("no-work")
    assert [row.outcome for row in site.answers(campaign)] == ["left"]


def test_the_page_says_that_a_lease_can_not_be_extended_any_further(site: Site, people: People) -> None:
    campaign = site.crowd(lease_seconds=100)
    person = people()
    page = person.page
    page.clock.install(time=0)
    page.clock.pause_at(1000)  # time stands still but for the steps below
    person.enter(site.link(campaign))
    page.clock.run_for(1000)
    person.wait_for_pair()

    def asked_long_ago(
        connection: Connection, now: float
    ) -> None:  # all but the last of its extensions are used up
        columns = schema.question.c
        times = {"asked": now - 1000.0, "expires": now + 90.0}
        connection.execute(update(schema.question).where(columns.campaign == campaign.id).values(times))

    site.store.write(asked_long_ago)
    with page.expect_response("**/extend") as extended:
        page.clock.run_for(5000)
    assert extended.value.json()["last"] is True
    for _ in range(3):  # the page may read the reply only after the first step
        if not page.is_visible("#warning"):
            page.clock.run_for(5000)
    page.wait_for_selector("#warning", state="visible")
    assert "reserved for you for as long as possible" in page.inner_text("#warning-text")
    assert page.is_hidden("#warning-act")  # there is nothing to extend


def test_an_expiring_lease_is_renewed_while_the_page_is_open(site: Site, people: People) -> None:
    campaign = site.crowd(lease_seconds=100)  # less than two minutes: it is running out from the start
    person = people()
    page = person.page
    page.clock.install(time=0)
    page.clock.pause_at(1000)  # time stands still but for the steps below
    held: list[Route] = []
    slow = False

    def reply(route: Route) -> None:
        held.append(route) if slow else route.continue_()

    page.route("**/extend", reply)
    person.enter(site.link(campaign))
    page.clock.run_for(1000)
    question = person.wait_for_pair().split("/")[0]

    def expires() -> float:
        return float({row.id: row.expires for row in site.rows(schema.question, campaign)}[question])

    before = expires()
    replies: list[int] = []
    page.on("response", lambda reply: replies.append(reply.status) if "/extend" in reply.url else None)
    for _ in range(9):  # whoever came within the last minute is looking
        known = len(replies)
        page.clock.run_for(5100)
        for _ in range(20):  # the browser's clock may leave a step out
            if len(replies) > known:
                break
            page.wait_for_timeout(50)
    assert len(replies) >= 6
    assert set(replies) == {200}
    assert expires() > before
    slow = True
    for _ in range(2):
        page.clock.run_for(5100)
    for _ in range(PATIENCE // 10):
        if held:
            break
        page.wait_for_timeout(10)
    for _ in range(3):  # soon a minute is over, and nobody has moved since the page scrolled to its start
        if not page.is_visible("#warning-act"):
            page.clock.run_for(5000)
    page.wait_for_selector("#warning-act", state="visible")
    assert "still there" in page.inner_text("#warning-text")
    held[0].continue_()
    page.wait_for_selector("#warning", state="hidden")
    page.clock.run_for(5000)  # a late reply has renewed it, but by less than two minutes
    page.wait_for_selector("#warning-act", state="visible")
    before, slow = expires(), False
    with page.expect_response("**/extend") as replied:
        page.click("#warning-act")
    assert replied.value.status == 200
    assert expires() > before
    page.wait_for_selector("#warning", state="hidden")


def test_pages_of_paused_and_ended_campaigns_and_of_no_work(site: Site, people: People) -> None:
    campaign = site.crowd()
    person = people()
    person.enter(site.link(campaign))
    person.wait_for_pair()
    campaign.set_state("paused")
    person.page.keyboard.press("ArrowLeft")
    person.wait_for_state("paused")
    assert len(site.answers(campaign)) == 1  # what was under way is kept
    assert person.page.get_attribute("a.button", "href") == f"/j/{campaign.id}/"
    campaign.set_state("open")
    person.enter(f"{site.address}/j/{campaign.id}/")
    person.wait_for_state("judging")
    campaign.set_state("closed")
    person.page.reload()
    person.wait_for_state("ended")
    poor = site.crowd(budget=1)
    other = people()
    other.enter(site.link(poor))
    other.wait_for_state("no-work")


def test_a_waiting_page_continues_by_itself(site: Site, people: People) -> None:
    campaign = site.crowd()
    campaign.set_state("paused")
    person = people()
    person.page.clock.install()
    person.enter(site.link(campaign))
    person.wait_for_state("paused")
    campaign.set_state("open")
    person.page.clock.run_for(60_000)
    person.wait_for_state("judging")


def test_an_error_has_a_reference(site: Site, people: People) -> None:
    campaign = site.crowd()
    person = people()
    person.enter(f"{site.address}/j/{campaign.id}?key=forged")
    person.wait_for_state("error")
    assert person.page.locator("code").count() == 1
    person.enter(f"{site.address}/j/nowhere/")
    person.wait_for_state("error")


def test_a_preview_shows_the_flow_and_stores_nothing(site: Site, people: People) -> None:
    campaign = site.crowd(steps=("consent",))
    person = people()
    person.enter(site.link(campaign, kind="manager"))
    assert person.page.is_visible(".preview")
    person.page.click('button[name="agree"]')
    person.wait_for_state("judging")
    person.press("ArrowLeft", person.wait_for_pair())
    assert person.page.is_visible(".preview")
    assert site.answers(campaign) == []
    assert site.rows(schema.assessor, campaign) == []


def test_the_page_is_available_in_german(site: Site, people: People) -> None:
    campaign = site.crowd()
    person = people(locale="de-DE")
    person.enter(site.link(campaign))
    assert person.page.get_attribute("html", "lang") == "de"
    assert person.page.inner_text('button.choice[value="left"] .beside') == "Links ist besser"
    person.press("ArrowLeft", person.wait_for_pair())
    person.said("Gewählt: Links")
