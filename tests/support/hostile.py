"""Files made to keep a reader busy: each repeats what a careless reader goes through again and again."""

import json
from collections.abc import Callable
from itertools import islice


def repeated(unit: bytes, start: bytes = b"", end: bytes = b"") -> Callable[[int], bytes]:
    return lambda size: start + unit * max(1, (size - len(start) - len(end)) // len(unit)) + end


def numbered(line: str, start: str = "", end: str = "") -> Callable[[int], bytes]:
    """Make a file of lines in which `@` is the number of the line."""

    def make(size: int) -> bytes:
        count = max(1, size // (len(line) + 4))
        return (start + "".join(line.replace("@", str(at)) for at in range(count)) + end).encode()

    return make


def nested(size: int) -> bytes:
    return b'{"id": ' + b"[" * (size // 2) + b"]" * (size // 2) + b"}"


def wide_rows(size: int) -> bytes:
    """Make a header of many columns, and rows as wide."""
    columns = max(3, int((size / 16) ** 0.5))
    header = ["id", "text", *(f"column{at}" for at in range(columns))]
    row = "\t".join(["@", *("x" for _ in header[1:])])
    return "\n".join(["\t".join(header), *(row.replace("@", str(at)) for at in range(columns * 3))]).encode()


def other_fields(size: int) -> bytes:
    """Make JSON lines of which each has fields of its own."""
    line = {"topic": "one", "id": "1", "text": "x", "left": "a", "right": "b", "outcome": "left"}
    rows = (json.dumps({**line, f"field{at}": at}).encode() for at in range(10**9))
    return b"\n".join(islice(rows, size // 100))


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "<top> again and again": repeated(b"<top>"),
    "<top> with a blank": repeated(b"<top >\n"),
    "tags without an end": repeated(b"<a", b"<top>", b"</top>"),
    "one topic of many tags": repeated(b"<a>b</a>", b"<top><num>1<title>t", b"</top>"),
    "many topics in tags": numbered("<top>\n<num>@\n<title>words\n</top>\n"),
    "blocks whose end lacks its bracket": repeated(b"<top></top "),
    "an opening tag of many words": repeated(b" number", b"<top", b">x</top>"),
    "an opening tag of blanks": repeated(b" ", b"<top number", b">x</top>"),
    "a character of many digits": repeated(b"9", b"<top><num>1<title>&#", b"</top>"),
    "entities": repeated(b"&amp", b"<top><num>1<title>", b"</top>"),
    "labels of blanks": repeated(b" ", b"<top><num>Number", b"</top>"),
    "one conversation of many turns": repeated(b'{"text":"a"},', b'{"number":1,"turn":[', b'{"text":"a"}]}'),
    "nested JSON": nested,
    "JSON that never closes": repeated(b'{"a":'),
    "arrays that never close": repeated(b"["),
    "a JSON array of numbers": repeated(b"1,", b"[", b"1]"),
    "a JSON object with one name often": repeated(b'"id":1,', b"{", b'"text":"x"}'),
    "a JSON object with many names": numbered('"n@":1,', "{", '"id":1,"text":"x"}'),
    "fields that change from line to line": other_fields,
    "a number of many digits": repeated(b"9", b'{"id":', b"}"),
    "an outcome of many letters": repeated(
        b"left", b'{"topic":"one","left":"a","right":"b","outcome":"', b'"}'
    ),
    "one setting of many letters": repeated(b"strategy", b"", b" = 1\n"),
    "one line of letters": repeated(b"x"),
    "one line of words": repeated(b"word "),
    "one line of tabs": repeated(b"\t", b"a", b"b\n"),
    "blank lines": repeated(b"\n", b"", b"one 0 a 1\n"),
    "line ends of every kind": repeated(b"\r\n\r", b"", b"one 0 a 1\n"),
    "one column many times": repeated(b"topic\t", b"", b"winner\none\ta\n"),
    "rows of many columns": wide_rows,
    "quotes": repeated(b'"', b"topic,left,right,winner\none,", b"\n"),
    "the same row of a run": repeated(b"one Q0 a 1 2.5 tag\n"),
    "the same row of qrels": repeated(b"one 0 a 1\n"),
    "a topic for every row of qrels": numbered("@ 0 a 1\n"),
    "topics in turn": numbered("one 0 a@ 1\ntwo 0 a@ 1\n"),
    "the same pair": repeated(b"one a b a\n"),
    "one winner of many": numbered("one a b@\n"),
    "one subgroup of one level": numbered("one 1 1 d@ 1\n", "one 1 1 best 2\n"),
    "the same passage": repeated(b'{"id":"a","text":"t"}\n'),
    "the same line of two columns": repeated(b"a\tb\n"),
    "one pool of many items": numbered('"d@",', '{"topic":"one","items":[', '"d"]}'),
    "one pool of many duplicates": numbered('"d@",', '{"topic":"one","items":["a"],"twins":{"a":[', '"d"]}}'),
    "a matrix of one row": repeated(b"0.5 "),
    "nested arrays of a setting": repeated(b"[", b"check = "),
    "tables in tables of a setting": repeated(b"a.", b"", b"a = 1\n"),
    "many tables of settings": numbered("[t@]\n"),
    "one setting many times": numbered("a@ = 1\n"),
    "places in a prompt": repeated(b"{left}", b"You judge.\n---\n{question}\n{right}"),
    "rules in a prompt": repeated(b"---\n"),
}
