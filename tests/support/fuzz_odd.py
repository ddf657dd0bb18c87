"""What is wrong with the requests of the fuzz: odd values, paths, headers, files and methods."""

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from fuzz_files import PAIRS, PASSAGES, QRELS, RUN, TABBED, TOPICS, WINNERS, ZIPPED

FORM, JSON = "application/x-www-form-urlencoded", "application/json"
BOUNDARY = "fuzz-boundary"


class Raw(str):
    """Something that JSON has without quotes."""


DEEP = Raw("[" * 30_000 + "]" * 30_000)
DEEP_OBJECT = Raw('{"a":' * 3000 + "1" + "}" * 3000)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 1.5, -0.0, 2**31, 2**53 + 1, 2**63, 2**64, 10**30, -(10**30)),
    *(
        Raw("1" + "0" * 400),
        Raw("9" * 5000),
        Raw("1e999"),
        Raw("-1e999"),
        Raw("1e-999"),
        Raw("NaN"),
        Raw("Infinity"),
    ),
    *(
        Raw("-Infinity"),
        Raw("01"),
        Raw(""),
        DEEP,
        DEEP_OBJECT,
        Raw('"\\ud800"'),
        Raw('"\\u0000"'),
        Raw('"\\ude00x"'),
    ),
    *(
        "",
        " ",
        "\n",
        "nan",
        "inf",
        "²",
        "١٢",
        "1_0",
        " 1 ",
        "0x10",
        "a" * 3000,
        "é" * 20_000,
        "\u202e",
        "😀",
        "\x7f",
    ),
    *(
        "../../etc/passwd",
        "' or 1=1 --",
        "<script>alert(1)</script>",
        "{{others}}",
        "{{question}}",
        "%s%n",
        "${x}",
        "{}",
    ),
    *(
        "\x00",
        "\ufeff",
        "one\x00",
        "None",
        "null",
        "true",
        "-1",
        "99999999999999999999",
        "1e5",
        "９",
        "Ⅷ",
        "i\u0307",
    ),
    *(
        [],
        {},
        [[]],
        [None],
        [1, "a", {}],
        {"": ""},
        {"a": {"b": []}},
        ["x"] * 3000,
        {f"k{n}": n for n in range(60)},
    ),
)
ODD_TEXTS: tuple[str, ...] = (
    *(str(each) for each in ODD_VALUES if isinstance(each, str) and not isinstance(each, Raw)),
    *("9" * 5000, "1" + "0" * 400, "1e999", "-inf", "1.5", "0", "-0", "5e-324", "١", "²", "1²", "true", "on"),
)
ODD_QUERIES = (
    *(
        "%00",
        "%ff",
        "%ed%a0%80",
        "%c0%af",
        "%",
        "%zz",
        "%25",
        "%F0%9F%98%80",
        "%0d%0a",
        "%e2%80%a8",
        "+",
        "%2B",
        "%26",
    ),
    *(quote(each, safe="{}") for each in ODD_TEXTS),
)
ODD_PATHS = (
    *(
        "",
        ".",
        "..",
        "%2e%2e",
        "%2F",
        "a%2Fb",
        "%00",
        "%ff",
        "%ed%a0%80",
        "x" * 3000,
        "%F0%9F%98%80",
        "{{others}}",
    ),
    *(
        "none",
        "%",
        "%zz",
        "%25",
        ";a=b",
        "*",
        "~",
        "con",
        "new",
        "{{managed}}",
        "{{crowd}}",
        "%0d%0aX: y",
        "%20",
        "%7f",
    ),
    *(
        "%C2%B2",
        "-1",
        "0",
        "__proto__",
        "..%2f..%2f..%2fetc%2fpasswd",
        "..\\..",
        "%5c",
        "%252e",
        "a" * 99,
        "%u0041",
    ),
)
ODD_HEADERS: dict[str, Sequence[str]] = {
    "Range": (
        "bytes=0-0",
        "bytes=-1",
        "bytes=5-1",
        "bytes=0-",
        "bytes=0-0,2-3",
        "bytes=9999999999999999999999-",
        "x=1",
        "bytes=²-",
    ),
    "If-None-Match": ("*", '"x"', 'W/"x"', "", '"' + "a" * 3000 + '"', "\xff"),
    "If-Modified-Since": (
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "yesterday",
        "",
        "Thu, 99 Foo 99999999 00:00:00 GMT",
    ),
    "If-Range": ('"x"', "yesterday"),
    "Accept": (
        "*/*",
        "application/json",
        "text/html",
        "application/json;q=x",
        ",,,",
        "",
        "\xff\xfe",
        "a" * 5000,
    ),
    "Accept-Language": ("de", "xx-yy", "en;q=nan", "*;q=1e999", ",;=", "", "de;q=²", "\xe9", "de-" * 2000),
    "Accept-Encoding": ("gzip", "identity;q=0", "", "*;q=0"),
    "Cookie": (
        *(
            "duelpool_session=x",
            "duelpool_{{own}}=x.y.z",
            "duelpool_manage_{{own}}=",
            "=",
            ";;;",
            "a=b; a=c",
            "\xff=\xfe",
        ),
        *(
            'duelpool_session="\\000"',
            "duelpool_blind=1",
            "duelpool_setup=.",
            "duelpool_{{own}}=" + "A" * 6000,
            'x="\\',
        ),
        *(
            "duelpool_manage_=x",
            "duelpool_session=WzFd.x",
            "duelpool_session=" + "[" * 2000,
            'duelpool_session="\\355\\240\\200"',
        ),
    ),
    "Content-Length": ("0", "1", "-1", "999999999999", "x", "²", "", "1, 1", "300000"),
    "Transfer-Encoding": ("chunked", "gzip, chunked", "identity"),
    "Host": (
        "",
        "evil.example",
        "testserver:99999999",
        "[::1",
        "a" * 3000,
        "testserver.",
        "\xff",
        "a b",
        "testserver:x",
        "[]",
        "@",
    ),
    "Origin": (
        "null",
        "http://evil.example",
        "http://testserver",
        "",
        "http://[",
        "\xff",
        "http://testserver:x",
        "//[",
    ),
    "Referer": ("http://evil.example/", "http://testserver/x", "", "http://[::1", "http://testserver\\@evil"),
    "Sec-Fetch-Site": ("same-origin", "cross-site", "none", "", "x"),
    "Authorization": (
        *(
            "Bearer",
            "Bearer ",
            "Basic Og==",
            "bearer x",
            "Bearer dp_x_y",
            "Bearer dp__",
            "Bearer {{key_manage}}",
            "Bearer \xff",
        ),
        *(
            "Bearer {{key_open}}",
            "Bearer " + "A" * 6000,
            "",
            "Digest x",
            "Bearer dp_{{token}}_x",
            "Bearer .",
            "Bearer a.b.c",
        ),
    ),
    "X-Forwarded-For": ("1.2.3.4", "", "x", "1.2.3.4, 5.6.7.8", "\xff", "::1", "127.0.0.1", "a" * 3000),
    "X-Forwarded-Proto": ("https", "ftp", "", "\xff"),
    "Expect": ("100-continue", "x"),
    "Content-Type": (
        *(
            FORM,
            JSON,
            "text/plain",
            "",
            "application/json; charset=utf-16",
            "application/json; charset=klingon",
            "x",
        ),
        *(
            "multipart/form-data",
            f"multipart/form-data; boundary={BOUNDARY}",
            "multipart/form-data; boundary=",
            "/",
        ),
        *(
            "application/x-www-form-urlencoded; charset=\xff",
            "APPLICATION/JSON",
            "application/json;" * 300,
            "text/html",
        ),
        *(
            "multipart/form-data; boundary=a; charset=klingon",
            "application/problem+json",
            "application/csp-report",
        ),
    ),
    "Content-Encoding": ("gzip", "br", "x"),
    "User-Agent": ("", "a" * 3000, "\xff", "\x01"),
    "Upgrade": ("websocket", "h2c"),
    "X-Event-ID": ("", "a" * 3000, "\xff", "x"),
    "X-Prolific-Request-Timestamp": ("", "nan", "²", "9" * 400, "1e999", "-1"),
}
METHODS = (
    "HEAD",
    "OPTIONS",
    "TRACE",
    "PUT",
    "DELETE",
    "PATCH",
    "POST",
    "GET",
    "BREW",
    "get",
    "CONNECT",
    "X" * 300,
)
FILENAMES = (
    *(
        "x.run",
        "q.txt",
        "all.zip",
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "a\\b",
        "x" * 300,
        "é.txt",
        "x\x00",
        '"',
        "con",
        " ",
        "\n",
        "x.gz",
    ),
    *(
        "options.json",
        ".hidden",
        "C:\\x",
        "/etc/passwd",
        "x.txt.",
        "😀",
        "x;y",
        "%2e%2e",
        "\xff",
        "x" * 255,
        "ü" * 120,
    ),
)
WIRES = (
    *(
        "no version",
        "bad version",
        "no host",
        "two hosts",
        "bad length",
        "long length",
        "short length",
        "two lengths",
        "chunked",
    ),
    *(
        "bad chunk",
        "huge chunk",
        "length and chunked",
        "bare LF",
        "space in name",
        "folded",
        "NUL",
        "long header",
        "many headers",
    ),
    *(
        "absolute",
        "star",
        "raw bytes",
        "high bytes",
        "half head",
        "half body",
        "pipelined",
        "garbage",
        "HTTP/1.0",
        "HTTP/2",
        "TLS",
    ),
)


