"""`-` in every command: standard input is read once, plain or gzip, and gives what the file gives."""

import gzip
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from typer.testing import CliRunner

from duelpool.cli import app
from duelpool.cli.commands import COMMANDS, _load
from duelpool.files import read_qrels, write_qrels, write_run
from support.budgets import small_runs

RUN = "".join(f"{topic} Q0 {item} {at} {-at} one\n" for topic in "12" for at, item in enumerate("abcde", 1))
OTHER = "".join(
    f"{topic} Q0 {item} {at} {-at} two\n"
    for topic in "12"
    for at, item in enumerate("badxc"[int(topic) - 1 :], 1)
)
VOTES = "".join(f"{topic} {pair[0]} {pair[1]} {pair[0]}\n" for topic in "12" for pair in ("ab", "bc", "cd"))
JUDGED = "".join(
    f'{{"topic": "{topic}", "left": "{pair[0]}", "right": "{pair[1]}", "outcome": "left", "assessor": "{who}"}}\n'
    for topic in "12"
    for pair in ("ab", "bc", "cd")
    for who in ("anna", "ben")
)
FILES = {
    "one.run": RUN,
    "two.run": OTHER,
    "three.run": OTHER.replace("two", "three"),
    "qrels.txt": "".join(f"{topic} 0 {item} {4 - at}\n" for topic in "12" for at, item in enumerate("abcde")),
    "few.txt": "1 0 a 1\n1 0 b 0\n2 0 a 0\n",
    "votes.txt": VOTES,
    "judged.jsonl": JUDGED,
    "system-votes.csv": "model_a,model_b,winner\nx,y,model_a\ny,x,tie\n",
    "texts.tsv": "".join(f"{item}\tText of {item}.\n" for item in "abcdexyz"),
    "topics.tsv": "1\tfirst question\n2\tsecond question\n",
    "answers.jsonl": "".join(
        f'{{"question": "q{at}", "system": "{name}", "answer": "{name} to {at}"}}\n'
        for at in "12"
        for name in "ab"
    ),
    "late.jsonl": '{"question": "q1", "system": "late", "answer": "late to 1"}\n',
    "groups.txt": "one ours\ntwo theirs\n",
    "people.txt": "anna ours\nben theirs\n",
    "twins.txt": "1 a a2\n",
    "tests.txt": "1 a x\n2 b y\n",
    "guidelines.md": "Prefer the clearer answer.\n",
    "settings.toml": 'consent = "I take part."\n',
    "prompt.txt": "Say which is better.\n---\n{question}\nA: {left}\nB: {right}\n",
    "weights.txt": "1 a one 1\n1 b one 0.5\n1 a two 0.5\n1 b two 1\n2 a one 1\n2 a two 0.5\n",
    "relevant.txt": "".join(f"t{topic} 4\n" for topic in range(8)),
    "weighted.tsv": "".join(f"t{topic}\tquestion {topic}\n" for topic in range(8)),
    "planned.tsv": "".join(f"d{item}\tText of d{item}.\n" for item in range(40)),
}

