"""Duelpool against the field's other tools: their recorded answers everywhere, themselves where they are installed."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from peers.installed import PACKAGES, PEERS, PROGRAM, version
from peers.ours import OURS
from peers.questions import DECIMALS, PRECISE
from peers.recording import FOLDER, differences, hashes, read, written
from peers.theirs import THEIRS

ROOT = Path(__file__).parent.parent.parent


def test_every_peer_is_installed_asked_and_recorded() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.split("[<>=]", each)[0] for each in listed["optional-dependencies"]["peers"]]
    assert {name.replace("-", "_") for name in names} == {
        name.replace("-", "_") for name in PACKAGES.values()
    }
    assert set(DECIMALS) == set(OURS) == set(THEIRS) == set(PEERS)
    assert {path.stem for path in FOLDER.iterdir()} == set(PEERS)


@pytest.mark.parametrize("peer", PEERS)
def test_our_answers_equal_the_recorded_ones(peer: str) -> None:
    recorded = read(peer)
    assert recorded.answers
    assert differences(OURS[peer](), recorded.answers, recorded.decimals) == []


@pytest.mark.parametrize("peer", [pytest.param(peer, marks=pytest.mark.peer(peer)) for peer in PEERS])
def test_live_answers_equal_the_recorded_ones(peer: str, tmp_path: Path) -> None:
    recorded = read(peer)
    answers, wanted = THEIRS[peer](tmp_path), dict(recorded.answers)
    if peer == PROGRAM and version(peer, tmp_path).startswith("9"):  # it compares scores in single precision
        for name in [name for name in wanted if name.startswith(PRECISE)]:
            del answers[name], wanted[name]
    assert differences(answers, wanted, recorded.decimals) == []


@pytest.mark.parametrize("peer", PEERS)
def test_altered_recording_is_detected(peer: str) -> None:
    recorded, ours = read(peer), OURS[peer]()
    for name, number in recorded.answers.items():
        for at, digit in enumerate(number):
            for other in {str((int(digit) + step) % 10) for step in (1, 9)} if digit.isdigit() else ():
                altered = {name: number[:at] + other + number[at + 1 :]}
                assert differences({name: ours[name]}, altered, recorded.decimals), (number, altered)


@pytest.mark.parametrize("peer", PEERS)
def test_recording_names_its_tool_and_inputs(peer: str) -> None:
    recorded = read(peer)
    assert (recorded.peer, recorded.decimals) == (peer, DECIMALS[peer])
    assert recorded.command == f"python tests/peers/record.py {peer}"
    assert recorded.inputs == hashes(peer)
    pinned = dict(
        re.findall(r"^(\S+)==(\S+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    )
    if peer == PROGRAM:
        assert recorded.version
    else:
        assert recorded.version == pinned[PACKAGES[peer]]


def test_a_recording_reads_back_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = replace(read("choix"), answers=written({"b": 0.5, "a": -1 / 3}, 4))
    monkeypatch.setattr("peers.recording.FOLDER", tmp_path)
    assert recorded.write() == tmp_path / "choix.json"
    assert read("choix") == recorded
    assert recorded.answers == {"a": "-0.3333", "b": "0.5000"}


def test_an_answer_that_one_side_lacks_is_a_difference() -> None:
    assert differences({"a": 1.0}, {"b": "1.0"}, 1) == [
        "a: in one of the two only",
        "b: in one of the two only",
    ]
    assert differences({"a": float("nan")}, {"a": "1.0"}, 1) == ["a: nan, recorded 1.0"]
