"""Setup in a browser: from files to a live leaderboard, and untrusted content of files."""

import csv
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Page

from duelpool.campaign import Campaign, Settings
from duelpool.campaign.settings import CHANGEABLE
from duelpool.campaign.settings.changes import changed
from duelpool.campaign.settings.welcome import STEPS
from duelpool.campaign.views.watch import Watch
from duelpool.errors import DuelpoolError
from duelpool.records import Answer, Outcome
from duelpool.setup import Comparison
from duelpool.store import holdings
from duelpool.web.setup.keys import setup_address, setup_key
from duelpool.web.setup.options import STEPS as STEPS_OF_SETUP
from duelpool.web.setup.options import Options
from duelpool.web.setup.simulations import Simulations
from support.accessibility import look_with_axe
from support.browsing import PATIENCE, People, Person, Site, by_key, wait_in
from support.managed import key_for
from support.xss import PAYLOADS

RUNS = {
    name: "".join(
        f"{topic} Q0 {topic}-{item} {at} {9 - at} {name}\n"
        for topic in ("t1", "t2")
        for at, item in enumerate(order)
    )
    for name, order in (("forwards", "abcd"), ("backwards", "dcba"))
}
TOPICS = "t1\tWhat is the first?\nt2\tWhat is the second?\n"
TEXTS = "".join(f"{topic}-{item}\tText {item} of {topic}.\n" for topic in ("t1", "t2") for item in "abcd")


def file(name: str, text: str) -> FilePayload:
    return {"name": name, "mimeType": "text/plain", "buffer": text.encode()}


def enter(site: Site, page: Page) -> None:
    page.goto(setup_address(site.address, setup_key(site.app.state.links, time.time())))
    assert "key=" not in page.url


def letters(worker: Person) -> tuple[str, ...]:
    """Return which of a topic's texts are left and right."""
    return tuple(worker.page.inner_text(f"#{side} .body").split()[1] for side in ("left", "right"))


def newest(site: Site) -> Campaign:
    return Campaign.open(site.store, site.store.read(holdings.campaigns)[-1].id)


def _send_all(page: Page) -> None:
    """Upload all files."""
    # several files at once: what each is, is recognised by its name or its lines, and can be corrected
    short = TEXTS.replace("t2-d\tText d of t2.\n", "")
    page.set_input_files(
        "#send-any",
        [
            *(file(f"{name}.txt", text) for name, text in RUNS.items()),
            file("asked.tsv", TOPICS),
            file("read.tsv", short),
        ],
    )
    page.click("form.drop button")
    page.wait_for_selector("#files")
    assert page.locator("#files tbody tr").count() == 3  # two short tables were taken for questions
    page.set_input_files("#send-any", [file("topics.tsv", TOPICS), file("passages.tsv", short)])
    page.click("form.drop button")
    page.wait_for_selector("#pools")
    contents = page.inner_text("#contents")
    assert "2 files, 2 topics, 4 deep" in contents
    assert "1 file, 7 texts" in contents
    assert page.inner_text("#without-text") == "1"
    assert "Items without text: 1 t2-d of t2" in _plain(page.inner_text("#checks"))
    # the text that was missing comes later; then everything is there
    page.set_input_files("#send-texts", [file("texts.tsv", TEXTS)])
    page.eval_on_selector("form.files", "form => form.requestSubmit()")
    wait_in(page, "document.getElementById('without-text').textContent === '0'")
    look_with_axe(page, "files")


def _say_who_judges(page: Page) -> None:
    """Go from the files to the plan."""
    page.click("text=Next: who judges")
    page.wait_for_selector("#judges")
    look_with_axe(page, "judges")
    page.click("text=Consent and guide")
    page.fill("#consent", "**Agree**, please.")
    page.click("text=A language model judges, too")
    page.fill("#llm_model", "wise")
    page.click("text=Next: plan and cost")
    assert "needs both its address and its name" in page.inner_text("#alarm")
    assert page.input_value("#llm_model") == "wise"
    page.fill("#llm_url", "https://api.example.org/v1")
    page.click("text=Next: plan and cost")
    # simulated beside, one strategy after another, behind everything else that the machine does
    page.wait_for_selector("#forecasts tbody tr", timeout=3 * PATIENCE)
    look_with_axe(page, "plan")


