"""The AutoJudge adaptor: leaderboards from preferences, under AutoJudge's own command."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from duelpool.adaptors.autojudge import AutoJudgeError, PreferenceJudge, by_model, win_shares
from duelpool.errors import BadParameter, MissingExtra, UnknownName
from duelpool.records import Levels, Outcome, Passage, Topic
from support.fake_llm import Provider, serving

TOPIC = Topic("t1", "Why?")
ANSWERS = {"short": "So.", "middle": "So it is.", "long": "So it is, for many reasons."}


def longer(_: Topic, left: Passage, right: Passage) -> Outcome:
    return Outcome.LEFT if len(left.text) > len(right.text) else Outcome.RIGHT


@pytest.mark.parametrize("strategy", ["allpairs", "sorting", "knockout:k=3"])
def test_answers_are_ranked_by_preferences(strategy: str) -> None:
    levels = PreferenceJudge(strategy).rank(TOPIC, ANSWERS, longer)
    assert levels.levels[0] == ("long",)
    if strategy != "knockout:k=3":
        assert win_shares(levels) == {"long": 1.0, "middle": 0.5, "short": 0.0}


def test_shares_count_ties_as_halves_and_one_run_wins() -> None:
    assert win_shares(Levels((("a", "b"), ("c",)))) == {"a": 0.75, "b": 0.75, "c": 0.0}
    assert win_shares(Levels((("a",),))) == {"a": 1.0}


def test_what_cannot_be_judged_ends() -> None:
    levels = PreferenceJudge("allpairs").rank(TOPIC, ANSWERS, lambda *_: Outcome.CANNOT_JUDGE)
    assert set(win_shares(levels).values()) == {0.5}


def test_wrong_settings_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownName):
        PreferenceJudge("no-such")
    with pytest.raises(BadParameter, match="OPENAI_BASE_URL"):
        by_model(SimpleNamespace(model="m", base_url=None, api_key=None))
    monkeypatch.setitem(sys.modules, "autojudge_base", None)
    with pytest.raises(MissingExtra, match=r"duelpool\[autojudge\]"):
        PreferenceJudge(prefers=longer).judge([], [], None)


SCRIPT = """
import sys
from autojudge_base import auto_judge_to_click_command
from duelpool.adaptors.autojudge import PreferenceJudge
from duelpool.records import Outcome

def longer(topic, left, right):
    return Outcome.LEFT if len(left.text) > len(right.text) else Outcome.RIGHT

auto_judge_to_click_command(PreferenceJudge(prefers=longer), "duelpool")()
"""


@pytest.mark.long
@pytest.mark.peer("autojudge_base")
def test_the_judge_runs_under_autojudges_own_command(tmp_path: Path) -> None:
    """With a tiny set of NLTK's data, which the package reads when it is imported."""
    for folder in ("corpora/stopwords", "tokenizers/punkt"):
        (tmp_path / "nltk" / folder).mkdir(parents=True)
    (tmp_path / "nltk" / "corpora" / "stopwords" / "english").write_text("the\na\n")
    runs = tmp_path / "runs"
    runs.mkdir()
    for run, text in ANSWERS.items():
        reports = [
            {
                "metadata": {"team_id": "x", "run_id": run, "topic_id": topic},
                "responses": [{"text": text, "citations": []}],
            }
            for topic in ("t1", "t2")
        ]
        (runs / run).write_text("".join(json.dumps(report) + "\n" for report in reports))
    topics = [{"request_id": topic, "title": "Why?"} for topic in ("t1", "t2")]
    (tmp_path / "topics.jsonl").write_text("".join(json.dumps(topic) + "\n" for topic in topics))
    (tmp_path / "own.py").write_text(SCRIPT)
    words = [
        "judge",
        "--rag-responses",
        "runs",
        "--rag-topics",
        "topics.jsonl",
        "--leaderboard-file",
        "board.txt",
    ]
    done = subprocess.run(
        [sys.executable, "own.py", *words],
        cwd=tmp_path, env={"NLTK_DATA": str(tmp_path / "nltk"), "PATH": "", "HOME": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for path in tmp_path.glob("board*") for line in path.read_text().splitlines()]
    means = {row[0]: float(row[-1]) for row in rows if "all" in row and "WIN_SHARE" in row}
    assert means == {"long": 1.0, "middle": 0.5, "short": 0.0}


def test_a_model_prefers_answers_and_its_errors_are_named() -> None:
    one, two = Passage("a", "One."), Passage("b", "Two.")
    with serving(Provider()) as server:
        allowed = {"allow_hosts": ["localhost"]}
        config = SimpleNamespace(model="m", base_url=f"{server.address}/v1", api_key="k", raw=allowed)
        prefers = by_model(config)
        assert (prefers(TOPIC, one, two), prefers(TOPIC, two, one)) == (Outcome.LEFT, Outcome.RIGHT)
    with pytest.raises(AutoJudgeError):
        prefers(TOPIC, one, two)  # the server is gone
