"""A small collection other than the demo's, in the file formats that the tutorial names."""

import json
from collections.abc import Iterator
from pathlib import Path

CITIES = {
    "bern": ("Which river flows through Bern?", "Aare"),
    "wien": ("Which river flows through Vienna?", "Danube"),
    "roma": ("Which river flows through Rome?", "Tiber"),
    "praha": ("Which river flows through Prague?", "Vltava"),
    "paris": ("Which river flows through Paris?", "Seine"),
    "koln": ("Which river flows through Cologne?", "Rhine"),
}
TEXTS = (
    (3, "The {river} flows through the city, past its old town, and gave it its first mills and bridges."),
    (3, "The {river}. It reaches the city from the south and leaves it to the north."),
    (2, "Ships on the {river} brought wine and salt to the city's markets."),
    (2, "Of all bridges over the {river} here, the stone one is the oldest."),
    (1, "The city lies on a river, and floods were common."),
    (1, "A river crosses the city; its name is very old."),
    (0, "The city's museums are closed on Mondays."),
)


def write_tiny_collection(folder: Path) -> None:
    """Write topics, passages, qrels and two runs; answers of five systems, and of one that comes later."""
    runs = folder / "runs"
    runs.mkdir(parents=True)
    topics, passages, qrels = [], [], []
    ranked: dict[str, list[str]] = {"keyword": [], "neural": []}
    for topic, (question, river) in CITIES.items():
        topics.append(f"{topic}\t{question}")
        for at, (grade, text) in enumerate(TEXTS):
            passages.append(f"{topic}{at}\t{text.format(river=river)}")
            qrels.append(f"{topic} 0 {topic}{at} {grade}")
        orders = {"keyword": (4, 2, 0, 6, 3, 1, 5), "neural": (0, 1, 3, 2, 5, 4, 6)}
        for run, order in orders.items():
            ranked[run] += [
                f"{topic} Q0 {topic}{at} {rank} {10 - rank} {run}" for rank, at in enumerate(order, 1)
            ]
    (folder / "topics.tsv").write_text("\n".join(topics) + "\n", encoding="utf-8")
    (folder / "passages.tsv").write_text("\n".join(passages) + "\n", encoding="utf-8")
    (folder / "qrels.txt").write_text("\n".join(qrels) + "\n", encoding="utf-8")
    for run, lines in ranked.items():
        (runs / f"{run}.run").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "answers.jsonl").write_text(
        "".join(f"{json.dumps(row)}\n" for row in answers()), encoding="utf-8"
    )
    late = [row for row in answers() if row["system"] == "long-context"]
    changed = [{**row, "system": "rag-v3", "answer": f"{row['answer']} [1]"} for row in late]
    (folder / "version-3.jsonl").write_text(
        "".join(f"{json.dumps(row)}\n" for row in changed), encoding="utf-8"
    )
    votes = [
        f"{topic},rag-v1,{other},{side}"
        for topic, other, side in zip(
            CITIES, [*ANSWERS, "baseline"][1:], ("right", "left", "right", "left", "tie"), strict=False
        )
    ]
    (folder / "gpt-4.csv").write_text(
        "\n".join(["question_id,left,right,winner", *votes]) + "\n", encoding="utf-8"
    )


ANSWERS = {
    "rag-v1": "The {river}.",
    "rag-v2": "The **{river}** flows through the city, past its old town.",
    "no-search": "I believe that it is the {river}, but I can't be sure.",
    "long-context": "- The river is the **{river}**.\n- It reaches the city from the south.",
    "baseline": "The city lies on a river, and floods were common.",
}


def answers() -> Iterator[dict[str, str]]:
    """Yield the answers of five systems to the questions."""
    for topic, (question, river) in CITIES.items():
        for system, text in ANSWERS.items():
            answer = text.format(river=river)
            yield {"question_id": topic, "question": question, "system": system, "answer": answer}
