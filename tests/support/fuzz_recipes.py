"""Right requests for the fuzz: of every route who may send it, with which query, form or JSON.

What differs from store to store (ids, keys, cursors) is written as `{{name}}`; the world puts it in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PASSWORD = "a password for the tests"


@dataclass(frozen=True, slots=True)
class Recipe:
    """A right request of a route: who may send it, with which query, form or JSON."""

    who: tuple[str, ...] = ("manager", "link", "administrator", "token")
    query: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    form: Mapping[str, Sequence[Any]] | None = None
    json: Mapping[str, Sequence[Any]] | None = None
    files: tuple[str, ...] = ()  # kinds of files in a form
    raw: bool = False
    weight: float = 1.0


TOPICS_THERE, PEOPLE = ("one", "two", "three"), ("anna", "ben", "cleo", "{{person}}")
REASONS, ITEMS = ("a test", "r", "Grund: ü"), tuple("abcdefgh")
MEASURES = ("nDCG@5", "RR", "Compat(p=0.8)", "ppref", "AP", "PGC(p=0.8)")
CURSOR, LIMIT = ("", "{{cursor}}"), ("1", "7", "50", "500")
BOOLEAN, OUTCOMES = ("false", "true"), ("left", "right", "left", "right", "cannot-judge", "tie", "skip")
STATES = ("paused", "open", "open", "closed")
PATHS: dict[str, Sequence[str]] = {
    "campaign": ("{{own}}",),
    "question": ("{{question}}", "{{question}}", "{{answered}}"),
    "side": ("left", "right"),
    "webhook": ("{{webhook}}", "x"),
    "panel": ("prolific",),
    "draft": ("{{draft}}", "{{draft}}", "new"),
    "kind": ("runs", "qrels", "topics", "texts", "tests", "prefs", "groups", "archive"),
    "name:path": ("page.css", "page.js", "dashboard.js", "missing.css"),
    "step": ("exclude", "reinstate", "retract", "rewind", "state"),
    "form": ("csv", "jsonl", "pairs", "qrels", "log", "bundle"),
    "page": ("export", "export", "nothing"),
}
SETTINGS: dict[str, Sequence[Any]] = {
    "reward": (100, 300, 0),
    "consent": ("Yes.", ""),
    "feedback": (True, False),
    "context": (True, False),
    "budget": (None, 10_000, 1),
    "languages": (["en"], ["en", "de"]),
    "lease_seconds": (60, 600),
    "steps": ([], ["consent"], ["consent", "guide"]),
    "max_assignments": (1, 5),
    "currency": ("EUR", "USD"),
    "targets": (5, 10),
    "tests": (0, 2),
    "check": ([],),
}
OPTIONS: dict[str, Sequence[Any]] = {
    "name": ("a campaign",),
    "depth": (10, 3),
    "thin": (None, 2),
    "strategy": ("prefbest", "allpairs", "dts"),
    "judges": ("crowd", "dedicated"),
    "cap": (1, 3),
    "tests": ("", "auto", "none"),
    "reward": (0, 100),
    "budget": (None, 5000),
    "seed": (0, 7),
    "share": (None, 0.5),
    "max_cost": (None, 100),
    "learn_from": ("", "{{managed}}"),
}
VISITING, ACCOUNTS = (
    ("visitor", "open", "assessor", "grader", "preview"),
    ("manager", "administrator", "viewer"),
)
READING = ("manager", "link", "administrator", "token", "viewer")
BOARD = {"measure": MEASURES, "blind": BOOLEAN}
PAGED = {"cursor": CURSOR, "limit": LIMIT}
STEP_FORM = {
    "assessor": PEOPLE,
    "reason": REASONS,
    "topic": TOPICS_THERE,
    "phase": ("{{phase}}", "final-1"),
    "seqs": ("1", "1 2", "3", "{{seq}}"),
    "state": STATES,
    "sure": ("yes", ""),
}
QUESTION = {"question": ("{{question}}", "{{question}}", "{{question}}", "{{answered}}")}
RECIPES: dict[str, Recipe] = {
    "GET /": Recipe(("empty",), weight=0.3),
    "GET /static/{name:path}": Recipe(("nobody",)),
    "GET /healthz": Recipe(("nobody",)),
    "GET /readyz": Recipe(("nobody",)),
    "GET /metrics": Recipe(("here", "token metrics")),
    "POST /csp-report": Recipe(("nobody",), json={"csp-report": ({}, {"blocked-uri": "inline"})}, weight=0.3),
    # the judging page
    "GET /j/{campaign}/from/{panel}": Recipe(
        ("arriving",),
        {
            "key": ("{{key_open}}",),
            "PROLIFIC_PID": ("{{pid}}",),
            "STUDY_ID": ("{{study}}",),
            "SESSION_ID": ("{{pid}}",),
        },
    ),
    "POST /j/{campaign}/step": Recipe(
        VISITING,
        form={
            "step": ("consent", "guide", "check", "practice", "another"),
            "agree": ("yes", ""),
            "outcome": OUTCOMES,
        },
    ),
    "GET /j/{campaign}": Recipe(
        (*VISITING, "arriving"),
        {
            "key": ("{{key_open}}", "{{key_personal}}", "{{key_manager}}", "{{key_once}}"),
            "worker": ("w1", "", "w-{{pid}}"),
        },
    ),
    "GET /j/{campaign}/": Recipe(VISITING, {"lang": ("en", "de", "xx")}),
    "GET /j/{campaign}/work": Recipe(VISITING, weight=3),
    "GET /j/{campaign}/context/{question}": Recipe(VISITING),
    "GET /j/{campaign}/frame/{question}/{side}": Recipe(("visitor", "open")),
    "POST /j/{campaign}/extend": Recipe(VISITING, json=QUESTION),
    "POST /j/{campaign}/answer": Recipe(
        VISITING,
        json={
            **QUESTION,
            "attempt": ("{{#attempt}}",),
            "outcome": OUTCOMES,
            "seconds": (2.5, None, 0),
            "note": ("", "a note", None),
            "grade": (None, 0, 1, 2),
            "confidence": (None, 50),
            "context_uses": (0, 3),
            "highlighted": (True, False, None),
            "have": ([], ["{{question}}:1"]),
        },
        weight=5,
    ),
    "POST /j/{campaign}/undo": Recipe(
        VISITING, json={"question": ("{{answered}}", "{{answered}}", "{{question}}")}
    ),
    "POST /j/{campaign}/stop": Recipe(VISITING, json={}, weight=0.5),
    "POST /j/{campaign}/feedback": Recipe(
        VISITING, form={"confidence": ("1", "5", ""), "understanding": ("3", ""), "text": ("fine", "")}
    ),
    "GET /j/{campaign}/out": Recipe(VISITING),
    "POST /hooks/{panel}/{campaign}": Recipe(
        ("panel",),
        json={
            "resource_id": ("{{pid}}",),
            "event_type": ("submission.status.change",),
            "participant_id": ("{{pid}}",),
            "status": ("RETURNED", "ACTIVE", "APPROVED", "odd"),
        },
    ),
    # accounts
    "GET /manage/{campaign}/account": Recipe(("link",)),
    "POST /manage/{campaign}/account": Recipe(
        ("link",), form={"name": ("boss",), "password": (PASSWORD,)}, weight=0.5
    ),
    "GET /login": Recipe(
        ("nobody", *ACCOUNTS), {"next": ("/account", "/manage/{{managed}}", "//evil.example")}
    ),
    "POST /login": Recipe(
        ("nobody", *ACCOUNTS),
        form={
            "name": ("manager", "administrator", "nobody"),
            "password": (PASSWORD,),
            "next": ("/account", ""),
        },
    ),
    "GET /login/sso": Recipe(("nobody", *ACCOUNTS), {"next": ("/account", "//evil.example")}, weight=0.2),
    "GET /login/sso/callback": Recipe(
        ("nobody", *ACCOUNTS), {"code": ("a-code",), "state": ("a-state",), "error": ("",)}, weight=0.2
    ),
    "GET /account": Recipe(ACCOUNTS),
    "POST /account/judge/{campaign}": Recipe(ACCOUNTS, form={}),
    "POST /account/password": Recipe(
        ("viewer", "manager"),
        form={"present": (PASSWORD,), "new": ("another password here", "short")},
        weight=0.5,
    ),
    "POST /account/sessions": Recipe(("manager", "administrator"), form={"session": ("{{session}}", "none")}),
    "POST /logout": Recipe(ACCOUNTS, form={"everywhere": ("yes", "")}, weight=0.5),
    # the dashboard
    "GET /manage/{campaign}": Recipe(("link", "nobody"), {"key": ("{{key_manage}}",)}),
    "GET /manage/{campaign}/overview": Recipe(READING, weight=0.35),
    "GET /manage/{campaign}/leaderboard": Recipe(
        READING,
        {
            **BOARD,
            "baseline": ("", "shuffled"),
            "test": ("t", "wilcoxon", "randomisation"),
            "correction": ("holm", "bh"),
            "tag": ("odd", ""),
        },
        weight=0.25,
    ),
    "GET /manage/{campaign}/topics": Recipe(
        READING,
        {
            "state": ("any", "open", "done"),
            "search": ("", "o"),
            "order": ("", "worth", "-gain"),
            "cursor": CURSOR,
        },
    ),
    "GET /manage/{campaign}/pairs": Recipe(
        READING, {"topic": TOPICS_THERE, "assessor": PEOPLE, "order": ("", "-topic"), "cursor": CURSOR}
    ),
    "GET /manage/{campaign}/assessors": Recipe(
        READING, {"order": ("came", "tests"), "state": ("any", "excluded"), "cursor": CURSOR}
    ),
    "GET /manage/{campaign}/money": Recipe(
        READING, {"assessor": PEOPLE, "order": ("", "amount", "-entry"), "cursor": CURSOR}
    ),
    "GET /manage/{campaign}/log": Recipe(
        READING,
        {
            "topic": TOPICS_THERE,
            "assessor": PEOPLE,
            "event": ("", "judgment", "retraction"),
            "order": ("", "-time", "topic", "assessor"),
            "cursor": CURSOR,
            "deeds": CURSOR,
        },
    ),
    "GET /manage/{campaign}/llm": Recipe(READING),
    "GET /manage/{campaign}/agreement": Recipe(
        READING,
        {"criterion": ("",), "cluster": ("", "auto", "topic", "assessor"), "rate": ("", "0.5", "1")},
        weight=0.1,
    ),
    "GET /manage/{campaign}/topic": Recipe(READING, {"topic": TOPICS_THERE}),
    "GET /manage/{campaign}/pair": Recipe(
        READING, {"topic": TOPICS_THERE, "a": ("{{a}}", "a"), "b": ("{{b}}", "b")}
    ),
    "GET /manage/{campaign}/assessor": Recipe(READING, {"assessor": PEOPLE}),
    "GET /manage/{campaign}/settings": Recipe(READING, {"notice": ("", "x")}),
    "GET /manage/{campaign}/{page}": Recipe(READING),
    "POST /manage/{campaign}/blind": Recipe(("manager", "link", "viewer"), form={"blind": ("0", "1")}),
    "POST /manage/{campaign}/settings": Recipe(
        ("manager", "link"),
        form={
            "boxes": ("yes",),
            **{name: [str(each) for each in values] for name, values in SETTINGS.items()},
            "sure": ("yes", ""),
            "values": ('{"reward": 300}', '{"feedback": true}', "[]"),
        },
    ),
    "POST /manage/{campaign}/webhooks": Recipe(  # none of these addresses is called
        ("manager", "link"),
        form={
            "url": ("https://127.0.0.1/hook", "http://192.0.2.1/hook", "https://[::1]/?a=b", "x", ""),
            "body": ("json", "text", "teams", "xml"),
            "event-budget.reached": ("yes", ""),
        },
    ),
    "POST /manage/{campaign}/webhooks/{webhook}/{step}": Recipe(("manager", "link"), form={}, weight=0.5),
    "POST /manage/{campaign}/step/{step}": Recipe(("manager", "link"), form=STEP_FORM, weight=2),
    "POST /manage/{campaign}/invite": Recipe(
        ("manager", "link"), form={"assessor": PEOPLE, "once": ("yes", "")}
    ),
    "POST /manage/{campaign}/texts": Recipe(("manager", "link"), files=("texts", "topics"), weight=0.5),
    # the API
    "GET /api/v1/openapi.json": Recipe(("nobody",), weight=0.15),
    "GET /api/v1/campaigns": Recipe(READING),
    "GET /api/v1/campaigns/{campaign}": Recipe(READING),
    "GET /api/v1/campaigns/{campaign}/overview": Recipe(READING, {"blind": BOOLEAN}, weight=0.35),
    "GET /api/v1/campaigns/{campaign}/settings": Recipe(READING),
    "GET /api/v1/campaigns/{campaign}/pulse": Recipe(READING),
    "GET /api/v1/campaigns/{campaign}/events": Recipe(READING, {"seconds": ("0", "0", "1", "60")}),
    "GET /api/v1/campaigns/{campaign}/leaderboard": Recipe(
        READING,
        {
            **BOARD,
            "baseline": ("", "shuffled"),
            "test": ("t", "wilcoxon"),
            "correction": ("bh", "holm"),
            "tag": ("odd", ""),
        },
        weight=0.35,
    ),
    "GET /api/v1/campaigns/{campaign}/leaderboard/history": Recipe(READING, BOARD, weight=0.35),
    "GET /api/v1/campaigns/{campaign}/leaderboard/slices": Recipe(READING, BOARD, weight=0.35),
    "GET /api/v1/campaigns/{campaign}/leaderboard/systems": Recipe(
        READING, {"blind": BOOLEAN, "tag": ("odd", "")}, weight=0.35
    ),
    "GET /api/v1/campaigns/{campaign}/topics": Recipe(
        READING, {**PAGED, "state": ("any", "done"), "search": ("", "o")}
    ),
    "GET /api/v1/campaigns/{campaign}/topic": Recipe(READING, {"topic": TOPICS_THERE}),
    "GET /api/v1/campaigns/{campaign}/pairs": Recipe(
        READING, {**PAGED, "topic": ("", *TOPICS_THERE), "assessor": ("", *PEOPLE), "order": ("", "topic")}
    ),
    "GET /api/v1/campaigns/{campaign}/pair": Recipe(
        READING, {"topic": ("one",), "a": ("{{a}}", *ITEMS), "b": ("{{b}}", *ITEMS)}
    ),
    "GET /api/v1/campaigns/{campaign}/assessors": Recipe(
        READING, {**PAGED, "order": ("came", "tests"), "state": ("any", "in")}
    ),
    "GET /api/v1/campaigns/{campaign}/assessor": Recipe(READING, {"assessor": PEOPLE}),
    "GET /api/v1/campaigns/{campaign}/llm": Recipe(READING),
    "GET /api/v1/campaigns/{campaign}/agreement": Recipe(
        READING,
        {
            "report": ("", "preferences"),
            "criterion": ("",),
            "cluster": ("auto", "topic"),
            "tie_rate": ("0.5", "0"),
            "rows": ("5", "20"),
        },
        weight=0.1,
    ),
    "GET /api/v1/campaigns/{campaign}/ledger": Recipe(
        READING, {**PAGED, "assessor": ("", *PEOPLE), "order": ("", "-amount", "assessor")}
    ),
    "GET /api/v1/campaigns/{campaign}/log": Recipe(
        READING,
        {
            **PAGED,
            "topic": ("", "one"),
            "assessor": ("", "anna"),
            "event": ("", "judgment"),
            "order": ("", "-assessor", "time"),
        },
    ),
    "GET /api/v1/campaigns/{campaign}/export/{form}": Recipe(("manager", "link", "token")),
    "GET /api/v1/campaigns/{campaign}/deeds": Recipe(READING, PAGED),
    "POST /api/v1/campaigns/{campaign}/exclude": Recipe(
        json={"assessor": PEOPLE, "reason": REASONS, "preview": (True, False)}
    ),
    "POST /api/v1/campaigns/{campaign}/invite": Recipe(json={"assessor": PEOPLE, "once": (True, False)}),
    "PUT /api/v1/campaigns/{campaign}/texts": Recipe(raw=True, weight=0.5),
    "PUT /api/v1/campaigns/{campaign}/questions": Recipe(raw=True, weight=0.5),
    "POST /api/v1/campaigns/{campaign}/reinstate": Recipe(
        json={"assessor": PEOPLE, "reason": REASONS, "preview": (True, False)}
    ),
    "POST /api/v1/campaigns/{campaign}/retract": Recipe(
        json={
            "topic": TOPICS_THERE,
            "seqs": ([1], [1, 2], ["{{#seq}}"]),
            "reason": REASONS,
            "preview": (True, False),
        }
    ),
    "POST /api/v1/campaigns/{campaign}/rewind": Recipe(
        json={"topic": TOPICS_THERE, "phase": ("{{phase}}", "1"), "reason": REASONS, "preview": (True, False)}
    ),
    "POST /api/v1/campaigns/{campaign}/state": Recipe(json={"state": STATES, "preview": (True, False)}),
    "POST /api/v1/campaigns/{campaign}/settings": Recipe(
        json={"settings": ("settings",), "preview": (True, False)}, weight=2
    ),
    # setting a campaign up
    "GET /setup": Recipe(("setup", "arriving"), {"key": ("", "{{key_setup}}")}),
    "GET /setup/{draft}": Recipe(("setup",), weight=0.5),
    "POST /setup/{draft}/files": Recipe(("setup",), files=("runs", "qrels")),
    "POST /setup/{draft}/options": Recipe(
        ("setup",),
        form={
            **{
                name: ["" if each is None else str(each) for each in values]
                for name, values in OPTIONS.items()
            },
            "step": ("files", "judges", "plan", "review", "none"),
            "go": (None, "next", "back", "make"),
            "paused": ("yes", ""),
        },
        weight=0.5,
    ),
    "POST /setup/{draft}/kind": Recipe(
        ("setup",),
        form={"kind": PATHS["kind"], "name": ("x.run", "q.txt"), "to": PATHS["kind"]},
        weight=0.5,
    ),
    "POST /setup/{draft}/remove": Recipe(
        ("setup",), form={"kind": PATHS["kind"], "name": ("x.run", "q.txt")}, weight=0.5
    ),
    "POST /setup/{draft}/leave": Recipe(("setup",), form={}, weight=0.2),
    "GET /api/v1/setups": Recipe(("setup",)),
    "POST /api/v1/setups": Recipe(("setup",), weight=0.5),
    "GET /api/v1/setups/{draft}": Recipe(("setup",), {"simulate": BOOLEAN}, weight=0.5),
    "DELETE /api/v1/setups/{draft}": Recipe(("setup",), weight=0.2),
    "PUT /api/v1/setups/{draft}/files/{kind}": Recipe(
        ("setup",), {"name": ("x.run", "q.txt", "all.zip")}, raw=True
    ),
    "DELETE /api/v1/setups/{draft}/files/{kind}": Recipe(
        ("setup",), {"name": ("x.run", "q.txt")}, weight=0.5
    ),
    "PUT /api/v1/setups/{draft}/options": Recipe(("setup",), json=OPTIONS, weight=0.5),
    "POST /api/v1/setups/{draft}/campaign": Recipe(
        ("setup",), json={"name": ("made", "a"), "paused": (True, False)}, weight=0.3
    ),
}


_UP = "/api/v1/setups/{draft}"
_ANY_OPTIONS = {
    "draft": "{{draft}}",
    "strategy": "allpairs",
    "judges": "dedicated",
    "tests": "none",
    "learn_from": "",
    "step": "judges",
    "go": None,
}
FIRST: tuple[tuple[str, dict[str, Any]], ...] = (
    ("GET /manage/{campaign}/account", {}),
    ("POST /manage/{campaign}/account", {}),
    ("POST /j/{campaign}/step", {"step": "consent", "agree": "yes"}),
    ("GET /j/{campaign}/work", {}),
    ("GET /j/{campaign}/frame/{question}/{side}", {"question": "{{question}}"}),
    ("GET /j/{campaign}/context/{question}", {"question": "{{question}}"}),
    ("POST /j/{campaign}/extend", {"question": "{{question}}"}),
    ("POST /j/{campaign}/answer", {"question": "{{question}}", "outcome": "left"}),
    ("POST /j/{campaign}/undo", {"question": "{{answered}}"}),
    ("POST /api/v1/campaigns/{campaign}/rewind", {"topic": "one", "phase": "{{phase}}"}),
    ("POST /api/v1/campaigns/{campaign}/exclude", {"assessor": "cleo", "preview": False}),
    ("POST /api/v1/campaigns/{campaign}/reinstate", {"assessor": "cleo", "preview": False}),
    (
        "POST /manage/{campaign}/webhooks",
        {"url": "https://1.1.1.1/x", "body": "json", "event-budget.reached": "yes"},
    ),
    ("POST /manage/{campaign}/webhooks/{webhook}/{step}", {"webhook": "{{webhook}}", "step": "remove"}),
    ("POST /manage/{campaign}/texts", {}),
    ("PUT /api/v1/campaigns/{campaign}/texts", {"kind": "texts"}),
    ("PUT /api/v1/campaigns/{campaign}/questions", {"kind": "topics"}),
    ("GET /account", {}),
    ("POST /account/sessions", {"session": "{{session}}"}),
    ("POST /account/password", {"new": "another password here"}),
    ("POST /setup/{draft}/files", {"draft": "new"}),
    ("GET /setup/{draft}", {"draft": "{{draft}}"}),
    ("POST /setup/{draft}/options", _ANY_OPTIONS),
    ("POST /setup/{draft}/kind", {"draft": "{{draft}}", "kind": "qrels", "name": "qrels.txt", "to": "qrels"}),
    ("POST /setup/{draft}/remove", {"draft": "{{draft}}", "kind": "qrels", "name": "qrels.txt"}),
    ("POST /setup/{draft}/leave", {"draft": "{{draft}}"}),
    ("POST /api/v1/setups", {}),
    (f"PUT {_UP}/files/{{kind}}", {"draft": "{{draft}}", "kind": "qrels", "name": "q.txt"}),
    (f"DELETE {_UP}/files/{{kind}}", {"draft": "{{draft}}", "kind": "qrels", "name": "q.txt"}),
    (f"PUT {_UP}/files/{{kind}}", {"draft": "{{draft}}", "kind": "runs", "name": "x.run"}),
    (f"PUT {_UP}/options", {**_ANY_OPTIONS, "thin": None, "share": None, "budget": None, "max_cost": None}),
    (f"POST {_UP}/campaign", {"draft": "{{draft}}", "name": "made", "paused": True}),
)
"""Requests that belong together, so that each of these routes is reached."""
