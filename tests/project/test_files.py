"""The files around the code: workflows, image, release and citation name what exists, and each other's versions."""

import re
import tomllib
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
import yaml
from check_dist import DUELPOOL, REPRODUCE, Distribution, metadata_problems, sdist_problems, wheel_problems
from check_tag import problems

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINNED = re.compile(r"^([\w.-]+)==([\w.+!-]+)", re.MULTILINE)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(name: str) -> dict[str, str]:
    return {normal(package): version for package, version in PINNED.findall(read(name))}


def jobs(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"])


def steps() -> list[Any]:
    return [
        pytest.param(step, id=f"{path.stem}-{name}-{number}")
        for path in WORKFLOWS
        for name, job in jobs(path).items()
        for number, step in enumerate(job["steps"])
    ]


# ---- workflows


def test_workflows_for_tests_and_releases_exist() -> None:
    assert {path.stem for path in WORKFLOWS} == {"test", "release"}


@pytest.mark.parametrize("step", steps())
def test_workflow_steps_call_existing_targets(step: dict[str, Any]) -> None:
    if "uses" in step:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@(v\d+|release/v\d+)", step["uses"]), "not bound to a version"
        for key in ("file", "cache-dependency-path"):
            if key in step.get("with", {}):
                assert (ROOT / step["with"][key]).is_file()
        return
    words = step["run"].split()
    if words[0] == "choco":  # Windows has no make of its own
        return
    assert words[0] == "make", "a workflow calls the same make targets as a person"
    targets = [word for word in words[1:] if "=" not in word]
    assert targets
    assert set(targets) <= TARGETS


def test_tests_run_on_three_systems_four_pythons_and_both_processors() -> None:
    matrix = jobs(ROOT / ".github" / "workflows" / "test.yml")["test"]["strategy"]["matrix"]
    assert {name.split("-")[0] for name in matrix["system"]} == {"ubuntu", "macos", "windows"}
    assert {name.endswith("-arm") for name in matrix["system"] if name.startswith("ubuntu")} == {True, False}
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    named = {text.rsplit(" ", 1)[-1] for text in PROJECT["classifiers"] if "Python :: 3." in text}
    assert named <= set(matrix["python"])
    assert f">={matrix['python'][0]}" == PROJECT["requires-python"]


def test_release_is_checked_before_publishing_without_a_password() -> None:
    release = jobs(ROOT / ".github" / "workflows" / "release.yml")
    calls = [step["run"].split()[1] for step in release["build"]["steps"] if "run" in step]
    assert calls == ["check-tag", "sbom", "check-dist"]  # the tested files are published
    assert release["publish"]["needs"] == release["image"]["needs"] == "build"
    assert release["publish"]["permissions"] == {"id-token": "write"}
    assert "password" not in str(release["publish"])


def test_make_targets_are_declared_and_documented_ones_exist() -> None:
    declared = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)
    assert declared
    assert set(declared[1].replace("\\", " ").split()) - {"build/plain"} == TARGETS
    for page in ("README.md", "CONTRIBUTING.md", "docs/releases.md"):
        called = set(re.findall(r"`make (?:[A-Z]+=\S+ )*([a-z-]+)", read(page)))
        assert called <= TARGETS, page


# ---- versions


def test_changelog_dates_the_last_release_and_opens_the_next() -> None:
    heads = re.findall(r"^## (\S+) - (\S+)$", read("CHANGELOG.md"), re.MULTILINE)
    assert heads[0] == (PROJECT["version"].split(".dev")[0], "unreleased") or "dev" not in PROJECT["version"]
    closed = [version for version, when in heads if re.fullmatch(r"\d{4}-\d\d-\d\d", when)]
    assert closed[-1] == "0.1.0"
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["version"] == closed[0]
    assert str(citation["date-released"]) == dict(heads)[closed[0]]
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Source"]