def _review(page: Page) -> None:
    """Go from the plan to the campaign."""
    page.wait_for_selector("[value=allpairs][name=choose]", timeout=3 * PATIENCE)
    rows = page.locator("#forecasts tbody tr").count()
    page.click("[value=allpairs][name=choose]")  # the dry run goes on: nothing is simulated again
    wait_in(page, "document.getElementById('estimate').textContent.includes('allpairs')")
    assert page.locator("#forecasts tbody tr").count() >= rows
    page.click("text=Next: review")
    page.wait_for_selector("#reviewed")
    look_with_axe(page, "review")
    assert "--url https://api.example.org/v1 --model wise" in page.inner_text("#reviewed")
    assert page.input_value("#name")  # as the command line would name it
    page.fill("#name", "")
    page.eval_on_selector("#name", "field => { field.required = false; }")
    page.click("#make")
    assert "no name yet" in page.inner_text("#alarm")
    page.fill("#name", "From files")
    page.eval_on_selector("[name=seen]", "field => { field.value = 'another review'; }")
    page.click("#make")
    assert "have changed since this review" in page.inner_text("#alarm")
    page.fill("#name", "From files")
    page.click("#make")
    page.wait_for_selector(".notice[role=status]")
    assert "Created the campaign 'From files': 2 topics, 8 candidates, 8 texts" in page.inner_text(".notice")
    assert "duelpool judge llm" in page.inner_text(".notice")


@pytest.mark.long
def test_from_files_to_a_live_leaderboard(site: Site, people: People) -> None:
    manager = people()
    page = manager.page
    enter(site, page)
    before = len(site.store.read(holdings.campaigns))
    # a file that can't be read is told with its line, and nothing stays
    page.set_input_files("#send-runs", [file("broken.run", "t1 Q0 t1-a 1 9 x\nt1 Q0 t1-b\n")])
    page.eval_on_selector("form.files", "form => form.requestSubmit()")
    assert "runs/broken.run:2" in page.inner_text("#alarm")
    _send_all(page)
    _say_who_judges(page)
    assert len(site.store.read(holdings.campaigns)) == before
    _review(page)
    assert len(site.store.read(holdings.campaigns)) == before + 1
    campaign = newest(site)
    page.goto(f"{site.address}/manage/{campaign.id}/settings")
    link = page.inner_text(".command code")
    # a preview as a worker keeps nothing
    page.click("#preview")
    page.wait_for_selector("body[data-state=consent]")
    assert "Agree, please." in page.inner_text("main")
    page.goto(f"{site.address}/manage/{campaign.id}/leaderboard")
    assert page.inner_text("#board h2") == "No judgments yet."
    wait_in(page, "document.documentElement.dataset.live === 'events'")
    campaign.change(campaign.settings.from_json({**campaign.settings.as_json(), "steps": []}))
    site.app.state.campaigns._served.clear()
    worker = people()
    worker.enter(link)
    first = worker.wait_for_pair()
    best = min(set("abcd").difference(letters(worker)))  # it wins from now on; now another one does
    worker.press("ArrowLeft", first)
    page.wait_for_selector("#leaderboard tbody tr")
    before_move = page.inner_text("#leaderboard tbody")
    assert worker.judge_on(lambda person: "right" if letters(person)[1] == best else "left", by_key) == 5
    wait_in(page, "text => document.querySelector('#leaderboard tbody').innerText !== text", before_move)


DROP = """([name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name));
  const about = { dataTransfer: data, bubbles: true, cancelable: true };
  document.querySelector("main").dispatchEvent(new DragEvent("drop", about));
}"""