PLAN = "budget plan --metric P@6 --n 20 --seed 1 -o new.jsonl"
READS = {
    ("pool", "runs"): "pool one.run two.run",
    ("pool", "more_runs"): "pool one.run --runs two.run",
    ("pool", "answers"): "pool --answers answers.jsonl",
    ("join", "answers"): "join systems.db late.jsonl",
    ("join", "texts"): "join systems.db late.jsonl --texts texts.tsv",
    ("texts", "passages"): "texts c.db texts.tsv",
    ("texts", "topics"): "texts c.db --topics topics.tsv",
    ("pool", "pages"): "pool --pages one.run --pages two.run --texts texts.tsv",
    ("pool", "qrels"): "pool one.run --qrels qrels.txt",
    ("pool", "prefs"): "pool --prefs votes.txt",
    ("pool", "texts"): "pool one.run --texts texts.tsv",
    ("pool", "groups"): "pool one.run two.run --groups groups.txt",
    ("pool", "topics"): "pool one.run --topics topics.tsv -o new.db",
    ("pool", "tests"): "pool one.run --texts texts.tsv --tests tests.txt -o new.db",
    ("pool", "guidelines"): "pool one.run --guidelines guidelines.md -o new.db",
    ("pool", "prior"): "pool one.run --prior qrels.txt -o new.db",
    ("pool", "settings_file"): "pool one.run --settings settings.toml -o new.db",
    ("export", "above"): "export judged.db --as qrels --best --above qrels.txt",
    ("evaluate", "truth"): "evaluate <qrels.txt one.run two.run -m nDCG@5",
    ("evaluate", "runs"): "evaluate qrels.txt two.run one.run -m nDCG@5",
    ("evaluate", "preferences"): "evaluate qrels.txt one.run --preferences votes.txt -m Compat",
    ("evaluate", "twins"): "evaluate votes.txt one.run --twins twins.txt -m ppref",
    (
        "evaluate",
        "groups",
    ): "evaluate qrels.txt one.run two.run -m nDCG@5 --report leave-out --groups groups.txt",
    ("evaluate", "topics"): "evaluate qrels.txt one.run -m nDCG@5 --topics topics.tsv",
    ("agreement", "source"): "agreement judged.jsonl",
    ("agreement", "other"): "agreement votes.txt judged.jsonl --json",
    ("agreement", "groups"): "agreement judged.jsonl --groups people.txt",
    ("change", "settings"): "change c.db --settings settings.toml",
    ("import", "file"): "import c.db votes.txt",
    ("budget plan", "runs"): f"{PLAN} runs/run0.run runs/run1.run",
    ("budget plan", "more_runs"): f"{PLAN} runs/run0.run --runs runs/run1.run",
    ("budget plan", "prior"): f"{PLAN} runs/run0.run runs/run1.run --prior graded.txt",
    ("budget plan", "predictor"): f"{PLAN} runs/run0.run runs/run1.run --predictor graded.txt",
    (
        "budget plan",
        "weights",
    ): "budget plan --metric Given --n 3 --seed 1 -o new.jsonl --weights weights.txt",
    ("budget plan", "topics"): f"{PLAN} runs/run0.run runs/run1.run --topics weighted.tsv",
    (
        "budget plan",
        "relevant",
    ): "budget plan --metric AP --n 20 --seed 1 -o new.jsonl runs --relevant relevant.txt",
    ("budget plan", "after"): f"{PLAN} runs --judgments answers.txt --after plan.jsonl",
    ("budget plan", "judgments"): f"{PLAN} runs --after plan.jsonl --judgments answers.txt",
    ("budget campaign", "plan_file"): "budget campaign plan.jsonl -o new.db",
    ("budget campaign", "texts"): "budget campaign plan.jsonl -o new.db --texts planned.tsv",
    ("budget campaign", "topics"): "budget campaign plan.jsonl -o new.db --topics weighted.tsv",
    ("budget estimate", "plan_file"): "budget estimate <plan.jsonl runs --judgments answers.txt",
    (
        "budget estimate",
        "runs",
    ): "budget estimate plan.jsonl runs/run0.run <runs/run1.run --judgments answers.txt",
    (
        "budget estimate",
        "more_runs",
    ): "budget estimate plan.jsonl runs/run0.run --runs <runs/run1.run --judgments answers.txt",
    ("budget estimate", "judgments"): "budget estimate plan.jsonl runs --judgments answers.txt",
    (
        "budget estimate",
        "also",
    ): "budget estimate plan.jsonl runs --judgments graded.txt --others ignore --also again.jsonl",
    ("budget estimate", "weights"): "budget estimate given.jsonl --judgments given.txt --weights weights.txt",
    (
        "budget simulate",
        "runs",
    ): "budget simulate runs/run0.run <runs/run1.run --qrels graded.txt --n 20 --trials 4",
    (
        "budget simulate",
        "more_runs",
    ): "budget simulate runs/run0.run --runs <runs/run1.run --qrels graded.txt --n 20 --trials 4",
    ("budget simulate", "qrels"): "budget simulate runs --qrels graded.txt --n 20 --trials 4",
    ("budget simulate", "prior"): "budget simulate runs --qrels all.txt --n 20 --trials 4 --prior graded.txt",
    (
        "budget simulate",
        "predictor",
    ): "budget simulate runs --qrels all.txt --n 20 --trials 4 --predictor graded.txt",
    ("budget simulate", "weights"): (
        "budget simulate --metric Given --qrels qrels.txt --n 3 --trials 4 --weights weights.txt"
    ),
    (
        "budget simulate",
        "topics",
    ): "budget simulate runs --qrels all.txt --n 20 --trials 4 --topics weighted.tsv",
    ("challenge", "run"): "challenge c.db two.run --dry-run",
    ("challenge", "texts"): "challenge c.db two.run --dry-run --texts texts.tsv",
    ("prompt", "file"): "prompt --file prompt.txt",
    ("compare", "a"): "compare <one.run two.run",
    ("compare", "b"): "compare two.run one.run",
    ("compare", "prefs"): "compare one.run two.run --prefs votes.txt",
    ("compare", "votes"): "compare x y --votes system-votes.csv",
    ("compare", "qrels"): "compare one.run two.run --qrels qrels.txt",
    ("gate", "old_run"): "gate <one.run one.run --qrels qrels.txt -m nDCG@5 --min-effect 0.5",
    ("gate", "new_run"): "gate one.run <one.run --qrels qrels.txt -m nDCG@5 --min-effect 0.5",
    ("gate", "qrels"): "gate one.run one.run --qrels qrels.txt -m nDCG@5 --min-effect 0.5",
    ("check-runs", "runs"): "check-runs one.run",
    ("check-runs", "topics"): "check-runs one.run --topics topics.tsv",
    ("check-runs", "qrels"): "check-runs one.run --qrels qrels.txt",
    ("sheets", "truth"): "sheets <qrels.txt one.run two.run three.run -o new-sheets.zip",
    ("sheets", "runs"): "sheets qrels.txt one.run two.run three.run -o new-sheets.zip",
    ("power", "truth"): "power <qrels.txt one.run two.run -m nDCG@5 -d 0.1",
    ("power", "runs"): "power qrels.txt two.run one.run -m nDCG@5 -d 0.1",
    (
        "simulate",
        "prior",
    ): "simulate --strategy swissfinals --replay votes.txt --trials 2 --workers 1 --json --prior qrels.txt",
}
"""A command line for every parameter that reads a file: the last file is the parameter's, or that after `<`."""