def test_tag_is_refused_until_all_files_name_its_release(tmp_path: Path) -> None:
    (tmp_path / "reproduce").mkdir()
    for name in ("pyproject.toml", "reproduce/pyproject.toml", "CHANGELOG.md", "CITATION.cff"):
        (tmp_path / name).write_text(read(name), encoding="utf-8")
    assert len(problems("v9.9.9", tmp_path)) == 5
    assert "v9.9 is no tag of a release, such as v0.2.0" in problems("v9.9", tmp_path)
    for name, pattern, new in (
        ("pyproject.toml", r'^version = ".*"', 'version = "9.9.9"'),
        ("reproduce/pyproject.toml", re.escape(PROJECT["version"]), "9.9.9"),
        ("CHANGELOG.md", r"^## \S+ - unreleased", "## 9.9.9 - 2027-01-31"),
        ("CITATION.cff", r"^version: .*", "version: 9.9.9"),
    ):
        count = 2 if name.startswith("reproduce") else 1  # its version, and that of duelpool
        text = re.sub(pattern, new, read(name), count=count, flags=re.MULTILINE)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert problems("v9.9.9", tmp_path) == []


def test_both_distributions_share_version_and_licence() -> None:
    ours = REPRODUCE.project
    for field in ("version", "license", "requires-python", "authors"):
        assert ours[field] == PROJECT[field], field
    assert ours["dependencies"] == [f"duelpool=={PROJECT['version']}"]
    assert set(ours["classifiers"]) <= set(PROJECT["classifiers"])
    assert read("reproduce/LICENSE") == read("LICENSE")


def test_hashed_requirements_are_the_pinned_versions_without_urls() -> None:
    text = read("requirements-hashed.txt")
    pinned, hashed = pins("constraints.txt"), pins("requirements-hashed.txt")
    assert "://" not in text
    assert "index-url" not in text
    blocks = re.split(r"^(?=[A-Za-z])", text, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(hashed)
    assert all("--hash=sha256:" in block for block in blocks)
    elsewhere = {"colorama"}  # on Windows only, where nothing was pinned
    assert {
        name: version for name, version in hashed.items() if name not in elsewhere
    }.items() <= pinned.items()
    direct = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["postgres"]]
    assert {normal(re.split(r"[\[<>=;]", each)[0]) for each in direct} <= hashed.keys()


def test_licences_of_dependencies_are_listed() -> None:
    rows = re.findall(r"^\| (\S+) \| (\S+) \| (.+) \|$", read("docs/licences.md"), re.MULTILINE)
    listed = {normal(name): version for name, version, _ in rows if version != "version"}
    elsewhere = {"colorama", "tzdata"}  # installed on Windows only
    hashed = pins("requirements-hashed.txt")
    wanted = {name: version for name, version in hashed.items() if name not in elsewhere}
    assert wanted.items() <= listed.items() <= pins("constraints.txt").items()
    extras = [
        each for name in ("postgres", "cluster", "testing") for each in PROJECT["optional-dependencies"][name]
    ]
    assert {normal(re.split(r"[\[<>=;]", each)[0]) for each in extras} <= listed.keys()
    assert not [name for name, _, licence in rows if licence == "not stated"]


def test_pre_commit_runs_the_pinned_ruff() -> None:
    repos = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    assert [repo["rev"] for repo in repos if "ruff" in repo["repo"]] == [
        f"v{pins('constraints.txt')['ruff']}"
    ]
    entries = [hook["entry"] for repo in repos if repo["repo"] == "local" for hook in repo["hooks"]]
    assert entries
    assert {entry.split()[1] for entry in entries} <= TARGETS


# ---- wheel and sdist

FILES = {"src/duelpool/__init__.py", "src/duelpool/py.typed", "tests/test_x.py", "README.md"}
INFO = "duelpool-1.dist-info"
WHEEL = {"duelpool/__init__.py", "duelpool/py.typed"} | {
    f"{INFO}/{name}" for name in ("METADATA", "entry_points.txt", "licenses/LICENSE")
}


def test_duelpool_wheel_has_no_experiments() -> None:
    files = {*FILES, "reproduce/src/duelpool_reproduce/__init__.py", "reproduce/tests/test_y.py"}
    assert wheel_problems(WHEEL, files) == []
    assert wheel_problems({*WHEEL, "duelpool_reproduce/__init__.py"}, files) == [
        "the wheel has duelpool_reproduce/__init__.py, which is no file of the package"
    ]
    info = "duelpool_reproduce-1.dist-info"
    wheel = {"duelpool_reproduce/__init__.py", f"{info}/METADATA", f"{info}/licenses/LICENSE"}
    assert wheel_problems(wheel, files, REPRODUCE) == []
    assert wheel_problems({*wheel, "duelpool/__init__.py"}, files, REPRODUCE) == [
        "the wheel has duelpool/__init__.py, which is no file of the package"
    ]


