"""The demo collection and its rankers: sizes, duplicates, grades, and rankers that equal their definitions."""

import math
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest

from duelpool.demo import RANKERS, Collection, grades, load_collection, rank_all
from duelpool.demo.collection import GRADE_FLOORS
from duelpool.demo.rankers import STOP_WORDS, terms_of
from duelpool.errors import BadParameter, UnknownName
from duelpool.records import Topic

Run = dict[str, list[tuple[str, float]]]


@pytest.fixture(scope="module")
def collection() -> Collection:
    return load_collection()


@pytest.fixture(scope="module")
def runs(collection: Collection) -> dict[str, Run]:
    return {name: rank_all(collection, name, seed=1) for name in RANKERS}


def same_text(collection: Collection, *, folded: bool) -> list[list[str]]:
    """The groups of two or more passages of one text, exactly or but for whitespace and case."""
    groups = defaultdict(list)
    for passage in collection.passages.values():
        groups[" ".join(passage.text.casefold().split()) if folded else passage.text].append(passage.id)
    return [ids for ids in groups.values() if len(ids) > 1]


def topic_of(collection: Collection) -> dict[str, str]:
    return {item: topic for topic, items in collection.utilities.items() for item in items}


# The collection


def test_collection_has_its_documented_size(collection: Collection) -> None:
    assert len(collection.topics) >= 12
    assert len(collection.passages) >= 260
    assert all(16 <= len(items) <= 24 for items in collection.utilities.values())
    assert len(collection.off_topic) >= 10


def test_passages_are_short_and_topics_complete(collection: Collection) -> None:
    for passage in collection.passages.values():
        assert 25 <= len(passage.text.split()) <= 80, passage
    for topic in collection.topics:
        assert topic.text.endswith("?")
        assert topic.description
        assert topic.tags
    assert any(topic.conversation for topic in collection.topics)
    assert any(topic.weight != 1 for topic in collection.topics)


def test_every_id_resolves_and_every_passage_has_one_topic(collection: Collection) -> None:
    assert list(collection.utilities) == [topic.id for topic in collection.topics]
    places = Counter(item for items in collection.utilities.values() for item in items)
    places.update(collection.off_topic)
    assert places == dict.fromkeys(collection.passages, 1)
    assert all(passage.id == item for item, passage in collection.passages.items())


