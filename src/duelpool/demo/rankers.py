"""Small, real rankers over the demo collection, and worse ones made of them.

A ranker gets the index of all passages, a topic and a seed, and returns a score per passage. It never sees
utilities or grades. One more ranker is one function and one row of `RANKERS`.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from duelpool.arrays import Floats
from duelpool.demo.collection import Collection
from duelpool.errors import BadParameter, UnknownName
from duelpool.records import Passage, Topic
from duelpool.seeds import rng_for

Query: TypeAlias = Mapping[str, float]
"""Terms with their weights."""


def terms_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without plural endings."""
    return [_singular(word) for word in re.findall(r"[a-z0-9]+", text.lower().replace("'", ""))]


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


STOP_WORDS = frozenset(
    terms_of(
        "a about after all alone also an and any are as at be because been before but by can did do"
        " does for from get had has have how i if in into is it its me more most my no not of off on"
        " one or our out over so some such than that the their them then there these they this those"
        " to too up usually was we well were what when where which while who why will with would you"
        " your"
    )
)
"""Words that are common to all questions."""


@dataclass(frozen=True, slots=True)
class Index:
    """The passages as counts: one row a passage, one column a term."""

    ids: tuple[str, ...]
    columns: Mapping[str, int]
    counts: Floats
    lengths: Floats  # terms per passage
    holders: Floats  # passages that hold each term

    @classmethod
    def of(cls, passages: Iterable[Passage]) -> "Index":
        """Count the terms of these passages."""
        bags = {passage.id: Counter(terms_of(passage.text)) for passage in passages}
        vocabulary = sorted(set().union(*bags.values()))
        columns = {term: at for at, term in enumerate(vocabulary)}
        counts = np.zeros((len(bags), len(columns)))
        for row, bag in enumerate(bags.values()):
            for term, count in bag.items():
                counts[row, columns[term]] = count
        return cls(tuple(bags), columns, counts, counts.sum(axis=1), (counts > 0).sum(axis=0).astype(float))

    def vector(self, query: Query) -> Floats:
        """Return the query's weights as a row of the index; terms that no passage holds are left out."""
        row = np.zeros(len(self.columns))
        for term, weight in query.items():
            if term in self.columns:
                row[self.columns[term]] += weight
        return row


Ranker: TypeAlias = Callable[[Index, Topic, int], Floats]


def query_of(topic: Topic, *, description: bool = False) -> Query:
    """Return the question's terms with the earlier turns of its conversation and, on request, its description."""
    texts = (*topic.conversation, topic.text, *((topic.description,) if description else ()))
    return Counter(term for text in texts for term in terms_of(text) if term not in STOP_WORDS)


def bm25_scores(index: Index, query: Query, k1: float = 1.2, b: float = 0.75) -> Floats:
    """Score passages by BM25: rare terms count most, repeated ones ever less, long passages less."""
    weights = index.vector(query)
    columns = np.flatnonzero(weights)
    counts, holders = index.counts[:, columns], index.holders[columns]
    idf = np.log1p((len(index.ids) - holders + 0.5) / (holders + 0.5))
    damping = k1 * (1 - b + b * index.lengths / index.lengths.mean())
    return np.asarray(counts * (k1 + 1) / (counts + damping[:, None]) @ (idf * weights[columns]))


def bm25(index: Index, topic: Topic, seed: int) -> Floats:
    """Score by BM25 of the question."""
    return bm25_scores(index, query_of(topic))


def bm25_description(index: Index, topic: Topic, seed: int) -> Floats:
    """Score by BM25 of the question and its description, which says what a good answer holds."""
    return bm25_scores(index, query_of(topic, description=True))


def bm25_feedback(index: Index, topic: Topic, seed: int, top: int = 5, terms: int = 20) -> Floats:
    """Score by BM25 of the question mixed half and half with the characteristic terms of its own first results."""
    query = index.vector(query_of(topic))
    first = bm25(index, topic, seed)
    best = np.argsort(-first.round(9), kind="stable")[:top]  # rounded: ties stay ties everywhere
    idf = np.log(len(index.ids) / index.holders)
    weights = first[best] @ (index.counts[best] / index.lengths[best, None]) * idf
    weights[np.argsort(-weights.round(9), kind="stable")[terms:]] = 0.0
    mixed = _shares(query) + _shares(weights)
    return bm25_scores(index, {term: float(mixed[at]) for term, at in index.columns.items() if mixed[at] > 0})


