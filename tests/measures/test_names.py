"""The names of measures: their text forms parse back, trec_eval's too; wrong ones are explained."""

import ast
import builtins
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelpool.errors import BadParameter, MissingExtra, UnknownName
from duelpool.files import Preferences, Qrels, Run
from duelpool.measures import (
    ALIASES,
    AP,
    DCG,
    MEASURES,
    PGC,
    RBO,
    RBP,
    RR,
    BestRR,
    Bpref,
    Compat,
    External,
    Judged,
    P,
    R,
    Success,
    Truth,
    nDCG,
    parse_measure,
    ppref,
    wpref,
)
from duelpool.measures.grammar import name_and_parameters
from duelpool.records import Judgment, Outcome
from duelpool.testing import measure_contract


def test_every_measure_orders_a_run_in_the_same_way() -> None:
    assert {(str(measure.ties), measure.scores) for measure in map(parse_measure, MEASURES)} == {
        ("docno-descending", "single")
    }
    run = Run.from_rankings("r", {"1": [("a", 1.0), ("c", 1.0), ("b", 1.0 + 1e-9)]})
    reference = Run.from_rankings("s", {"1": [("c", 3.0), ("b", 2.0), ("a", 1.0)]})
    assert run.ranked().get_column("docno").to_list() == ["c", "b", "a"]
    assert run.top(1).get_column("docno").to_list() == ["c"]
    votes = Preferences.from_judgments(
        Judgment("1", better, worse, Outcome.LEFT) for better, worse in ("cb", "ca", "ba")
    )
    truth = Truth.of([Qrels.from_grades({"1": {"c": 3, "b": 2, "a": 1}}), votes, reference])
    for name in MEASURES:
        measure = parse_measure(name)
        assert measure.calc(truth, run) == measure.calc(truth, reference), name


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_keeps_the_contract(name: str) -> None:
    measure_contract(name)


@given(st.floats(0.01, 0.99), st.booleans(), st.integers(1, 2000))
def test_text_forms_parse_back(p: float, normalize: bool, depth: int) -> None:
    for measure in (Compat(p, normalize, depth), nDCG(depth, gain="exponential", log="e"), RBP(depth, p=p)):
        assert parse_measure(str(measure)) == measure


def test_text_forms_show_what_differs_from_the_defaults() -> None:
    assert str(Compat(p=0.8)) == "Compat(p=0.8)"
    assert str(nDCG(10)) == str(nDCG() @ 10) == "nDCG@10"
    assert str(P(5, rel=2, missing="zero")) == "P(missing='zero', rel=2)@5"
    assert parse_measure("Compat(p=0.8)") == Compat(p=0.8)


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("ndcg_cut_10", nDCG(10)), ("ndcg_cut.10", nDCG(10)), ("ndcg", nDCG()), ("NDCG@5", nDCG(5)),
        ("map", AP()), ("map_cut_100", AP(100)), ("recip_rank", RR()), ("MRR@10", RR(10)), ("P_10", P(10)),
        ("recall_100", R(100)), ("R@5", R(5)), ("bpref", Bpref()), ("success_5", Success(5)),
        ("compat(p=0.9)", Compat(p=0.9)), ("nDCG(dcg='exp-log2')@3", nDCG(3, gain="exponential")),
        ("DCG(log=2)@3", DCG(3)), ("DCG(log=e)@3", DCG(3, log="e")), ("wpref(weight=upper)", wpref("upper")),
        ("nDCG(judged_only=True)@5", nDCG(5, unjudged="remove")), (" RBO(p=0.5) ", RBO(0.5)),
        ("PGC(p=0.7)", PGC(0.7)), ("Judged@10", Judged(10)), ("BestRR@10", BestRR(10)), ("ppref", ppref()),
    ],
)  # fmt: skip
def test_other_spellings_are_understood(text: str, measure: object) -> None:
    assert parse_measure(text) == measure


def test_aliases_name_measures_that_exist() -> None:
    assert set(ALIASES.values()) <= set(MEASURES)


def test_an_unknown_name_is_explained() -> None:
    with pytest.raises(
        UnknownName, match=r"no measure called 'compact'. Did you mean 'Compat'\? Known: AP, "
    ):
        parse_measure("compact")


@pytest.mark.parametrize("text", ["", "nDCG@", "nDCG(10)", "3", "nDCG@10@5)", "P(**x)", "P(rel=f(x))", "a b"])
def test_texts_that_are_no_measure_are_explained(text: str) -> None:
    with pytest.raises(BadParameter, match="doesn't read as a measure"):
        parse_measure(text)


def test_a_cutoff_or_parameter_that_a_measure_lacks_is_explained() -> None:
    with pytest.raises(BadParameter, match=r"Compat has no cutoff \(in 'Compat@10'\)"):
        parse_measure("Compat@10")
    with pytest.raises(BadParameter, match=r"has no parameter 'q' \(in 'RBP\(q=1\)'\). Known: cutoff, .*p"):
        parse_measure("RBP(q=1)")
    with pytest.raises(BadParameter, match="PGC has no cutoff"):
        PGC() @ 5


@pytest.mark.peer("ir_measures")
def test_other_measures_go_to_ir_measures() -> None:
    measure = parse_measure("Rprec(rel=2)")
    assert isinstance(measure, External)
    assert str(measure) == "Rprec(rel=2)"
    assert measure.rules["computed by"] == "ir_measures"
    qrels = Qrels.from_grades({"1": {"a": 2, "b": 2, "c": 1}, "2": {"a": 2}})
    run = Run.from_rankings("r", {"1": [("a", 2.0), ("c", 1.0)]})
    assert measure.calc(qrels, run) == {"1": 0.5}
    assert External("Rprec", missing="zero").calc(qrels, run) == {"1": pytest.approx(2 / 3), "2": 0.0}


def test_without_ir_measures_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "ir_measures":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UnknownName, match=r"pip install 'duelpool\[ir\]'"):
        parse_measure("Rprec")
    with pytest.raises(MissingExtra, match=r"duelpool\[ir\]"):
        External("Rprec").calc(
            Qrels.from_grades({"1": {"a": 1}}), Run.from_rankings("r", {"1": [("a", 1.0)]})
        )


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_every_measure_has_a_name_in_plain_words(name: str) -> None:
    assert MEASURES[name].title


def test_a_name_is_read_again_where_python_confuses_two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []
    parse = ast.parse

    def at_first_confused(text: str, mode: str) -> ast.AST:
        tries.append(text)
        if len(tries) < 3:
            raise SystemError("AST constructor recursion depth mismatch")
        return parse(text, mode=mode)

    monkeypatch.setattr("duelpool.measures.grammar.ast.parse", at_first_confused)
    assert name_and_parameters("nDCG(cutoffs=977)@10") == ("nDCG", {"cutoffs": 977, "cutoff": 10})
    assert len(tries) == 3
