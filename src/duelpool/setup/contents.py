"""What the files of a campaign hold, in a line for each kind: so many files, topics, texts, and how deep."""

from dataclasses import dataclass

from duelpool.setup.inputs import Inputs


@dataclass(frozen=True, slots=True)
class KindContents:
    """The files of one kind, in words."""

    kind: str
    sentence: str


def contents_of(inputs: Inputs) -> list[KindContents]:
    """Return what was read, kind by kind."""
    files = inputs.files
    rows: list[tuple[str, int, tuple[str, ...]]] = []
    if inputs.answers is not None:
        answers = inputs.answers
        sizes = (_many(len(answers.systems), "system"), _many(len(answers.questions), "question"))
        rows.append(("answers", len(files.answers), (*sizes, _many(len(answers.rows), "answer"))))
    elif inputs.runs:
        topics = {topic for run in inputs.runs for topic in run.topics}
        deep = max(
            max(run.frame.get_column("topic").value_counts()["count"].to_list(), default=0)
            for run in inputs.runs
        )
        rows.append(("runs", len(files.runs), (_many(len(topics), "topic"), f"{deep:,} deep")))
    if inputs.qrels is not None:
        frame = inputs.qrels.frame
        topics_graded = frame.get_column("topic").n_unique()
        rows.append(("qrels", 1, (_many(topics_graded, "topic"), _many(frame.height, "grade"))))
    if inputs.preferences is not None:
        rows.append(("prefs", 1, (_many(inputs.preferences.frame.height, "preference"),)))
    if files.topics and inputs.topics is not None:
        rows.append(("topics", 1, (_many(len(inputs.topics), "question"),)))
    if files.texts and inputs.texts is not None and inputs.answers is None:
        rows.append(("texts", 1, (_many(len(inputs.texts), "text"),)))
    if inputs.groups is not None:
        rows.append(("groups", 1, (_many(len(set(inputs.groups.values())), "group"),)))
    return [KindContents(kind, ", ".join((_many(count, "file"), *parts))) for kind, count, parts in rows]


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
