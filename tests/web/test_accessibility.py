"""Every template has an accessibility test; the first pages of a store and the account pages pass axe."""

import ast
import threading
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from duelpool.web.access.sign_on import make_sign_on
from duelpool.web.manage import dashboard
from duelpool.web.setup.keys import setup_address, setup_key
from support.accessibility import LOOKED_AT_IN, every_page, look_with_axe
from support.browsing import People, open_site
from support.managed import judge, key_for, managed
from support.openid_provider import openid_provider, sign_on_by
from web.judging.test_accessibility import STATES

PASSWORD = "correct horse battery"


def _is_slow(test: ast.FunctionDef) -> bool:
    return any("slow" in ast.unparse(mark) for mark in test.decorator_list)


def test_every_page_has_an_accessibility_test() -> None:
    assert set(LOOKED_AT_IN) == every_page()
    texts = [path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].rglob("test_*.py")]
    tests = {
        node.name: node
        for text in texts
        if "look_with_axe(" in text
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
    }
    for page, where in LOOKED_AT_IN.items():
        name, _, state = where.rstrip("]").partition("[")
        assert name in tests, f"{name}, which should look at {page}, isn't there"
        assert not _is_slow(tests[name]), f"{name} is slow, so `make test` doesn't look at {page}"
        assert bool(state) == (name == "test_each_state_passes_axe"), where
        assert not state or state in STATES, where
        # the fixture `people` refuses a test that hasn't looked at its pages
        given = {each.arg for each in tests[name].args.args}
        assert given & {"people", "manager"}, f"{name} is without people"


@pytest.mark.long
def test_the_first_pages_of_a_store_pass_axe(
    browser: Browser, people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_site(tmp_path) as site:
        visitors = People(browser, site)
        page = visitors().page
        page.goto(f"{site.address}/")
        assert page.inner_text("h1") == "No campaign yet"
        assert page.locator(".empty .command code").count() == 2
        look_with_axe(page, "an empty store")
        page.goto(setup_address(site.address, setup_key(site.app.state.links, time.time())))
        look_with_axe(page, "nothing sent")
        (tmp_path / "x.run").write_text("1 Q0 a 1 2 x\n1 Q0 b 2 1 x\n")
        page.set_input_files("#send-runs", str(tmp_path / "x.run"))
        page.eval_on_selector("form.files", "form => form.requestSubmit()")
        page.click("#files button[aria-label^=Remove]")
        page.wait_for_selector("#files", state="detached")
        page.wait_for_selector("#send-any")
        look_with_axe(page, "an empty draft")
        page.goto(f"{page.url.partition('?')[0]}?step=review")
        assert page.locator("#make").is_disabled()
        look_with_axe(page, "a review of an empty draft")
        # a long log is read for the first time
        campaign = managed(site.store, "long")
        judge(campaign, 2)
        read = threading.Event()
        monkeypatch.setattr(dashboard, "LINES_AT_ONCE", 0)
        monkeypatch.setattr(dashboard.Dashboard, "count", lambda self: read.wait())
        page.goto(f"{site.address}/manage/{campaign.id}?key={key_for(site.app, campaign.id)}")
        page.wait_for_selector("body[data-state=counting]")
        assert "0 of 3 topics" in page.inner_text("#told")
        look_with_axe(page, "counting")
        read.set()
        visitors.close()


@pytest.mark.long
def test_the_pages_of_single_sign_on_pass_axe(browser: Browser, people: People, tmp_path: Path) -> None:
    """By a real browser, from the page to sign in to the provider and back, out, and in without a role."""
    with openid_provider() as provider, open_site(tmp_path) as site:
        provider.allow(site.address)
        provider.add("anna", "leads")
        provider.asks = True
        site.app.state.sign_on = make_sign_on(sign_on_by(provider.issuer), site.address)
        campaign = managed(site.store)
        visitors = People(browser, site)
        person = visitors()
        page = person.page
        page.goto(f"{site.address}/login?next=/manage/{campaign.id}")
        look_with_axe(page, "a page to sign in at a provider")
        page.click("text=Sign in with Example ID")
        page.click("text=Continue as anna")
        page.wait_for_url(f"{site.address}/manage/{campaign.id}/overview")
        page.goto(f"{site.address}/account")
        page.click("text=Sign out here")
        page.wait_for_selector("body[data-state=signed_out]")
        look_with_axe(page, "signed out")
        page.click("text=Sign out of Example ID, too")
        page.wait_for_selector("body[data-state=login]")
        provider.add("anna", "others")
        page.click("text=Sign in with Example ID")
        page.click("text=Continue as anna")
        page.wait_for_selector("body[data-state=refused]")
        look_with_axe(page, "not signed in")
        there = f"request to another host: {provider.issuer}/"
        person.complaints[:] = [each for each in person.complaints if not each.startswith(there)]
        visitors.close()


@pytest.mark.long
def test_the_account_pages_pass_axe(browser: Browser, people: People, tmp_path: Path) -> None:
    with open_site(tmp_path) as site:
        visitors = People(browser, site)
        page = visitors().page
        campaign = managed(site.store)
        page.goto(f"{site.address}/manage/{campaign.id}?key={key_for(site.app, campaign.id)}")
        page.click(".signed a")
        look_with_axe(page, "the first account")
        page.fill("#name", "anna")
        page.fill("#password", PASSWORD)
        page.click("main button")
        page.wait_for_selector("body[data-state=account]")
        look_with_axe(page, "an account")
        page.click("text=Sign out here")
        page.wait_for_selector("body[data-state=login]")
        page.fill("#name", "anna")
        page.fill("#password", "not the password")
        page.click("main button")
        page.wait_for_selector("[role=alert]")
        look_with_axe(page, "not signed in")
        visitors.close()
