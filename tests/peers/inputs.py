"""Make the larger inputs of the recordings. They are committed; this says how they came about.

    python tests/peers/inputs.py

The short ones are written by hand. `hostile.*`: equal scores, tabs, topics on one side only, a topic without relevant
documents, ids that sort differently as text and as bytes. `negative.*`: grades below 0. `precision.*`: scores that
differ in double precision only. `trec_eval/corners.*`, which only trec_eval is asked about: grades below 0 and
far above the others, topics with nothing else, infinite scores, ranks that contradict scores, ids of 300 letters and of
four bytes a letter, tabs, blanks at the end of a line, lines that end in a carriage return.
"""

import random
from pathlib import Path

FOLDER = Path(__file__).parent / "inputs"
TOPICS, DOCUMENTS, RANKED, GRADED = 10, 150, 60, 45


def make_long(draw: random.Random) -> None:
    """Write a run of ten topics with many equal scores, in any row order, and grades from 0 to 3."""
    docnos = [f"doc-{number}" for number in range(DOCUMENTS)]
    rows: list[str] = []
    grades: list[str] = []
    for topic in range(1, TOPICS + 1):
        grades += [
            f"{topic} 0 {docno} {draw.choice([0, 0, 1, 2, 3])}" for docno in draw.sample(docnos, GRADED)
        ]
        rows += [
            f"{topic} Q0 {docno} 0 {draw.randrange(-24, 24) / 8} long"
            for docno in draw.sample(docnos, RANKED)
        ]
    draw.shuffle(rows)
    write("long.run", rows)
    write("long.qrels", grades)


def make_votes(draw: random.Random) -> None:
    """Write 300 comparisons of eight items without ties, and 200 with ties, as `a b winner`."""
    items = "abcdefgh"
    for name, number, ties in (("votes.txt", 300, 0.0), ("votes-with-ties.txt", 200, 0.25)):
        rows = []
        for _ in range(number):
            a, b = draw.sample(items, 2)
            better = draw.random() < 1 / (1 + 2.0 ** ((ord(a) - ord(b)) / 2))
            rows.append(f"{a} {b} {'=' if draw.random() < ties else a if better else b}")
        write(name, rows)


def make_ratings(draw: random.Random) -> None:
    """Write the grades 0 to 3 that four people gave to thirty units; `-` where one gave none."""
    rows = []
    for unit in range(30):
        true = draw.randrange(4)
        given = [min(3, max(0, true + draw.choice([-1, 0, 0, 0, 1]))) for _ in range(4)]
        rows.append(" ".join("-" if draw.random() < 0.15 else str(grade) for grade in given))
        if unit == 0:
            rows[0] = "2 - - -"  # a single grade can't agree with anything
    write("ratings.txt", rows)
    write("ratings-complete.txt", [row for row in rows if "-" not in row])


def write(name: str, rows: list[str]) -> None:
    """Write lines into the folder of inputs."""
    (FOLDER / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    make_long(random.Random(21))
    make_votes(random.Random(12))
    make_ratings(random.Random(13))