REFUSED = {
    ("judge replay", "file"): "judge replay c.db --file votes.txt",
    ("simulate", "matrix"): "simulate --strategy knockout --matrix matrix.txt",
    ("simulate", "replay"): "simulate --strategy knockout --replay votes.txt",
}
"""Files of simulated judges, which every process reads again: `-` is refused."""

NOT_FILES = frozenset(
    (
        "store", "campaign", "campaign_name", "host", "url", "proxy", "uploads", "assessor",
        "model", "command", "form", "measure", "kind", "report", "baseline", "test", "correct",
        "ci", "tag", "plot", "criterion", "cluster", "state", "answer_texts", "reason", "category",
        "message", "rows", "phases", "to", "metric", "goal", "design", "estimator", "draw", "scale",
        "interval", "others", "topic", "phase", "role", "label", "scope", "id", "event", "copy",
        "folder", "case", "resume", "assessors", "budget", "growth", "data", "out", "strategy", "output",
        "name", "judges", "fields", "learn_from", "session", "issuer", "subject", "allow_host", "body", "which",
        "sso_allow_host", "sso_claim", "sso_client", "sso_domain", "sso_issuer", "sso_name", "sso_role", "sso_scopes",
        "page", "docno_pattern", "title", "new", "backup", "bets", "junit", "summary", "spend",
    )
)  # fmt: skip
"""Parameters that take a text, a store or a place to write to."""

SECRETS = {("serve", "sso_secret_file"), ("webhook add", "secret_file")}
"""Files of secrets: they are kept, not made by another program, and `-` isn't documented for them."""

TEXTS_ELSEWHERE = {("assign", "topics"), ("retract", "topic"), ("power", "topics"), ("simulate", "truth")}


def commands() -> Iterator[tuple[str, Any]]:
    def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        inside = getattr(command, "commands", None)
        if inside is None:
            yield name, command
        for own, each in (inside or {}).items():
            yield from walk(f"{name} {own}", each)

    for name in COMMANDS:
        yield from walk(name, _load(name))


def takes_text(hint: Any) -> bool:
    return hint in (str, Path) or any(takes_text(each) for each in get_args(hint))


def test_every_parameter_that_may_name_a_file_is_tried() -> None:
    named = {
        (name, parameter)
        for name, command in commands()
        for parameter, hint in get_type_hints(inspect.unwrap(command.callback)).items()
        if takes_text(hint) and parameter not in NOT_FILES
    }
    assert named - TEXTS_ELSEWHERE - SECRETS == READS.keys() | REFUSED.keys()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("piped")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "runs").mkdir()
    runs, qrels = small_runs(topics=8, depth=12, systems=2, seed=2)
    for run in runs:
        write_run(folder / "runs" / f"{run.name}.run", run)
    for name in ("graded.txt", "all.txt"):
        write_qrels(folder / name, qrels)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for store in ("c.db", "judged.db"):
            call(f"pool one.run --texts texts.tsv --strategy allpairs -o {store}".split())
        call(["import", "judged.db", "judged.jsonl"])
        call(["pool", "--answers", "answers.jsonl", "-o", "systems.db"])
        call(["budget", "plan", "--metric", "P@6", "--n", "20", "--seed", "1", "runs", "-o", "plan.jsonl"])
        given = ("--metric", "Given", "--n", "3", "--seed", "1", "--weights", "weights.txt")
        call(["budget", "plan", *given, "-o", "given.jsonl"])
        for plan, truth, answers in (
            ("plan.jsonl", "graded.txt", "answers.txt"),
            ("given.jsonl", "few.txt", "given.txt"),
        ):
            asked = [json.loads(line) for line in Path(plan).read_text().splitlines()[1:]]
            grades = read_qrels(truth).grades()
            rows = (
                f"{each['topic']} 0 {each['item']} {grades[each['topic']][each['item']]:g}" for each in asked
            )
            Path(answers).write_text("\n".join(dict.fromkeys(rows)))
        after = "--after plan.jsonl --judgments answers.txt"
        call(f"budget plan --metric P@6 --n 20 --seed 1 runs {after} -o again.jsonl".split())
    return folder


