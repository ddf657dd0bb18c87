"""The peers' answers. Nothing of Duelpool is needed here, so that a recording can be made wherever a peer runs."""

import math
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import fmean
from types import MappingProxyType

import numpy as np

from peers.installed import load, trec_eval
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


def their_trec_eval(folder: Path) -> Answers:
    """Ask the program itself, for its four decimals."""
    answers: Answers = {}
    for name in GRADED + PRECISE:
        flags = [flag for text in with_cutoffs(asked(name, TREC_MEASURES)) for flag in ("-m", text)]
        printed = run_trec_eval(folder, *flags, str(FOLDER / f"{name}.qrels"), str(FOLDER / f"{name}.run"))
        answers |= {f"{name} {measure} {topic}": value for measure, topic, value in printed}
    for option, texts in TREC_OPTIONS.items():
        flags = [flag for text in with_cutoffs(list(texts)) for flag in ("-m", text)]
        files = str(FOLDER / f"{CORNERS}.qrels"), str(FOLDER / f"{CORNERS}.run")
        printed = run_trec_eval(folder, *option.split(), *flags, *files)
        answers |= {named(option, measure, topic): value for measure, topic, value in printed}
    pairs = folder / "pairs.prefs"
    pairs.write_text("".join(f"{row}\n" for row in pair_groups()), encoding="utf-8")
    printed = run_trec_eval(
        folder, "-R", "prefs", "-m", "prefs_simp_imp", str(pairs), str(FOLDER / "long.run")
    )
    return answers | {f"long {measure} {topic}": value for measure, topic, value in printed if topic != "all"}


def with_cutoffs(texts: list[str]) -> list[str]:
    """Write measures as they are asked: P_5 and P_10 as P.5,10, since a later cutoff would replace an earlier one."""
    cutoffs: dict[str, list[str]] = {}
    for text in texts:
        measure, _, cutoff = text.rpartition("_")
        cutoffs.setdefault(measure if cutoff.isdigit() else text, []).extend([cutoff] * cutoff.isdigit())
    return [f"{measure}.{','.join(given)}" if given else measure for measure, given in cutoffs.items()]


def run_trec_eval(folder: Path, *words: str) -> Iterator[tuple[str, str, float]]:
    """Run trec_eval by topic, and read what it prints: measure, topic, value."""
    command = [trec_eval(folder), "-q", "-c", *words]
    printed = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout
    for line in printed.splitlines():
        measure, topic, value = line.split()
        yield measure, topic, float(value)


def pair_groups() -> Iterator[str]:
    """Return those preferences as trec_eval reads them, each pair a judgment group of its own."""
    for number, (topic, better, worse) in enumerate(pairs_of_grades()):
        yield f"{topic} {number} 0 {better} 1"
        yield f"{topic} {number} 0 {worse} 0"


def their_pytrec_eval(_: Path) -> Answers:
    """Ask pytrec_eval, which has trec_eval's measures in full precision."""
    peer = load("pytrec_eval")
    answers: Answers = {}
    for name in GRADED + PRECISE:
        with (FOLDER / f"{name}.qrels").open(encoding="utf-8") as grades:
            qrels = peer.parse_qrel(grades)
        with (FOLDER / f"{name}.run").open(encoding="utf-8") as rows:
            run = peer.parse_run(rows)
        texts = asked(name, TREC_MEASURES)
        evaluator = peer.RelevanceEvaluator(qrels, set(with_cutoffs(texts)))
        for topic, values in evaluator.evaluate(run).items():
            answers |= {f"{name} {text} {topic}": values[text] for text in texts}
    return answers


def their_ir_measures(_: Path) -> Answers:
    """Ask ir_measures; of the topics that the run lacks, which some of its providers give a 0, nothing is kept."""
    peer = load("ir_measures")
    answers: Answers = {}
    for name in GRADED + PRECISE:
        texts = asked(name, IR_MEASURES)
        measures = {peer.parse_measure(text): text for text in texts}
        qrels = list(peer.read_trec_qrels(str(FOLDER / f"{name}.qrels")))
        run = list(peer.read_trec_run(str(FOLDER / f"{name}.run")))
        ranked = {row.query_id for row in run}
        for each in peer.iter_calc(list(measures), qrels, run):
            if each.query_id in ranked:
                answers[f"{name} {measures[each.measure]} {each.query_id}"] = each.value
    return answers


def centred(name: str, values: Mapping[str, float]) -> Answers:
    """Name strengths, shifted so that they add up to 0."""
    middle = fmean(values.values())
    return {f"{name} {item}": float(value) - middle for item, value in values.items()}


def their_choix(_: Path) -> Answers:
    """Ask choix, which takes wins only."""
    items = sorted({item for row in votes("votes.txt") for item in row})
    won = [(items.index(winner), items.index(b if winner == a else a)) for a, b, winner in votes("votes.txt")]
    fitted = load("choix").ilsr_pairwise(len(items), won, tol=1e-12, max_iter=1000)
    return centred("votes.txt", dict(zip(items, fitted, strict=True)))


def their_evalica(_: Path) -> Answers:
    """Ask evalica, to which a tie is half a win for each."""
    peer = load("evalica")
    answers: Answers = {}
    for name in ("votes.txt", "votes-with-ties.txt"):
        rows = votes(name)
        winners = [
            peer.Winner.Draw if won == "=" else peer.Winner.X if won == a else peer.Winner.Y
            for a, _, won in rows
        ]
        fitted = peer.bradley_terry(
            [row[0] for row in rows], [row[1] for row in rows], winners, tolerance=1e-13, limit=100_000
        )
        answers |= centred(name, {item: math.log(score) for item, score in fitted.scores.items()})
    return answers


def their_krippendorff(_: Path) -> Answers:
    """Ask the package that is named for alpha."""
    people = np.array(ratings("ratings.txt")).T
    return {
        f"ratings.txt {distance}": float(load("krippendorff").alpha(people, level_of_measurement=distance))
        for distance in DISTANCES
    }


def their_statsmodels(_: Path) -> Answers:
    """Ask statsmodels for its kappas."""
    peer = load("statsmodels.stats.inter_rater")
    units = np.array(ratings("ratings-complete.txt"), dtype=int)
    counts = np.array([np.bincount(unit, minlength=len(GRADES)) for unit in units])
    table = np.zeros((len(GRADES), len(GRADES)))
    np.add.at(table, (units[:, 0], units[:, 1]), 1)
    return {
        "ratings-complete.txt fleiss": float(peer.fleiss_kappa(counts)),
        "ratings-complete.txt cohen": float(peer.cohens_kappa(table).kappa),
    }


THEIRS: Mapping[str, Callable[[Path], Answers]] = MappingProxyType(
    {
        "trec_eval": their_trec_eval,
        "pytrec_eval": their_pytrec_eval,
        "ir_measures": their_ir_measures,
        "choix": their_choix,
        "evalica": their_evalica,
        "krippendorff": their_krippendorff,
        "statsmodels": their_statsmodels,
    }
)
"""How each peer is asked; the folder is one to build or write in."""