def test_files_are_dropped_on_the_page_and_their_kind_is_corrected(site: Site, people: People) -> None:
    page = people().page
    enter(site, page)
    page.evaluate(DROP, ["forwards.txt", RUNS["forwards"]])
    page.wait_for_selector("#pools")
    page.evaluate(DROP, ["short.tsv", TEXTS])
    page.wait_for_selector("#files tbody tr:nth-child(2)")
    kinds = page.locator("#files select")
    assert kinds.evaluate_all("all => all.map(each => each.value)") == ["runs", "topics"]
    kinds.nth(1).select_option("texts")
    wait_in(page, "document.getElementById('without-text').textContent === '0'")
    kinds.nth(0).select_option("qrels")  # which it can't be: it stays what it was
    assert "runs/forwards.txt" in page.inner_text("#alarm")
    assert kinds.evaluate_all("all => all.map(each => each.value)") == ["runs", "texts"]


ANSWERS = "prompt,model,output\n" + "".join(
    f"Question {at}?,secret-{name},{name} says {at}\n"
    for at in range(3)
    for name in "abc"
    if (at, name) != (2, "c")
)


@pytest.mark.long
def test_from_answers_to_a_campaign_of_systems(site: Site, people: People) -> None:
    page = people().page
    enter(site, page)
    # fields that aren't found are told with the names that are there; mapped, the answers are read
    page.set_input_files("#send-answers", [file("answers.csv", ANSWERS.replace("output", "said"))])
    page.eval_on_selector("form.files", "form => form.requestSubmit()")
    page.wait_for_selector("#trouble")
    assert "answers/answers.csv:2" in page.inner_text("#trouble")
    assert "Found: prompt, model, said" in page.inner_text("#trouble")
    page.fill("#fields", "answer=said")
    page.click("#again")
    page.wait_for_selector("#pairs")
    assert (page.inner_text("#pairs"), page.inner_text("#runs")) == ("7", "3")
    assert "1 systems miss answers (first: secret-c, 1)" in page.inner_text("#pools")
    assert page.query_selector("#forecasts") is None
    look_with_axe(page, "answers")
    page.click("text=Next: who judges")
    page.click("text=Next: plan and cost")
    page.wait_for_selector("#goal")
    look_with_axe(page, "plan of answers")
    assert page.locator("#strategy option").evaluate_all("all => all.map(each => each.value)") == [
        *("", "systems", "round-robin")
    ]
    assert "per_item" not in page.inner_text("#plan")
    assert "in the table" not in page.inner_text("#plan")
    page.select_option("#goal", "compare")
    page.fill("#compared", "secret-a,none")
    page.click("#again")
    wait_in(page, "text => document.body.innerText.includes(text)", "no system 'none'")
    assert page.input_value("#compared") == "secret-a,none"
    page.select_option("#goal", "")
    page.click("text=Next: review")
    page.wait_for_selector("#reviewed")
    page.fill("#name", "From answers")
    page.click("#make")
    page.wait_for_selector(".notice[role=status]")
    campaign = newest(site)
    campaign.change(campaign.settings.from_json({**campaign.settings.as_json(), "steps": []}))
    site.app.state.campaigns._served.clear()
    worker = people()
    page.goto(f"{site.address}/manage/{campaign.id}/settings")
    worker.enter(page.inner_text(".command code"))
    worker.press("ArrowLeft", worker.wait_for_pair())  # the first judgment
    wait_in(worker.page, "document.body.dataset.state === 'judging'")
    assert newest(site).settings.goal == "systems"


def test_a_setting_changes_after_a_preview_of_its_effect(site: Site, people: People) -> None:
    campaign = site.campaign(topics=1, items=3)
    page = people().page
    page.goto(f"{site.address}/manage/{campaign.id}?key={key_for(site.app, campaign.id)}")
    page.goto(f"{site.address}/manage/{campaign.id}/settings")
    assert not page.locator("#change :is(input, select, textarea):visible").count()  # the groups are folded
    for name in ("reward", "feedback"):
        page.click(f"#change details:has([name={name}]) > summary")
    page.fill("#reward", "-345")
    page.click("#change details:has(#reward) > summary")
    page.click("#look")
    page.wait_for_selector("#reward:visible")  # what is refused is shown again
    page.fill("#reward", "345")
    page.uncheck("[name=feedback]")
    page.click("#look")
    page.wait_for_selector("#sure")
    told = page.inner_text("#told")
    assert "earlier payments stay as they are" in told
    assert "consent" not in told  # the page's own words are left to the page
    look_with_axe(page, "change")
    page.click("#sure")
    page.wait_for_selector("[role=status].notice")
    assert page.inner_text("[role=status].notice") == "Changed: feedback, reward."
    changed = Campaign.open(site.store, campaign.id).settings
    assert (changed.reward, changed.feedback, changed.consent) == (345, False, "")


