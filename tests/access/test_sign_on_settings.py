"""The settings of single sign-on, what claims mean by them, and the commands that take them."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from duelpool.access.administration import Administration
from duelpool.access.openid import Identity, NameTaken, check_installed
from duelpool.access.sign_on_settings import (
    SECRET,
    RoleRule,
    SignOnSettings,
    parse_rule,
    read_settings,
    with_secret,
)
from duelpool.access.single_sign_on import admit, claim_values, name_for, roles_for
from duelpool.cli import app
from duelpool.errors import DuelpoolError, MissingExtra
from duelpool.web.server import worker
from support.visitors import new_store

ISSUER = "https://id.example.org/realms/search"
GIVEN: dict[str, Any] = {
    "issuer": ISSUER,
    "client": "duelpool",
    "rules": ["leads=manager"],
    "environment": {},
}
RULES = (RoleRule("leads", "manager"), RoleRule("leads", "viewer", "letters"), RoleRule("*", "assessor"))


def settings(**more: Any) -> SignOnSettings:
    given: dict[str, Any] = {"issuer": ISSUER, "client": "duelpool", "name": "ID", "rules": RULES, **more}
    return SignOnSettings(**given)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("leads=manager", RoleRule("leads", "manager")),
        ("/search/judges=assessor:letters", RoleRule("/search/judges", "assessor", "letters")),
        ("cn=leads,dc=example=viewer", RoleRule("cn=leads,dc=example", "viewer")),
        ("*=assessor", RoleRule("*", "assessor")),
    ],
)
def test_a_rule_is_read_from_its_text(text: str, rule: RoleRule) -> None:
    assert parse_rule(text) == rule


WRONG: dict[str, dict[str, Any]] = {
    "no client": {"client": ""},
    "no role": {"rules": []},
    "a role without a value": {"rules": ["=manager"]},
    "a value without a role": {"rules": ["leads"]},
    "an unknown role": {"rules": ["leads=boss"]},
    "an issuer in the clear": {"issuer": "http://id.example.org"},
    "an issuer with a query": {"issuer": "https://id.example.org?a=b"},
    "half an issuer": {"issuer": "https://["},
    "no scope openid": {"scopes": "profile"},
    "no claim": {"claim": ""},
    "a domain that is an address": {"domains": ["anna@example.org"]},
    "a secret's file that isn't there": {"secret_file": "nothing.txt"},
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_settings_are_refused_with_a_remedy(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DuelpoolError) as refused:
        read_settings(**{**GIVEN, **WRONG[what]})
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("issuer", "allow"),
    [
        ("http://127.0.0.1:8080", ()),
        ("http://localhost:8080", ()),
        ("http://keycloak:8080", ("keycloak",)),
        ("https://id.example.org/application/o/duelpool/", ()),
    ],
)
def test_an_issuer_may_be_here_or_allowed_by_name(issuer: str, allow: tuple[str, ...]) -> None:
    made = read_settings(**{**GIVEN, "issuer": issuer, "allow": allow})
    assert made.issuer == issuer


def test_a_provider_by_https_may_be_private_but_is_never_called_in_the_clear() -> None:
    assert "id.example.org" in settings().may_be_private("https")
    assert settings().may_be_private("http") == ()
    assert settings(issuer="http://127.0.0.1:1").may_be_private("http") == ("127.0.0.1",)


def test_the_secret_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "secret.txt"
    file.write_text("from the file\n", encoding="utf-8")
    given = {SECRET: "from the environment"}
    assert with_secret(settings(), given).secret == "from the environment"
    assert with_secret(settings(secret_file=str(file)), given).secret == "from the file"
    assert with_secret(settings(), {}).secret == ""
    assert "from the file" not in repr(with_secret(settings(secret_file=str(file)), given))
    file.write_text(" \n", encoding="utf-8")
    with pytest.raises(DuelpoolError, match="is empty"):
        with_secret(settings(secret_file=str(file)), given)


@pytest.mark.parametrize(
    ("claims", "claim", "values"),
    [
        ({"groups": ["a", "b"]}, "groups", {"a", "b"}),
        ({"groups": "a b"}, "groups", {"a b"}),
        ({"realm_access": {"roles": ["a"]}}, "realm_access.roles", {"a"}),
        ({"https://example.org/roles": ["a"]}, "https://example.org/roles", {"a"}),
        ({"groups": [1, None, True, ["a"], {"a": "b"}]}, "groups", {"1"}),
        ({"groups": {"a": "b"}}, "groups", set()),
        ({"groups": None}, "groups", set()),
        ({}, "realm_access.roles", set()),
        ({"realm_access": "a"}, "realm_access.roles", set()),
    ],
)
def test_a_claim_has_values(claims: dict[str, Any], claim: str, values: set[str]) -> None:
    assert claim_values(claims, claim) == values


VERIFIED = {"email": "anna@Example.org", "email_verified": True}


@pytest.mark.parametrize(
    ("claims", "more", "roles"),
    [
        ({"groups": ["leads"]}, {}, {"": "manager", "letters": "viewer"}),
        ({"groups": ["others"]}, {}, {"": "assessor"}),
        (
            {"groups": ["leads"], **VERIFIED},
            {"domains": ("example.org",)},
            {"": "manager", "letters": "viewer"},
        ),
        ({"groups": ["leads"]}, {"domains": ("example.org",)}, {}),
        ({"groups": ["leads"], **VERIFIED, "email_verified": False}, {"domains": ("example.org",)}, {}),
        ({"groups": ["leads"], "email": "anna@example.org"}, {"domains": ("example.org",)}, {}),
        ({"groups": ["leads"], **VERIFIED}, {"domains": ("ample.org",)}, {}),
        (
            {"email": "a@b.example", "email_verified": True},
            {"claim": "email", "rules": (RoleRule("a@b.example", "manager"),)},
            {"": "manager"},
        ),
        ({"email": "a@b.example"}, {"claim": "email", "rules": (RoleRule("a@b.example", "manager"),)}, {}),
    ],
)
def test_claims_give_roles(claims: dict[str, Any], more: dict[str, Any], roles: dict[str, str]) -> None:
    """The first rule that fits counts in each campaign; an e-mail address counts once it is verified."""
    assert roles_for(claims, settings(**more)) == roles


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"preferred_username": "Anna", "email": "a@b.example", "sub": "1"}, "anna"),
        ({"email": "Anna@Example.org", "sub": "1"}, "anna@example.org"),
        ({"preferred_username": "DOMAIN\\anna müller", "sub": "1"}, "domain-anna-m-ller"),
        ({"preferred_username": "§", "sub": "auth0|4711"}, "auth0-4711"),
        ({"preferred_username": 7, "sub": "§"}, "account"),
        ({"sub": "x" * 200}, "x" * 64),
        ({"preferred_username": "Link", "email": "anna@example.org", "sub": "1"}, "anna@example.org"),
        ({"preferred_username": "shell", "sub": "link"}, "account"),
    ],
)
def test_a_new_account_is_called_as_the_provider_calls_the_person(claims: dict[str, Any], name: str) -> None:
    assert name_for(claims) == name


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "authlib.oidc.core", None)
    with pytest.raises(MissingExtra, match=r"duelpool\[sso\]"):
        check_installed()


# ---- commands


def test_other_processes_get_the_settings_without_the_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(worker.VARIABLE, "")
    monkeypatch.setenv(SECRET, "a secret for the tests")
    given = with_secret(settings(domains=("example.org",), allow=("id",)), os.environ)
    new_store(tmp_path / "c.db").close()
    worker.leave(str(tmp_path / "c.db"), None, url="https://judge.example.org", sign_on=given)
    assert "a secret for the tests" not in os.environ[worker.VARIABLE]
    made = worker.take_up()
    made.state.store.close()
    assert made.state.sign_on.settings == given


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--sso-issuer", ISSUER, "--sso-role", "leads=manager"], "--sso-client"),
        (["--sso-issuer", ISSUER, "--sso-client", "c"], "--sso-role"),
        (["--sso-client", "c"], "--sso-issuer"),
        (
            ["--sso-issuer", ISSUER, "--sso-client", "c", "--sso-role", "a=viewer", "--host", "0.0.0.0"],
            "--url",
        ),
    ],
)
def test_serve_refuses_half_a_set_up(given: list[str], told: str, tmp_path: Path) -> None:
    new_store(tmp_path / "c.db").close()
    done = CliRunner().invoke(app, ["serve", str(tmp_path / "c.db"), *given])
    assert done.exit_code == 2
    assert told in done.output


def test_an_administrator_links_and_unlinks_an_account(tmp_path: Path) -> None:
    store = str(tmp_path / "c.db")
    new_store(store).close()

    def run(*words: str, typed: str = "") -> Any:
        return CliRunner().invoke(app, ["account", words[0], store, *words[1:]], input=typed)

    assert (
        run(
            "add", "anna", "--role", "viewer", "--password-stdin", typed="a password for the tests\n"
        ).exit_code
        == 0
    )
    assert (
        run(
            "add", "ben", "--role", "viewer", "--password-stdin", typed="a password for the tests\n"
        ).exit_code
        == 0
    )
    link = ("--issuer", ISSUER, "--subject", "4711")
    assert "linked to 4711" in run("link", "anna", *link).output
    listed = json.loads(run("list", "--json").output)
    assert [each["links"] for each in listed] == [[{"issuer": ISSUER, "subject": "4711"}], []]
    assert "single sign-on" in run("list").output
    for refused in (run("link", "ben", *link), run("link", "nobody", *link), run("unlink", "ben")):
        assert refused.exit_code == 2
    assert run("link", "ben", "--issuer", ISSUER, "--subject", "").exit_code == 2
    assert run("unlink", "anna").exit_code == 0
    assert [each["links"] for each in json.loads(run("list", "--json").output)] == [[], []]


@pytest.mark.parametrize("subject", ["auth0|5f7c8ec7", "a b", "$(reboot)", "it's; reboot"])
def test_the_command_to_link_an_account_is_one_command_in_a_shell(tmp_path: Path, subject: str) -> None:
    with new_store(tmp_path / "c.db") as store:
        Administration(store, "tests").add_account("anna", "a password for the tests", "viewer")
        claims = {"sub": subject, "preferred_username": "anna", "groups": ["leads"]}
        with pytest.raises(NameTaken) as refused:
            admit(store, settings(), Identity(ISSUER, subject, claims, ""), address="", agent="")
    command = refused.value.remedy.partition("duelpool account link ")[2]
    words = shlex.shlex(command, posix=True, punctuation_chars=True)  # signs that end a word, as in a shell
    words.whitespace_split = True
    assert list(words) == ["STORE", "anna", "--issuer", ISSUER, "--subject", subject]
