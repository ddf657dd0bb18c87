"""A gate's result for machines and reviewers: JUnit XML, and Markdown for a pull request."""

import math
import re
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from duelpool.evaluation.gate import GateResult

_MARKS = {"pass": "✅", "fail": "❌", "inconclusive": "❔"}  # what readers of a summary see first


def gate_values(result: GateResult) -> dict[str, Any]:
    """Return a result as JSON values, null for what isn't a finite number."""
    values = {
        **asdict(result),
        "reason": result.reason,
        "remedy": result.remedy,
        "exit_code": result.exit_code,
    }
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


def gate_text(result: GateResult) -> str:
    """Return a result in a few lines."""
    lines = [
        f"{result.verdict}: {result.reason}",
        f"{result.measure}: {result.old} {result.mean_old:.4f}, {result.new} {result.mean_new:.4f}, "
        f"difference {result.figures} over {result.topics} topics ({result.method})",
    ]
    lines += [result.remedy] if result.remedy else []
    return "\n".join([*lines, *(f"Note: {note}." for note in result.notes)])


def gate_markdown(result: GateResult) -> str:
    """Return a result as Markdown, for the summary of a pull request."""
    rows = {
        "measure": result.measure,
        f"old: {result.old}": f"{result.mean_old:.4f}",
        f"new: {result.new}": f"{result.mean_new:.4f}",
        "difference": result.figures,
        "smallest loss that matters": f"{result.min_effect:g}",
        "topics": f"{result.topics:,}",
        "interval": result.method,
    }
    lines = [
        f"### {_MARKS[result.verdict]} Gate: {result.verdict}",
        "",
        _escaped(result.reason),
        "",
        "| | |",
        "|---|---:|",
    ]
    lines += [f"| {_escaped(name)} | {_escaped(value)} |" for name, value in rows.items()]
    notes = [*([result.remedy] if result.remedy else []), *(f"{note}." for note in result.notes)]
    if notes:
        lines += ["", *(f"- {_escaped(note)}" for note in notes)]
    return "\n".join([*lines, ""])


def _escaped(text: str) -> str:
    """Return text without what Markdown or HTML would read as markup: names of files are anything."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{each}" if each in "\\`*_[]|#!~" else each for each in plain)


def gate_junit(result: GateResult) -> str:
    """Return a result as JUnit XML with one test case: a failure for fail, skipped for inconclusive."""
    counts = {
        "tests": "1",
        "failures": str(int(result.verdict == "fail")),
        "errors": "0",
    }
    suites = ElementTree.Element("testsuites", {"name": "duelpool gate", **counts})
    skipped = str(int(result.verdict == "inconclusive"))
    suite = ElementTree.SubElement(
        suites, "testsuite", {"name": "duelpool gate", **counts, "skipped": skipped}
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in gate_values(result).items():
        if name != "notes" and value is not None:
            ElementTree.SubElement(properties, "property", {"name": name, "value": _xml_safe(str(value))})
    title = _xml_safe(f"{result.measure}: {result.new} against {result.old}")
    case = ElementTree.SubElement(suite, "testcase", {"classname": "duelpool.gate", "name": title})
    if result.verdict != "pass":
        tag = "failure" if result.verdict == "fail" else "skipped"
        about = {"type": result.verdict, "message": _xml_safe(result.reason)}
        ElementTree.SubElement(case, tag, about).text = _xml_safe(gate_text(result))
    ElementTree.SubElement(case, "system-out").text = _xml_safe(gate_text(result))
    ElementTree.indent(suites)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"
    )


_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _xml_safe(text: str) -> str:
    """Return text without the characters that XML can't hold: names of runs are anything."""
    return _NOT_IN_XML.sub("?", text)