@pytest.mark.long
def test_the_panel_and_what_a_flip_counts_as_are_set_on_the_page(site: Site, people: People) -> None:
    campaign = site.crowd(completion_url="")
    page = people().page
    page.goto(f"{site.address}/manage/{campaign.id}?key={key_for(site.app, campaign.id)}")
    page.goto(f"{site.address}/manage/{campaign.id}/settings")
    for summary in page.locator("#change details summary").all():
        summary.click()
    for field in page.locator("#change [aria-describedby]").all():  # help that a field points to is there
        assert page.text_content(f"#{field.get_attribute('aria-describedby')}")  # also in a closed section
    assert page.locator("#panel option").all_inner_texts() == [
        *("none", "prolific", "connect", "generic", "mturk, closed: for old data")
    ]
    page.select_option("#panel", "prolific")
    page.fill("#panel_study", "66f0c2a1b7e4d50012ab34cd")
    for name in ("completion_code", "failed_code"):
        page.fill(f"#{name}", "C1DONE")
    page.select_option("#flips", "abstain")
    page.click("#look")
    page.wait_for_selector("#alarm")  # a panel must tell its codes apart
    assert "same completion code" in page.inner_text("#alarm")
    assert page.input_value("#flips") == "abstain"  # what was typed is still there
    page.fill("#failed_code", "")
    page.fill("#no_work_code", "C4NONE")
    page.click("#look")
    page.wait_for_selector("#sure")
    told = page.inner_text("#told")
    for name in ("panel", "panel_study", "no_work_code", "flips"):
        assert CHANGEABLE[name] in told, name
    page.click("#sure")
    page.wait_for_selector("[role=status].notice")
    assert "duelpool panel show campaigns.db" in page.inner_text("main")
    settings = Campaign.open(site.store, campaign.id).settings
    assert (settings.panel, settings.no_work_code, settings.flips) == ("prolific", "C4NONE", "abstain")


def _written(part: list[str]) -> dict[str, FilePayload]:
    """Return files whose every field is a payload; runs take no white space."""
    solid = ["".join(each.split()) or "x" for each in part]
    items = [f"{at}{each}" for at, each in enumerate(solid[:4])]
    topic = f"={solid[4]}"
    run = "".join(f"{topic} Q0 {item} {at} {9 - at} {solid[5]}\n" for at, item in enumerate(items))
    subject = {"id": topic, "text": part[6], "description": part[7], "tags": part[8:12]}
    texts = [
        {"id": item, "text": each, "title": part[13]} for item, each in zip(items, part[14:18], strict=True)
    ]
    name = "+" + (solid[18].replace("/", "").replace("\\", "")[:60] or "x")
    return {
        "runs": file(f"{name}.run", run),
        "qrels": file("qrels.txt", "".join(f"{topic} 0 {item} 1\n" for item in items)),
        "tests": file("tests.txt", f"{topic} {items[0]} {items[3]}\n"),
        "topics": file("topics.jsonl", json.dumps(subject) + "\n"),
        "texts": file("texts.jsonl", "".join(json.dumps(each) + "\n" for each in texts)),
        "groups": file(f"{solid[20][:40].replace('/', '')}.txt", f"{name} {solid[19]}\n"),
    }


