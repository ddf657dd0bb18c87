"""Single sign-on in a browser, by `duelpool serve` and a provider that is certified (npm's oidc-provider)."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from support.browsing import PATIENCE
from support.openid_provider import CLIENT, SECRET
from support.serving import begin, free_port
from support.visitors import new_store

PACKAGE = "oidc-provider@9.13.3"
SCRIPT = Path(__file__).parents[2] / "support" / "certified_provider.mjs"


@contextmanager
def certified_provider(folder: Path, server: str) -> Iterator[str]:
    """Fetch the provider and run it; give its issuer."""
    shutil.copy(SCRIPT, folder / SCRIPT.name)
    fetch = ["npm", "install", "--no-audit", "--no-fund", "--no-save", "--prefix", str(folder), PACKAGE]
    fetched = subprocess.run(fetch, capture_output=True, text=True, check=False)
    if fetched.returncode:
        pytest.skip(f"npm can't fetch {PACKAGE} here")
    run = ["node", str(folder / SCRIPT.name), CLIENT, SECRET, server]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@pytest.mark.slow
@pytest.mark.peer("oidc-provider")
def test_a_browser_signs_in_and_out_by_a_certified_provider(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    root = f"http://127.0.0.1:{port}"
    new_store(tmp_path / "c.db").close()
    monkeypatch.setenv("DUELPOOL_SSO_SECRET", SECRET)
    monkeypatch.setenv("DUELPOOL_SSO_ROLE", "leads=manager judges=assessor")
    with certified_provider(tmp_path, root) as issuer:
        more = ("--sso-issuer", issuer, "--sso-client", CLIENT, "--sso-name", "Certified ID", "--sso-only")
        server = begin(str(tmp_path / "c.db"), tmp_path, port=port, more=more)
        context = browser.new_context()
        try:
            server.wait()
            context.set_default_timeout(PATIENCE)
            page = context.new_page()
            for name, state in (("anna", "account"), ("ben", "refused")):
                page.goto(f"{root}/login")
                page.click("text=Sign in with Certified ID")
                page.fill("input[name=login]", name)
                page.fill("input[name=password]", "any")
                page.click("button[type=submit]")
                page.click("button:has-text('Continue')")  # the consent
                page.wait_for_selector(f"body[data-state={state}]")
                if state == "account":
                    assert page.inner_text("h1") == name
                    page.click("text=Sign out here")
                    page.click("text=Sign out of Certified ID, too")
                    page.click("button[value=yes]")
                    page.wait_for_selector("body[data-state=login]")
            assert "you have no role here" in page.inner_text("[role=alert]")
        finally:
            context.close()
            server.stop()
        assert server.trouble() == []