def _shares(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum()) if weights.any() else weights


def tfidf(index: Index, topic: Topic, seed: int) -> Floats:
    """Score by the cosine between the logarithmic TF-IDF vectors of question and passage."""
    idf = np.log(len(index.ids) / index.holders)
    passages = _unit(np.log1p(index.counts) * idf)
    return np.asarray(passages @ _unit(np.log1p(index.vector(query_of(topic))) * idf))


def _unit(vectors: Floats) -> Floats:
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1.0))


def query_likelihood(index: Index, topic: Topic, seed: int, mu: float = 100.0) -> Floats:
    """Score by the log-likelihood of the question in each passage's model with Dirichlet smoothing."""
    weights = index.vector(query_of(topic))
    columns = np.flatnonzero(weights)
    everywhere = index.counts[:, columns].sum(axis=0) / index.lengths.sum()
    models = (index.counts[:, columns] + mu * everywhere) / (index.lengths[:, None] + mu)
    return np.asarray(np.log(models) @ weights[columns])


def overlap(index: Index, topic: Topic, seed: int) -> Floats:
    """Score by how many of the question's different words are in the passage, "the" and "why" included."""
    terms = index.vector(dict.fromkeys(terms_of(topic.text), 1.0))
    return np.asarray((index.counts > 0) @ terms)


def bm25_one_word(index: Index, topic: Topic, seed: int) -> Floats:
    """Score by BM25 of a single word of the question, its rarest one."""
    known = [term for term in query_of(topic) if term in index.columns]
    rarest = min(known, key=lambda term: (index.holders[index.columns[term]], term), default="")
    return bm25_scores(index, {rarest: 1.0})


def bm25_first_word(index: Index, topic: Topic, seed: int) -> Floats:
    """Score by BM25 of the question's first word, mostly "why" or "how"."""
    return bm25_scores(index, dict.fromkeys(terms_of(topic.text)[:1], 1.0))


def bm25_shuffled(index: Index, topic: Topic, seed: int, top: int = 20) -> Floats:
    """Score by BM25, with its first passages in random order."""
    scores = bm25(index, topic, seed)
    best = np.argsort(-scores.round(9), kind="stable")[:top]
    scores[best] = rng_for(seed, "demo shuffle", topic.id).permutation(scores[best])
    return scores


def random_order(index: Index, topic: Topic, seed: int) -> Floats:
    """Score at random."""
    return rng_for(seed, "demo random order", topic.id).random(len(index.ids))


RANKERS: Mapping[str, Ranker] = MappingProxyType(
    {
        "bm25-description": bm25_description,
        "bm25-feedback": bm25_feedback,
        "bm25": bm25,
        "query-likelihood": query_likelihood,
        "tfidf": tfidf,
        "overlap": overlap,
        "bm25-one-word": bm25_one_word,
        "bm25-shuffled": bm25_shuffled,
        "bm25-first-word": bm25_first_word,
        "random": random_order,
    }
)


def rank_all(
    collection: Collection, ranker_name: str, seed: int, depth: int = 50
) -> dict[str, list[tuple[str, float]]]:
    """Rank all passages of the collection for each topic: a run, as docno and score, the best first.

    Equal scores are in descending order of docno, as trec_eval reads them, and scores have six decimals, so
    that a written run reads back in the same order.
    """
    if ranker_name not in RANKERS:
        raise UnknownName("ranker", ranker_name, RANKERS)
    if depth < 1:
        raise BadParameter(f"The depth of a run is {depth}.", remedy="Give a whole number from 1 on.")
    index = Index.of(collection.passages.values())
    ranker = RANKERS[ranker_name]
    return {topic.id: _sorted(index.ids, ranker(index, topic, seed))[:depth] for topic in collection.topics}


def _sorted(ids: Sequence[str], scores: Floats) -> list[tuple[str, float]]:
    # Adding 0.0 turns a rounded -0.0 into 0.0, which would be written differently.
    rounded = [(docno, round(float(score), 6) + 0.0) for docno, score in zip(ids, scores, strict=True)]
    return sorted(rounded, key=lambda entry: (entry[1], entry[0]), reverse=True)