def _zip(members: Mapping[str, bytes]) -> bytes:
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return kept.getvalue()


BOMBS: tuple[Callable[[], bytes], ...] = (
    lambda: gzip.compress(b"\0" * 3_000_000, mtime=0),
    lambda: gzip.compress(b"one Q0 a 1 1 x\n" * 60_000, mtime=0),
    lambda: _zip({"runs/x": b"\0" * 3_000_000}),
    lambda: _zip({f"runs/{n}": RUN for n in range(1500)}),
    lambda: _zip({"../../x": RUN, "/etc/x": RUN, "runs/../../y": RUN}),
    lambda: _zip({"runs/a.zip": ZIPPED, "qrels/x": QRELS, "topics/": b""}),
    lambda: _zip({}),
    lambda: ZIPPED[: len(ZIPPED) // 2],
    lambda: ZIPPED.replace(b"runs", b"runs"),
)
FILES = (RUN, QRELS, PAIRS, WINNERS, TOPICS, TABBED, PASSAGES, ZIPPED, gzip.compress(RUN, mtime=0))
OF_KIND = {
    "runs": RUN,
    "qrels": QRELS,
    "topics": TOPICS,
    "texts": PASSAGES,
    "tests": WINNERS,
    "prefs": PAIRS,
    "groups": b"bm25 mine\n",
    "archive": ZIPPED,
}


def dumped(value: Any) -> str:
    """Return JSON of a value, with what JSON doesn't allow as it is."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(str(name))}:{dumped(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(dumped, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def encoded(text: str) -> str:
    """Return a text as a form has it, with names as they are."""
    return quote(text.encode("utf-8", "surrogatepass"), safe="{}#")