def test_wheel_has_the_package_only() -> None:
    assert wheel_problems(WHEEL, FILES) == []
    assert wheel_problems(WHEEL - {"duelpool/py.typed"}, FILES) == ["the wheel lacks duelpool/py.typed"]
    assert wheel_problems(WHEEL - {f"{INFO}/METADATA"}, FILES) == [f"the wheel lacks {INFO}/METADATA"]
    assert wheel_problems(WHEEL | {"tests/test_x.py"}, FILES) == [
        "the wheel has tests/test_x.py, which is no file of the package"
    ]


def test_sdist_has_sources_and_tests_and_no_untracked_files() -> None:
    files = FILES | set(DUELPOOL.expected) | {"reproduce/tests/test_y.py"}
    inside = {f"duelpool-1/{name}" for name in files | {"PKG-INFO"}}
    assert sdist_problems(inside, files) == []
    assert sdist_problems(inside - {"duelpool-1/tests/test_x.py"}, files) == [
        "the sdist lacks tests/test_x.py"
    ]
    assert sdist_problems(inside - {"duelpool-1/reproduce/tests/test_y.py"}, files) == [
        "the sdist lacks reproduce/tests/test_y.py"
    ]
    assert sdist_problems(inside | {"duelpool-1/secret.db"}, files) == [
        "the sdist has secret.db, which is no file of the project"
    ]
    files |= {f"reproduce/{name}" for name in REPRODUCE.expected}
    inside = {f"duelpool_reproduce-1/{name}" for name in (*REPRODUCE.expected, "tests/test_y.py", "PKG-INFO")}
    assert sdist_problems(inside, files, REPRODUCE) == []
    assert sdist_problems(inside - {"duelpool_reproduce-1/LICENSE"}, files, REPRODUCE) == [
        "the sdist lacks LICENSE"
    ]
    assert sdist_problems(inside | {"duelpool_reproduce-1/Makefile"}, files, REPRODUCE) == [
        "the sdist has Makefile, which is no file of the project"
    ]


@pytest.mark.parametrize("distribution", [DUELPOOL, REPRODUCE], ids=lambda each: each.package)
def test_metadata_match_the_project_and_links_are_absolute(distribution: Distribution) -> None:
    project = distribution.project
    message = Message()
    for field, value in (
        ("Name", project["name"]), ("Version", project["version"]), ("Requires-Python", project["requires-python"]),
        ("License-Expression", project["license"]), ("Description-Content-Type", "text/markdown"),
        *(("Classifier", each) for each in project["classifiers"]),
        *(("Project-URL", f"{name}, {url}") for name, url in project["urls"].items()),
    ):  # fmt: skip
        message[field] = value
    message.set_payload("[one](https://example.org/x) [two](#here)")
    assert metadata_problems(message, distribution) == []
    message.set_payload("![three](docs/pictures/judging.png)")
    assert metadata_problems(message, distribution) == [
        "the README links to docs/pictures/judging.png, which an index can't show"
    ]
    del message["Version"]
    assert len(metadata_problems(message, distribution)) == 2


# ---- the image, and what a host shows


def test_image_has_a_user_a_health_check_and_existing_files() -> None:
    lines = read("Containerfile").splitlines()
    assert "USER 10001" in lines
    assert any(line.startswith("HEALTHCHECK") for line in lines)
    copied = [line.split()[1] for line in lines if line.startswith("COPY") and "--from" not in line]
    assert copied
    assert all((ROOT / name).exists() for name in copied)
    compose = yaml.safe_load(read("docs/compose.yaml"))
    assert (ROOT / compose["services"]["judge-1"]["build"]["dockerfile"]).is_file()


@pytest.mark.parametrize(
    "name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "CITATION.cff", ".github/ISSUE_TEMPLATE/bug.yml"]
)
def test_expected_files_exist(name: str) -> None:
    assert read(name).strip()


def test_setup_and_release_name_no_external_address() -> None:
    """Packages come from the indexes that the user's pip, uv or container engine is set up for."""
    paths = [
        *WORKFLOWS,
        *ROOT.glob("*.txt"),
        *(
            ROOT / name
            for name in ("Makefile", "Containerfile", "pyproject.toml", "reproduce/pyproject.toml")
        ),
    ]
    for path in paths:
        hosts = set(re.findall(r"\w+://([\w.-]+)", path.read_text(encoding="utf-8")))
        assert hosts <= {"github.com", "raw.githubusercontent.com", "127.0.0.1"}, path.name