def _send_groups(page: Page, files: dict[str, FilePayload], other: str) -> None:
    """Upload groups of an unknown run, whose error shows the name literally, and then the right ones."""
    name = files["runs"]["name"].removesuffix(".run")
    for sent in (file(files["groups"]["name"], f"{other} x\n"), files["groups"]):
        page.set_input_files("#send-groups", [sent])
        page.eval_on_selector("form.files", "form => form.requestSubmit()")
        page.wait_for_selector("#files")
        assert files["groups"]["name"] in page.locator("#files tbody th").all_inner_texts()
        if sent is not files["groups"]:
            assert f"The groups don't name the run '{name}'" in page.inner_text("#trouble")
    page.wait_for_selector("#pools")


def _nothing_simulated(self: Simulations, place: Path, asked: Comparison) -> dict[str, object]:
    return {"state": "failed", "total": 1, "problem": "Not in this test."}


@pytest.mark.long
def test_untrusted_files_and_settings_are_shown_literally(
    site: Site, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Payloads in file names, runs, topics, texts, tags, groups, notes, consent, guide, settings: none runs."""
    monkeypatch.setattr(Simulations, "state_of", _nothing_simulated)
    chosen = [each for each in PAYLOADS if each.strip() and each.isprintable()]
    page = people().page
    enter(site, page)
    for start in range(0, len(chosen) - 60, 60):
        part = chosen[start : start + 60]
        files = _written(part)
        page.goto(f"{site.address}/setup")
        for kind, sent in files.items():
            if kind != "groups":
                page.set_input_files(f"#send-{kind}", [sent])
        page.eval_on_selector("form.files", "form => form.requestSubmit()")
        page.wait_for_selector("#pools")
        assert files["runs"]["name"] in page.locator("#files tbody th").all_inner_texts()
        _send_groups(page, files, part[19].split()[0])
        page.click("text=Next: who judges")
        page.click("text=Consent and guide")
        page.fill("#consent", "\n".join(part))
        page.fill("#guidelines", "\n\n".join(part))
        page.click("text=Next: plan and cost")
        page.click("text=Next: review")
        page.fill("#name", f"{part[21][:120]} {start}")
        page.click("#make")
        page.wait_for_selector(".notice[role=status]")
        campaign = newest(site)
        campaign.enrol("anna", "dedicated")
        for note in part[22:25]:
            question = campaign.next_question("anna")
            assert question is not None
            campaign.answer(question.id, "anna", Answer(Outcome.LEFT, seconds=2.0, note=f"={note}"))
        page.goto(f"{site.address}/manage/{campaign.id}/log")
        assert _plain(f"={part[22]}") in _plain(page.text_content("main"))
        first = Watch(campaign).look().topics[0].status.topic
        line = campaign.live.state(first).lines[0].judgment
        assert line is not None
        for where in ("leaderboard", "topics", "pairs"):
            page.goto(f"{site.address}/manage/{campaign.id}/{where}")
        page.goto(f"{site.address}/manage/{campaign.id}/settings")
        page.click("#preview")
        page.wait_for_selector("body[data-state=consent]")
        page.click("button.strong")
        page.wait_for_selector("body[data-state=guide]")
    got = page.request.get(f"{site.address}/api/v1/campaigns/{campaign.id}/export/csv")
    rows = list(csv.DictReader(io.StringIO(got.text())))
    assert rows
    assert all(row["topic"].startswith("'=") for row in rows)
    assert all(row["note"].startswith("'=") for row in rows)


ALL = " ".join(each for each in PAYLOADS if each.isprintable())
RECORDS = {
    "check": [{"text": ALL, "choices": [ALL, "no"], "answer": 0}],
    "practice": [{"topic": ALL, "left": ALL, "right": ALL, "better": "left", "why": ALL}],
}
SEND = """([action, values]) => {
  const form = document.createElement("form");
  Object.assign(form, { method: "post", action });
  for (const [name, value] of Object.entries(values)) {
    const field = document.createElement("textarea");
    Object.assign(field, { name, value });
    form.append(field);
  }
  document.body.append(form);
  form.submit();
}"""


def send(page: Page, address: str, values: dict[str, Any]) -> None:
    """Send a form of our own, and wait for the page that answers."""
    with page.expect_navigation():
        page.evaluate(SEND, [address, values])


def _takes(name: str) -> bool:
    """Return whether a setting accepts a text with every payload in it."""
    try:
        changed(Settings(), {name: RECORDS.get(name, ALL)})
    except DuelpoolError:
        return False
    return True


def _plain(text: str | None) -> str:
    return " ".join((text or "").split())


@pytest.mark.long
def test_every_setting_is_refused_or_shown_literally(site: Site, people: People) -> None:
    """Every payload in every setting of the form, from the declaration of the settings."""
    campaign = site.crowd(targets=2, tests=2, steps=STEPS)
    page = people().page
    page.goto(f"{site.address}/manage/{campaign.id}?key={key_for(site.app, campaign.id)}")
    address = f"{site.address}/manage/{campaign.id}/settings"
    page.goto(address)
    form_key = page.get_attribute("#change [name=form_key]", "value")
    taken = [name for name in CHANGEABLE if _takes(name)]
    assert {"consent", "guidelines", "check", "practice", "currency", "completion_code"} <= set(taken)
    ticked = {name for name in CHANGEABLE if isinstance(getattr(Settings(), name), bool)} | {"steps"}
    for name in CHANGEABLE:
        ticks = name in {"steps", "required"}
        assert page.locator(f"#change [name^={name}-]" if ticks else f"#change [name={name}]").count(), name
        if name not in taken and name not in ticked:
            values = {"form_key": form_key, name: f"{ALL[:90]} {ALL}"}
            send(page, address, values)
            page.wait_for_selector("#alarm")
            assert page.inner_text("#alarm strong"), name
    # codes that a panel would have to take
    values = {"form_key": form_key, "panel": "generic", "completion_code": ALL}
    send(page, address, values)
    page.wait_for_selector("#alarm")
    assert _plain(page.inner_text("#alarm")).startswith(f"'completion_code' can't be '{_plain(ALL)[:60]}")
    boxes = dict.fromkeys(ticked, ALL) | {f"steps-{step}": "yes" for step in STEPS}
    texts = {name: json.dumps(RECORDS[name]) if name in RECORDS else ALL for name in taken}
    assert Campaign.open(site.store, campaign.id).settings == campaign.settings
    send(page, address, {"form_key": form_key, "boxes": "yes", **boxes, **texts})
    page.wait_for_selector("#sure")
    for name in taken:
        then = page.locator(f"#changed-{name} ~ dl .written").nth(1)
        shown = json.dumps(RECORDS[name], ensure_ascii=False) if name in RECORDS else ALL
        assert _plain(then.text_content()) == _plain(shown), name
    page.click("#sure")
    page.wait_for_selector("[role=status].notice")
    for name in taken:
        value = page.input_value(f"#{name}")
        assert (json.loads(value) if name in RECORDS else value.strip()) == RECORDS.get(name, ALL.strip()), (
            name
        )
    page.goto(f"{site.address}/manage/{campaign.id}/money")
    assert _plain(ALL)[:300] in _plain(page.text_content("#sums"))
    _read_by_a_worker(people(), site.link(campaign))


@pytest.mark.long
def test_every_option_of_a_draft_is_refused_or_shown_literally(
    site: Site, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every payload in every option of the form, from the model of options."""
    monkeypatch.setattr(Simulations, "state_of", _nothing_simulated)
    page = people().page
    enter(site, page)
    page.set_input_files("#send-runs", [file("one.run", RUNS["forwards"])])
    page.eval_on_selector("form.files", "form => form.requestSubmit()")
    page.wait_for_selector("#pools")
    base, shown = page.url.partition("?")[0], set()
    form_key = page.get_attribute("form.decide [name=form_key]", "value")
    assert sorted(name for names in STEPS_OF_SETUP.values() for name in names) == sorted(Options.model_fields)
    asked = [(step, name) for step, names in STEPS_OF_SETUP.items() for name in names]
    asked.sort(key=lambda each: each[1] == "learn_from")  # a pilot that is not there stays
    for step, name in asked:
        page.goto(f"{base}?step={step}")
        assert page.locator(f"form.decide [name={name}]").count() == 1, name
        if Options.model_fields[name].annotation is bool:
            continue  # a box is ticked or it isn't
        text = ALL if name in {"consent", "guidelines"} else ALL[:190]
        send(page, f"{base}/options", {"form_key": form_key, "step": step, name: text})
        if page.locator("#alarm, #trouble").count():
            assert page.locator("#alarm strong, #trouble strong").inner_text(), name
        else:
            assert _plain(page.input_value(f"#{name}")) == _plain(text), name
            shown.add(name)
    codes = {"panel_study", "completion_code", "no_work_code"}
    assert shown == {"name", "consent", "guidelines", "fields", *codes}


def _read_by_a_worker(worker: Person, link: str) -> None:
    """The worker's pages show the manager's texts literally, from the consent to the completion code."""
    worker.enter(link)
    worker.page.click('button[name="agree"]')
    worker.page.click('button[value="guide"]')
    worker.wait_for_state("check")
    assert _plain(ALL) in _plain(worker.page.text_content(".sheet form"))
    worker.page.check('input[type=radio][value="0"]')
    worker.page.click(".sheet form button")
    worker.wait_for_state("practice")
    assert _plain(ALL) in _plain(worker.page.text_content("h1"))
    worker.page.click('button[value="left"]')
    worker.page.wait_for_selector(".feedback")
    assert _plain(ALL) in _plain(worker.page.text_content(".feedback"))
    worker.page.click('button[name="go_on"]')
    worker.judge_on(Person.better_side, by_key)
    worker.wait_for_state("complete")
    assert _plain(worker.page.text_content("#code")) == _plain(ALL)


def test_paths_in_file_names_and_archives_are_refused(site: Site, people: People, tmp_path: Path) -> None:
    from setup.test_setup import zipped

    page = people().page
    enter(site, page)
    evil: FilePayload = {
        "name": "all.zip",
        "mimeType": "application/zip",
        "buffer": zipped(("runs/../../../evil.run", b"1 Q0 a 1 1 x\n")),
    }
    page.set_input_files("#send-archive", [evil])
    page.eval_on_selector("form.files", "form => form.requestSubmit()")
    assert "leads out of it" in page.inner_text("#alarm")
    assert not list(site.app.state.drafts.folder.rglob("*evil*"))
    # what a browser would never send: a path as the file's name
    told = page.evaluate(
        """async () => {
          const form = new FormData();
          form.append("runs", new File(["1 Q0 a 1 1 x\\n"], "a.run"), "../../evil.run");
          const answer = await fetch("/setup/new/files", { method: "POST", body: form });
          return answer.status;
        }"""
    )
    assert told in {200, 422}  # the browser itself may have cut the path off
    assert not list(site.app.state.drafts.folder.parent.glob("evil.run"))


@pytest.mark.slow
def test_every_setup_page_passes_axe(site: Site, people: People) -> None:
    page = people().page
    enter(site, page)
    look_with_axe(page, "start")
    page.set_input_files("#send-qrels", [file("q.txt", "x")])
    page.eval_on_selector("form.files", "form => form.requestSubmit()")
    page.wait_for_selector("#alarm")
    look_with_axe(page, "refused")
    page.set_input_files("#send-runs", [file("one.run", RUNS["forwards"])])
    page.eval_on_selector("form.files", "form => form.requestSubmit()")
    page.wait_for_selector("#pools")
    for step in STEPS_OF_SETUP:
        page.goto(f"{page.url.partition('?')[0]}?step={step}")
        if step == "plan":
            page.wait_for_selector("#forecasts tbody tr", timeout=3 * PATIENCE)
        look_with_axe(page, f"{step} of a draft of one run")
    campaign = site.campaign(topics=1, items=3)
    page.goto(f"{site.address}/manage/{campaign.id}?key={key_for(site.app, campaign.id)}")
    page.goto(f"{site.address}/manage/{campaign.id}/settings")
    look_with_axe(page, "settings")
