"""Looks at a page with axe, narrow and wide, and at its dark colours, and keeps which templates have been looked at.

The server of the tests writes into every page the names of the templates it was made of, so that a test can't think
it looks at one page and look at another. `LOOKED_AT_IN` says which test looks at which template: a page without a row
fails `test_barriers.py`, and a test that doesn't look at what its row says fails at its end.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Page

from duelpool.web import templating

_PACKAGE = find_spec("axe_playwright_python")
assert _PACKAGE is not None
assert _PACKAGE.origin is not None
AXE = (Path(_PACKAGE.origin).parent / "axe.min.js").read_text(encoding="utf-8")
WIDTHS = (320, 768, 1280)
# Between narrow and wide nothing appears that neither has, and what is dark when wide is dark when narrow; whether the
# page fits is asked at every width.
LOOKS: dict[int, tuple[Literal["light", "dark"], ...]] = {320: ("light",), 1280: ("light", "dark")}
RULES = {
    "type": "tag",
    "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}
COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
LOOK = """([part, runOnly]) => axe.run(part, { runOnly, resultTypes: ['violations'], iframes: false })
  .then(result => result.violations.map(each => each.id + ': '
    + each.nodes.map(node => node.html.slice(0, 120) + ' ' + node.failureSummary).join(' | ')))"""
NAMES = """() => {
  const comments = [], walk = document.createTreeWalker(document, NodeFilter.SHOW_COMMENT);
  while (walk.nextNode()) if (walk.currentNode.data.startsWith(' template: '))
    comments.push(walk.currentNode.data.slice(11).trim());
  return comments;
}"""

LOOKED_AT_IN = {
    "access/account.html": "test_the_account_pages_pass_axe",
    "access/first.html": "test_the_account_pages_pass_axe",
    "access/login.html": "test_the_account_pages_pass_axe",
    "access/refused.html": "test_the_pages_of_single_sign_on_pass_axe",
    "access/signed_out.html": "test_the_pages_of_single_sign_on_pass_axe",
    "check.html": "test_pages_before_judging_pass_axe",
    "complete.html": "test_the_last_page_passes_axe",
    "consent.html": "test_pages_before_judging_pass_axe",
    "ended.html": "test_each_state_passes_axe[ended]",
    "error.html": "test_each_state_passes_axe[error]",
    "excluded.html": "test_each_state_passes_axe[excluded]",
    "feedback.html": "test_the_last_page_passes_axe",
    "guide.html": "test_pages_before_judging_pass_axe",
    "judge.html": "test_judging_passes_axe",
    "judging.html": "test_judging_passes_axe",
    "lease_lost.html": "test_each_state_passes_axe[lease-lost]",
    "manage/agreement.html": "test_agreement_is_shown_in_every_table",
    "manage/assessor.html": "test_every_page_passes_axe",
    "manage/assessors.html": "test_every_page_passes_axe",
    "manage/change.html": "test_a_setting_changes_after_a_preview_of_its_effect",
    "manage/confirm.html": "test_every_page_passes_axe",
    "manage/counting.html": "test_the_first_pages_of_a_store_pass_axe",
    "manage/export.html": "test_every_page_passes_axe",
    "manage/invited.html": "test_every_page_passes_axe",
    "manage/leaderboard.html": "test_every_page_passes_axe",
    "manage/overview.html": "test_every_page_passes_axe",
    "manage/llm.html": "test_the_page_of_language_models",
    "manage/log.html": "test_every_page_passes_axe",
    "manage/money.html": "test_every_page_passes_axe",
    "manage/pair.html": "test_every_page_passes_axe",
    "manage/pairs.html": "test_every_page_passes_axe",
    "manage/settings.html": "test_every_page_passes_axe",
    "manage/systems.html": "test_the_leaderboard_of_systems_passes_axe",
    "manage/topic.html": "test_every_page_passes_axe",
    "manage/topics.html": "test_every_page_passes_axe",
    "no_work.html": "test_each_state_passes_axe[no-work]",
    "paused.html": "test_each_state_passes_axe[paused]",
    "practice.html": "test_practice_passes_axe",
    "preview.html": "test_each_state_passes_axe[consent]",
    "setup/draft.html": "test_from_files_to_a_live_leaderboard",
    "setup/front.html": "test_the_first_pages_of_a_store_pass_axe",
    "setup/start.html": "test_the_first_pages_of_a_store_pass_axe",
    "waiting.html": "test_each_state_passes_axe[waiting]",
}
"""Every page, and the test that looks at it; what all pages share (`base.html`, `_parts.html`) is on each of them."""

_looked_at: set[str] = set()


def name_templates() -> None:
    """Let every template write its name as a comment into what it makes, wherever it is used."""
    environment = templating._environment()
    plain = environment.get_template

    def named(*given: Any, **more: Any) -> Any:
        template = plain(*given, **more)
        if not hasattr(template, "names_itself"):
            template.names_itself = True  # type: ignore[attr-defined]
            make, name = template.root_render_func, template.name

            def made(*inner: Any, **further: Any) -> Iterator[str]:
                yield f"<!-- template: {name} -->"
                yield from make(*inner, **further)

            template.root_render_func = made
        return template

    if not hasattr(environment, "names_templates"):
        environment.names_templates = True  # type: ignore[attr-defined]
        environment.get_template = named  # type: ignore[method-assign]


def every_page() -> set[str]:
    """Return the templates that are pages, or parts that only some pages have."""
    names = {
        path.relative_to(templating.TEMPLATES).as_posix() for path in templating.TEMPLATES.rglob("*.html")
    }
    return {name for name in names if not name.rpartition("/")[2].startswith(("_", "base."))}


def look_with_axe(page: Page, where: str, part: str = "html") -> None:
    """Run axe, narrow and wide, and on the dark colours once, on the page or a part of it; it may find nothing.

    The page is loaded once: its width and its colours change under it. Between light and dark nothing but colours
    differs, so the other rules run once a width. At the end it is wide and light again.
    """
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE)
    if part == "html":
        _looked_at.update(page.evaluate(NAMES))
    violations: list[str] = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        for scheme in LOOKS.get(width, ()):
            page.emulate_media(color_scheme=scheme)
            wrong = page.evaluate(LOOK, [part, RULES if scheme == "light" else COLOURS])
            violations += [f"{where}, {width} px, {scheme}: {each}" for each in wrong]
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{where} is cut at {width}"
    page.emulate_media(color_scheme="light")
    assert not violations, "\n".join(violations)


def begin() -> None:
    """Forget what the test before has looked at."""
    _looked_at.clear()


def refuse_unseen(test: str) -> None:
    """Refuse that a test has not looked at a page of its row; it may be made of other pages now."""
    unseen = {name for name, where in LOOKED_AT_IN.items() if where == test} - _looked_at
    assert not unseen, f"{test} has not looked at {', '.join(sorted(unseen))}"
