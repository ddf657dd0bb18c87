"""Validates XML by the part of XML Schema that `tests/evaluation/junit.xsd` uses: references, sequences, attributes."""

import re
from pathlib import Path
from xml.etree import ElementTree

XS = "{http://www.w3.org/2001/XMLSchema}"
TYPES = {"xs:string": re.compile(r"[\s\S]*"), "xs:nonNegativeInteger": re.compile(r"\d+")}


def problems(text: str, schema: Path) -> list[str]:
    """Return where a document breaks the schema."""
    declared = {each.attrib["name"]: each for each in ElementTree.parse(schema).getroot()}
    return list(_problems(ElementTree.fromstring(text), declared))


def _problems(element: ElementTree.Element, declared: dict[str, ElementTree.Element]) -> list[str]:
    if element.tag not in declared:
        return [f"{element.tag} isn't declared"]
    kind = declared[element.tag].find(f"{XS}complexType")
    if kind is None:
        return [f"{element.tag} has children or attributes"] if len(element) or element.attrib else []
    found = []
    allowed = {each.attrib["name"]: each.attrib for each in kind.findall(f"{XS}attribute")}
    for name, value in element.attrib.items():
        if name not in allowed:
            found.append(f"{element.tag} has no attribute {name}")
        elif not TYPES[allowed[name]["type"]].fullmatch(value):
            found.append(f"{element.tag} {name}={value!r} isn't of type {allowed[name]['type']}")
    found += [
        f"{element.tag} lacks {name}"
        for name, each in allowed.items()
        if each.get("use") == "required" and name not in element.attrib
    ]
    if kind.get("mixed") != "true" and (element.text or "").strip():
        found.append(f"{element.tag} has text")
    children = [child.tag for child in element]
    order = kind.find(f"{XS}sequence")
    pattern = "".join(
        f"(?:{re.escape(each.attrib['ref'])},)"
        f"{{{each.get('minOccurs', '1')},{each.get('maxOccurs', '1').replace('unbounded', '')}}}"
        for each in (order if order is not None else ())
    )
    if not re.fullmatch(pattern, "".join(f"{tag}," for tag in children)):
        found.append(f"{element.tag} can't have the children {children}")
    for child in element:
        found += _problems(child, declared)
    return found