def test_ids_reveal_neither_topic_nor_quality(collection: Collection) -> None:
    homes = topic_of(collection)
    neighbours = [homes.get(a) == homes.get(b) for a, b in pairwise(sorted(collection.passages))]
    assert sum(neighbours) / len(neighbours) < 2.5 / len(collection.topics)
    first_halves = [
        sum(sorted(items, key=items.__getitem__).index(item) for item in sorted(items)[: len(items) // 2])
        / (len(items) // 2 * (len(items) - 1))
        for items in collection.utilities.values()
    ]
    assert sum(first_halves) / len(first_halves) == pytest.approx(0.5, abs=0.08)


def test_topics_have_exact_duplicates(collection: Collection) -> None:
    homes = topic_of(collection)
    groups = same_text(collection, folded=False)
    assert len(groups) >= 5
    assert all(len({homes[item] for item in group}) == 1 for group in groups)
    assert len({homes[group[0]] for group in groups}) >= 4


def test_topics_have_near_duplicates(collection: Collection) -> None:
    exact = same_text(collection, folded=False)
    near = [group for group in same_text(collection, folded=True) if group not in exact]
    assert len(near) >= 2
    homes = topic_of(collection)
    assert all(len({homes[item] for item in group}) == 1 for group in near)


def test_passages_share_a_utility_exactly_if_they_are_duplicates(collection: Collection) -> None:
    twins = {item: group[0] for group in same_text(collection, folded=True) for item in group}
    for items in collection.utilities.values():
        texts_of = defaultdict(set)
        utility_of = defaultdict(set)
        for item, utility in items.items():
            assert 0 < utility <= 10
            texts_of[utility].add(twins.get(item, item))
            utility_of[twins.get(item, item)].add(utility)
        assert all(len(texts) == 1 for texts in texts_of.values())
        assert all(len(utilities) == 1 for utilities in utility_of.values())


def test_utilities_span_good_and_bad_in_every_topic(collection: Collection) -> None:
    for items in collection.utilities.values():
        assert max(items.values()) >= 9
        assert min(items.values()) < 0.5
        assert sum(utility >= GRADE_FLOORS[-1] for utility in items.values()) >= 3
        assert sum(utility < GRADE_FLOORS[0] for utility in items.values()) >= 5


def test_collection_is_read_only(collection: Collection) -> None:
    with pytest.raises(TypeError):
        collection.passages["d0000"] = None  # type: ignore[index]
    with pytest.raises(TypeError):
        collection.utilities["bread"]["d0000"] = 1.0  # type: ignore[index]


# Grades


def test_grades_without_noise_follow_the_thresholds(collection: Collection) -> None:
    graded = grades(collection, seed=0, noise=0.0)
    for topic, items in collection.utilities.items():
        for item, utility in items.items():
            assert graded[topic][item] == (utility >= 2.5) + (utility >= 5) + (utility >= 7.5)
        assert set(graded[topic]) == set(items) | set(collection.off_topic)
        assert all(graded[topic][item] == 0 for item in collection.off_topic)


def test_grades_are_fixed_by_the_seed_and_slightly_wrong(collection: Collection) -> None:
    graded = grades(collection, seed=3)
    assert graded == grades(load_collection(), seed=3)
    assert graded != grades(collection, seed=4)
    exact = grades(collection, seed=3, noise=0.0)
    errors = [graded[topic][item] - grade for topic, items in exact.items() for item, grade in items.items()]
    assert max(map(abs, errors)) <= 1
    assert 0.03 < sum(map(abs, errors)) / len(errors) < 0.2


def test_grades_leave_pools_to_thin(collection: Collection) -> None:
    for seed in range(5):
        for items in grades(collection, seed).values():
            assert set(items.values()) == {0, 1, 2, 3}
            assert 2 <= sum(grade == 3 for grade in items.values()) <= 8


def test_negative_noise_is_refused(collection: Collection) -> None:
    with pytest.raises(BadParameter, match="from 0 on"):
        grades(collection, seed=0, noise=-1.0)


# Rankers


def test_there_are_enough_rankers(runs: dict[str, Run]) -> None:
    assert len(runs) >= 8
    orders = {tuple(docno for ranking in run.values() for docno, _ in ranking) for run in runs.values()}
    assert len(orders) == len(runs)


@pytest.mark.parametrize("name", RANKERS)
def test_a_run_is_sorted_cut_and_the_same_each_time(
    name: str, collection: Collection, runs: dict[str, Run]
) -> None:
    run = runs[name]
    assert run == rank_all(load_collection(), name, seed=1)
    assert list(run) == [topic.id for topic in collection.topics]
    for ranking in run.values():
        assert len(ranking) == 50
        assert all(math.isfinite(score) for _, score in ranking)
        as_read = [(docno, float(f"{score:.6f}")) for docno, score in ranking]
        assert ranking == sorted(as_read, key=lambda entry: (entry[1], entry[0]), reverse=True)


@pytest.mark.parametrize("name", RANKERS)
def test_every_passage_is_ranked_and_depth_only_cuts(
    name: str, collection: Collection, runs: dict[str, Run]
) -> None:
    for topic, ranking in rank_all(collection, name, seed=1, depth=10_000).items():
        assert {docno for docno, _ in ranking} == set(collection.passages)
        assert ranking[:50] == runs[name][topic]


@pytest.mark.parametrize("name", RANKERS)
def test_no_ranker_sees_utilities(name: str, collection: Collection, runs: dict[str, Run]) -> None:
    blind = replace(collection, utilities={}, off_topic=())
    assert rank_all(blind, name, seed=1) == runs[name]


@pytest.mark.parametrize("name", RANKERS)
def test_only_random_rankers_depend_on_the_seed(
    name: str, collection: Collection, runs: dict[str, Run]
) -> None:
    hears = rank_all(collection, name, seed=2) != runs[name]
    assert hears == (name in {"bm25-shuffled", "random"})


@pytest.mark.parametrize("name", RANKERS)
def test_a_question_of_unknown_words_is_ranked_too(name: str, collection: Collection) -> None:
    strange = replace(collection, topics=(Topic("x", "Xyzzy plugh?"),))
    assert len(rank_all(strange, name, seed=1)["x"]) == 50


def test_shuffling_moves_the_top_and_nothing_below_it(runs: dict[str, Run]) -> None:
    for topic, ranking in runs["bm25"].items():
        shuffled = dict(runs["bm25-shuffled"][topic])
        assert list(shuffled.values()) == [score for _, score in ranking]
        last_of_the_top = ranking[19][1]
        assert all(shuffled[docno] == score for docno, score in ranking if 0 < score < last_of_the_top)
        assert sum(shuffled.get(docno) != score for docno, score in ranking[:20]) >= 8


def question_terms(topic: Topic) -> list[str]:
    text = " ".join((*topic.conversation, topic.text))
    return [term for term in terms_of(text) if term not in STOP_WORDS]


def test_terms_are_split_and_made_singular() -> None:
    assert terms_of("The Bees' honey: it's 4 berries, glass bus!") == (
        ["the", "bee", "honey", "its", "4", "berry", "glass", "bus"]
    )


def test_bm25_equals_its_definition(collection: Collection, runs: dict[str, Run]) -> None:
    bags = {item: Counter(terms_of(passage.text)) for item, passage in collection.passages.items()}
    average = sum(bag.total() for bag in bags.values()) / len(bags)
    for topic in collection.topics:
        for docno, score in runs["bm25"][topic.id]:
            expected = 0.0
            for term in question_terms(topic):
                holders = sum(term in bag for bag in bags.values())
                idf = math.log(1 + (len(bags) - holders + 0.5) / (holders + 0.5))
                count = bags[docno][term]
                held_back = 1.2 * (1 - 0.75 + 0.75 * bags[docno].total() / average)
                expected += idf * count * 2.2 / (count + held_back)
            assert score == pytest.approx(expected, abs=1e-6)


def test_feedback_adds_terms_of_the_first_five(collection: Collection, runs: dict[str, Run]) -> None:
    bags = {item: Counter(terms_of(passage.text)) for item, passage in collection.passages.items()}
    holders = Counter(term for bag in bags.values() for term in bag)
    average = sum(bag.total() for bag in bags.values()) / len(bags)

    def bm25(item: str, query: dict[str, float]) -> float:
        damping = 1.2 * (0.25 + 0.75 * bags[item].total() / average)
        return sum(
            weight
            * math.log(1 + (len(bags) - holders[term] + 0.5) / (holders[term] + 0.5))
            * (2.2 * bags[item][term] / (bags[item][term] + damping))
            for term, weight in query.items()
        )

    for topic in collection.topics:
        question = Counter(term for term in question_terms(topic) if term in holders)
        first = {item: bm25(item, dict(question)) for item in bags}
        characteristic: defaultdict[str, float] = defaultdict(float)
        for item in sorted(first, key=lambda item: -first[item])[:5]:
            for term, count in bags[item].items():
                share = first[item] * count / bags[item].total() * math.log(len(bags) / holders[term])
                characteristic[term] += share
        kept = dict(sorted(characteristic.items(), key=lambda entry: (-round(entry[1], 9), entry[0]))[:20])
        mixed = {
            term: question[term] / question.total() + kept.get(term, 0.0) / sum(kept.values())
            for term in {*question, *kept}
        }
        for docno, score in runs["bm25-feedback"][topic.id]:
            assert score == pytest.approx(bm25(docno, mixed), abs=1e-5)


def test_query_likelihood_equals_its_definition(collection: Collection, runs: dict[str, Run]) -> None:
    bags = {item: Counter(terms_of(passage.text)) for item, passage in collection.passages.items()}
    everywhere: Counter[str] = sum(bags.values(), Counter())
    for topic in collection.topics:
        for docno, score in runs["query-likelihood"][topic.id]:
            bag = bags[docno]
            expected = sum(
                math.log((bag[term] + 100 * everywhere[term] / everywhere.total()) / (bag.total() + 100))
                for term in question_terms(topic)
                if term in everywhere
            )
            assert score == pytest.approx(expected, abs=1e-6)


def test_tfidf_is_a_cosine(collection: Collection, runs: dict[str, Run]) -> None:
    bags = {item: Counter(terms_of(passage.text)) for item, passage in collection.passages.items()}
    holders = Counter(term for bag in bags.values() for term in bag)

    def weighed(bag: Counter[str]) -> dict[str, float]:
        return {
            term: math.log(1 + count) * math.log(len(bags) / holders[term])
            for term, count in bag.items()
            if term in holders
        }

    for topic in collection.topics:
        query = weighed(Counter(question_terms(topic)))
        for docno, score in runs["tfidf"][topic.id][:5]:
            passage = weighed(bags[docno])
            product = sum(weight * passage.get(term, 0.0) for term, weight in query.items())
            length = math.hypot(*query.values()) * math.hypot(*passage.values())
            assert score == pytest.approx(product / length, abs=1e-6)


def test_overlap_counts_different_words(collection: Collection, runs: dict[str, Run]) -> None:
    for topic in collection.topics:
        for docno, score in runs["overlap"][topic.id]:
            words = set(terms_of(collection.passages[docno].text))
            assert score == len(words & set(terms_of(topic.text)))


def ndcg(ranking: list[tuple[str, float]], utilities: dict[str, float], k: int = 10) -> float:
    def dcg(gains: list[float]) -> float:
        return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:k], start=1))

    return dcg([utilities.get(docno, 0.0) for docno, _ in ranking]) / dcg(sorted(utilities.values())[::-1])


def test_the_runs_differ_visibly_in_quality(collection: Collection, runs: dict[str, Run]) -> None:
    quality = {
        name: sum(ndcg(run[topic], dict(items)) for topic, items in collection.utilities.items()) / len(run)
        for name, run in runs.items()
    }
    assert quality["bm25-description"] > quality["bm25"] + 0.1
    assert quality["bm25-feedback"] > quality["bm25"]
    assert quality["bm25"] > quality["overlap"] + 0.1
    assert quality["overlap"] > quality["bm25-one-word"] + 0.1
    assert quality["bm25"] > quality["bm25-shuffled"] + 0.2
    assert quality["bm25-shuffled"] > quality["random"] + 0.2
    assert quality["random"] < 0.1


def test_an_unknown_ranker_and_a_bad_depth_are_refused(collection: Collection) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'bm25'"):
        rank_all(collection, "bm52", seed=1)
    with pytest.raises(BadParameter, match="from 1 on"):
        rank_all(collection, "bm25", seed=1, depth=0)
