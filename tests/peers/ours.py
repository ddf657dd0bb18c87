"""Our answers to what the peers are asked, from the same files."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import fmean
from types import MappingProxyType

import numpy as np
import polars as pl

from duelpool.agreements import cohen_kappa, fleiss_kappa, krippendorff_alpha
from duelpool.agreements.shares import Counts, count_votes
from duelpool.files import Preferences, read_qrels, read_run
from duelpool.measures import Measure, Truth, parse_measure
from duelpool.preferences import WinMatrix, bradley_terry
from duelpool.records import Judgment, Outcome
from peers.questions import (
    CORNERS,
    DISTANCES,
    FOLDER,
    GRADED,
    GRADES,
    IR_MEASURES,
    PRECISE,
    TREC_MEASURES,
    TREC_OPTIONS,
    Answers,
    asked,
    named,
    pairs_of_grades,
    ratings,
    votes,
)


def scores(measure: Measure, name: str) -> dict[str, float]:
    """Return our value of each topic that both the run and the grades have."""
    return measure.calc(read_qrels(FOLDER / f"{name}.qrels"), read_run(FOLDER / f"{name}.run"))


def our_trec_eval() -> Answers:
    """Score as trec_eval -c does: the mean is over all topics of the qrels; topics by topics that were ranked."""
    answers: Answers = {}
    for name in GRADED + PRECISE:
        for text in asked(name, TREC_MEASURES):
            measure = parse_measure(text)
            if name in PRECISE:
                measure = replace(
                    measure, scores="double"
                )  # as the recorded version, the 10th, compares them
            answers |= {f"{name} {text} {topic}": value for topic, value in scores(measure, name).items()}
            answers[f"{name} {text} all"] = fmean(scores(replace(measure, missing="zero"), name).values())
    for option, texts in TREC_OPTIONS.items():
        for text in texts:
            measure = as_asked(parse_measure(text), option)
            answers |= {
                named(option, text, topic): value for topic, value in scores(measure, CORNERS).items()
            }
            complete = scores(replace(measure, missing="zero"), CORNERS)
            answers[named(option, text, "all")] = fmean(complete.values())
    ppref = parse_measure("ppref(ties='docno-ascending')")  # its graded measures order them the other way
    values = ppref.calc(Truth.of(preferences()), read_run(FOLDER / "long.run"))
    return answers | {f"long prefs_simp_imp {topic}": value for topic, value in values.items()}


def as_asked(measure: Measure, option: str) -> Measure:
    """Return a measure under the rule that is trec_eval's option."""
    flag, _, number = option.partition(" ")
    if flag == "-J":
        return replace(measure, unjudged="remove")
    parameter = {"-l": "rel", "-M": "cutoff"}.get(flag)
    changed = {parameter: int(number)} if parameter in measure.parameters() else {}
    return replace(measure, **changed)  # type: ignore[arg-type]


def preferences() -> Preferences:
    """Return those preferences as we read them."""
    return Preferences.from_judgments(
        Judgment(topic, better, worse, Outcome.LEFT) for topic, better, worse in pairs_of_grades()
    )


def our_pytrec_eval() -> Answers:
    """Score topics that the run has and the qrels have."""
    return {
        f"{name} {text} {topic}": value
        for name in GRADED + PRECISE
        for text in asked(name, TREC_MEASURES)
        for topic, value in scores(parse_measure(text), name).items()
    }


def our_ir_measures() -> Answers:
    """Score by the same names. Its Judged takes equal scores by docno ascending, the others descending."""
    answers: Answers = {}
    for name in GRADED + PRECISE:
        for text in asked(name, IR_MEASURES):
            measure = parse_measure(text)
            if measure.name == "Judged":
                measure = replace(measure, ties="docno-ascending")
            answers |= {f"{name} {text} {topic}": value for topic, value in scores(measure, name).items()}
    return answers


def strengths(name: str) -> Answers:
    """Return our Bradley-Terry strengths, which add up to 0."""
    outcomes = [
        Judgment("t", a, b, Outcome.TIE if won == "=" else Outcome.LEFT if won == a else Outcome.RIGHT)
        for a, b, won in votes(name)
    ]
    fit = bradley_terry(WinMatrix.from_judgments(outcomes), prior=0)
    return {f"{name} {item}": float(value) for item, value in zip(fit.items, fit.values, strict=True)}


def counted(name: str) -> Counts:
    """Count the grades of each unit as we do."""
    rows = [
        ("t", unit, grade)
        for unit, given in enumerate(ratings(name))
        for grade in given
        if not math.isnan(grade)
    ]
    frame = pl.DataFrame(rows, schema=["topic", "unit", "value"], orient="row")
    return count_votes(frame, GRADES, [str(grade) for grade in GRADES])


def our_krippendorff() -> Answers:
    """Return our alphas."""
    return {
        f"ratings.txt {distance}": known(
            krippendorff_alpha(counted("ratings.txt"), distance, resamples=10).value
        )
        for distance in DISTANCES
    }


def two_people() -> np.ndarray:
    """Count how often the first person gave the row and the second the column."""
    table = np.zeros((len(GRADES), len(GRADES)))
    for first, second, *_ in ratings("ratings-complete.txt"):
        table[int(first), int(second)] += 1
    return table


def our_statsmodels() -> Answers:
    """Return our kappas."""
    return {
        "ratings-complete.txt fleiss": known(fleiss_kappa(counted("ratings-complete.txt"))),
        "ratings-complete.txt cohen": known(cohen_kappa(two_people())),
    }


def known(value: float | None) -> float:
    """Return a value that must be there."""
    if value is None:
        message = "The statistic has no value on this input."
        raise ValueError(message)
    return value


OURS: Mapping[str, Callable[[], Answers]] = MappingProxyType(
    {
        "trec_eval": our_trec_eval,
        "pytrec_eval": our_pytrec_eval,
        "ir_measures": our_ir_measures,
        "choix": lambda: strengths("votes.txt"),
        "evalica": lambda: strengths("votes.txt") | strengths("votes-with-ties.txt"),
        "krippendorff": our_krippendorff,
        "statsmodels": our_statsmodels,
    }
)
"""How we answer what each peer is asked."""