def call(words: list[str], piped: bytes | None = None, code: int = 0) -> tuple[str, str]:
    done = CliRunner().invoke(app, words, input=piped)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.stdout + done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize("place", READS, ids=" ".join)
def test_standard_input_gives_what_the_file_gives(
    place: tuple[str, str], prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = READS[place].split()
    marked = [at for at, word in enumerate(words) if word.startswith("<")]
    words = [word.removeprefix("<") for word in words]
    files = [at for at, word in enumerate(words) if (prepared / word).is_file() and not word.endswith(".db")]
    at = (marked or files)[-1]
    data = (prepared / words[at]).read_bytes()
    said = []
    for folder, given, piped in (("file", words[at], None), ("piped", "-", gzip.compress(data))):
        shutil.copytree(prepared, tmp_path / folder)
        monkeypatch.chdir(tmp_path / folder)
        out, err = call([*words[:at], given, *words[at + 1 :]], piped)
        stem, whole = words[at].partition(".")[0], words[at]
        for shown, name in (
            ("of standard input", f"of {whole}"),
            ("standard input", stem),
            ("standard-input", stem),
        ):
            out = out.replace(shown, name)
        out = re.sub(r'"seconds": [0-9.]+', "", out)
        said.append((out, err.replace("standard input", words[at]).replace("-:", f"{words[at]}:")))
    assert said[0] == said[1]


@pytest.mark.parametrize("place", REFUSED, ids=" ".join)
def test_files_of_simulated_judges_are_not_read_from_standard_input(
    place: tuple[str, str], prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    _, err = call([*REFUSED[place].split()[:-1], "-"], VOTES.encode(), code=2)
    assert "can't read standard input" in err


@pytest.mark.parametrize(
    "line",
    [
        "evaluate - - -m nDCG@5",
        "evaluate - one.run --preferences - -m Compat",
        "compare - -",
        "pool - --qrels -",
        "budget estimate - runs --judgments -",
    ],
)
def test_standard_input_given_twice_is_refused(
    line: str, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(prepared)
    data = "plan.jsonl" if "budget" in line else "judged.jsonl" if "agreement" in line else "one.run"
    _, err = call(line.split(), Path(data).read_bytes(), code=2)
    assert (
        err
        == "Error: standard input: It can be read only once, and '-' is given twice. Name a file for one.\n"
    )


def test_a_pipe_of_qrels_is_evaluated(prepared: Path) -> None:
    with (prepared / "qrels.txt").open() as piped:
        done = subprocess.run(
            [sys.executable, "-m", "duelpool", "evaluate", "-", "one.run", "-m", "nDCG@5"],
            input=piped.read(), capture_output=True, text=True, check=False, cwd=prepared,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "1.0000" in done.stdout


@pytest.mark.long
def test_pipes_are_evaluated_by_several_processes(prepared: Path) -> None:
    ends = os.pipe()
    os.write(ends[1], gzip.compress((prepared / "one.run").read_bytes()))
    os.close(ends[1])
    named = f"/dev/fd/{ends[0]}"  # as the shell's <(cat FILE)
    done = subprocess.run(
        [sys.executable, "-m", "duelpool", "evaluate", "-", named, "two.run", "-m", "nDCG@5", "-j", "2", "--json"],
        input=(prepared / "qrels.txt").read_bytes(), capture_output=True, check=False, cwd=prepared,
        pass_fds=ends[:1],
    )  # fmt: skip
    os.close(ends[0])
    assert done.returncode == 0, done.stderr.decode()
    values = {each["tag"]: each["value"] for each in json.loads(done.stdout)}
    assert values["one"] == 1.0 > values["two"]
