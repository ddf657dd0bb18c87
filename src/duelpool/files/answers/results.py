"""Answers in the result files of other tools: promptfoo's JSON and JSON lines, Inspect's logs (`.json`, `.eval`)."""

import io
import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from duelpool.errors import BadFile
from duelpool.files.answers.rows import AnswerRow, RowPlace, file_system, message_text, tags_of
from duelpool.files.jsonlines import Row
from duelpool.files.notices import Tally

_QUESTIONS = ("question", "query", "prompt", "input", "instruction", "user_input", "topic", "text")
_EVAL_AT_MOST = 1 << 30  # bytes of an unpacked log


# ---- promptfoo


def promptfoo_results(document: Row) -> list[Row] | None:
    """Return the results of promptfoo's file, as it writes them in versions 2 to 4; None where it isn't one."""
    results: Any = document.get("results")
    if isinstance(results, Mapping):
        results = results.get("results")
    if isinstance(results, list) and results and all(isinstance(each, Mapping) for each in results):
        return results if any(is_promptfoo(each) for each in results) else None
    return None


def is_promptfoo(row: Row) -> bool:
    """Whether a row is a result of promptfoo."""
    return (
        "response" in row
        and any(name in row for name in ("promptIdx", "testIdx", "testCase", "vars"))
        and any(name in row for name in ("provider", "prompt", "promptIdx", "success"))
    )


def promptfoo_rows(rows: Iterable[tuple[RowPlace, Row]], tally: Tally) -> Iterator[AnswerRow]:
    """Yield promptfoo's outputs: a system is a provider, with the prompt's label where there are several prompts."""
    found = list(rows)
    providers = {_provider(row) for _, row in found}
    labels: dict[str, set[str]] = {provider: set() for provider in providers}
    for _, row in found:
        labels[_provider(row)].add(_label(row))
    seen: dict[tuple[str, str], str] = {}
    for place, row in found:
        output = _output(row)
        if output is None:
            tally.add("results without an output (errors), left out", place.line)
            continue
        values = row.get("vars") or (row.get("testCase") or {}).get("vars") or {}
        provider, label = _provider(row), _label(row)
        system = f"{provider} / {label}" if len(labels[provider]) > 1 and label else provider
        question = _asked(values, row)
        told = (
            json.dumps(values, sort_keys=True, default=str) if values else str(row.get("testIdx", question))
        )
        if seen.setdefault((system, told), output) != output:
            tally.add("further results of a repeated test, left out: the first counts", place.line)
            continue
        case = row.get("testCase") or {}
        given = case.get("metadata")
        about: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        yield AnswerRow(
            place, system, output, question=question, tags=tags_of(about.get("tags") or about.get("category")),
        )  # fmt: skip


def _provider(row: Row) -> str:
    given = row.get("provider")
    if isinstance(given, Mapping):
        return str(given.get("label") or given.get("id") or "").strip() or "promptfoo"
    return str(given).strip() if given else "promptfoo"


def _label(row: Row) -> str:
    prompt = row.get("prompt")
    if (
        isinstance(prompt, Mapping)
        and isinstance(prompt.get("label"), str)
        and prompt["label"] != prompt.get("raw")
    ):
        label: str = prompt["label"]
        return label.strip()
    return f"prompt {row['promptIdx'] + 1}" if isinstance(row.get("promptIdx"), int) else ""


def _output(row: Row) -> str | None:
    response = row.get("response")
    output: Any = response.get("output") if isinstance(response, Mapping) else response
    if output is None:
        return None
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=1)
    return text if text.strip() else None


def _asked(values: Mapping[str, Any], row: Row) -> str:
    """Return what was asked: the variable called so, all variables, or the prompt as it was sent."""
    for name in _QUESTIONS:
        if isinstance(values.get(name), str) and values[name].strip():
            return str(values[name])
    if len(values) == 1:
        return str(next(iter(values.values())))
    if values:
        return "\n".join(f"{name}: {value}" for name, value in values.items())
    prompt = row.get("prompt")
    raw = prompt.get("raw") if isinstance(prompt, Mapping) else prompt
    return str(raw or "")


# ---- Inspect


def is_inspect(document: Row) -> bool:
    """Whether a document is a log of Inspect."""
    return isinstance(document.get("eval"), Mapping) and "version" in document and "samples" in document


def inspect_rows(file: str, about: Row, samples: Iterable[Row], tally: Tally) -> Iterator[AnswerRow]:
    """Yield the completions of a log: the system is its model; of several epochs the first counts."""
    model = str(about.get("model") or file_system(file))
    for number, sample in enumerate(samples, 1):
        place = RowPlace(file, row=number)
        if sample.get("epoch", 1) != 1:
            tally.add("samples of later epochs, left out: the first counts")
            continue
        text = _completion(sample.get("output"))
        if text is None:
            tally.add("samples without a completion, left out")
            continue
        question, before = _input(sample.get("input"))
        target = sample.get("target")
        about_sample = sample.get("metadata")
        metadata: Mapping[str, Any] = about_sample if isinstance(about_sample, Mapping) else {}
        yield AnswerRow(
            place,
            model,
            text,
            str(sample["id"]) if sample.get("id") is not None else None,
            question,
            before,
            reference="\n".join(map(str, target)) if isinstance(target, list) else str(target or ""),
            tags=tags_of(metadata.get("tags") or metadata.get("category")),
        )


def _completion(output: Any) -> str | None:
    if not isinstance(output, Mapping):
        return None
    text = output.get("completion")
    if not isinstance(text, str) or not text.strip():
        choices = output.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, Mapping) else None
        text = message_text(message) if isinstance(message, Mapping) else ""
    return text if text.strip() else None


def _input(given: Any) -> tuple[str | None, tuple[str, ...]]:
    if isinstance(given, str):
        return given, ()
    if not isinstance(given, list):
        return None, ()
    said = [
        message_text(each) for each in given if isinstance(each, Mapping) and each.get("role") != "system"
    ]
    said = [each for each in said if each]
    return (said[-1], tuple(said[:-1])) if said else (None, ())


def inspect_archive(file: str, data: bytes) -> tuple[Row, list[Row]]:
    """Return the header and the samples of a log that is a zip (`.eval`)."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as log:
            names = log.namelist()
            if "header.json" not in names:
                raise BadFile.at(
                    file, None, "This zip is no log of Inspect.", "Answers come as JSON, CSV or Parquet."
                )
            samples = sorted(name for name in names if name.startswith("samples/") and name.endswith(".json"))
            if sum(log.getinfo(name).file_size for name in (*samples, "header.json")) > _EVAL_AT_MOST:
                raise BadFile.at(
                    file, None, "The log unpacks to more than 1 GB.", "Write it as JSON: inspect log convert."
                )
            header = json.loads(log.read("header.json"))
            return header.get("eval", {}), [json.loads(log.read(name)) for name in samples]
    except (
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
        RuntimeError,
        ValueError,
        AttributeError,
        EOFError,
    ):
        raise BadFile.at(
            file, None, "This log can't be unpacked.", "Write it as JSON: inspect log convert --to json."
        ) from None
