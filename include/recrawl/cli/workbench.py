"""`recrawl try`: the rules of URLs, robots.txt, links and text on one case, without a crawl.

A case comes from arguments, or, when there are none, as JSON lines on standard input. The
answers are JSON lines in the same order: the fields of the case with the result fields filled in.
A line that can't be answered comes back with `error`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recrawl.cli import output
from recrawl.cli.context import Context
from recrawl.errors import RecrawlError, UsageError

Case = dict[str, Any]
Answer = Callable[[Case], Case]


def add_commands(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `try` to the tree."""
    trial = commands.add_parser("try", help="try URL rules, robots.txt, links or text on a case", allow_abbrev=False)
    what = trial.add_subparsers(dest="what", metavar="WHAT", required=True)
    lines = "Without arguments, cases are read as JSON lines from standard input."

    url = what.add_parser("url", parents=[shared], help="canonical form and identity", description=lines)
    url.add_argument("url", nargs="?", metavar="URL")
    url.add_argument("--base", help="what a relative URL is resolved against")
    url.add_argument("--rules", help="optional rules, comma separated (default: all)")
    url.add_argument("--same-as", metavar="URL", help="are both one URL to the crawler?")
    url.set_defaults(run=_try_url)

    robots = what.add_parser("robots", parents=[shared], help="may a URL be fetched?", description=lines)
    robots.add_argument("file", nargs="?", type=Path, help="a robots.txt")
    robots.add_argument("url", nargs="?", metavar="URL", help="without one: the Crawl-delay")
    robots.add_argument("--agent", help="product token (default: agent.name)")
    robots.set_defaults(run=_try_robots)

    links = what.add_parser("links", parents=[shared], help="links, base, refresh, directives", description=lines)
    _add_document_options(links)
    links.set_defaults(run=_try_links)

    text = what.add_parser("text", parents=[shared], help="encoding, title, main text", description=lines)
    _add_document_options(text)
    text.add_argument("--content-type", help="the Content-Type header")
    text.set_defaults(run=_try_text)


def _add_document_options(parser: Any) -> None:
    parser.add_argument("file", nargs="?", type=Path, help="an HTML document")
    parser.add_argument("--url", default="http://localhost/", help="where the document was found")


def _try_url(context: Context) -> int:
    arguments = context.arguments
    if arguments.url is None:
        return _answer_lines(_url_answer(context))
    if arguments.same_as:
        case: Case = {"a": arguments.url, "b": arguments.same_as}
    else:
        case = {"input": arguments.url}
        if arguments.base:
            case["base"] = arguments.base
        if arguments.rules is not None:
            case["rules"] = [name.strip() for name in arguments.rules.split(",") if name.strip()]
    return _answer_one(context, case, _url_answer(context))


def _url_answer(context: Context) -> Answer:
    from recrawl.urls.canonical import Canonicalizer, canonical_with, parse, same
    from recrawl.urls.keys import url_id

    canonicalizer = Canonicalizer.from_settings(context.configuration.urls)

    def answer(case: Case) -> Case:
        if "a" in case and "b" in case:
            return {"same": same(_text(case, "a"), _text(case, "b"))}
        given = _text(case, "input")
        family = case.get("family")
        if family == "canonical" or (family is None and "rules" in case):
            return {"expect": canonical_with(given, case.get("rules", []))}
        href = parse(given, case.get("base"))
        if family is not None:
            return {"href": href}
        canonical = canonicalizer.canonical(given, case.get("base"))
        return {
            "href": href,
            "canonical": canonical,
            "request_form": canonicalizer.request_form(given, case.get("base")),
            "url_id": None if canonical is None else str(url_id(canonical)),
        }

    return answer


def _try_robots(context: Context) -> int:
    arguments = context.arguments
    if arguments.file is None:
        return _answer_lines(_robots_answer(context))
    case: Case = {"robots": _read(arguments.file).decode("utf-8", "surrogateescape")}
    if arguments.agent:
        case["agent"] = arguments.agent
    if arguments.url:
        case["url"] = arguments.url
    return _answer_one(context, case, _robots_answer(context), hidden=("robots",))


def _robots_answer(context: Context) -> Answer:
    from recrawl.robots.rules import RobotsRules

    agent = context.configuration.agent.name

    def answer(case: Case) -> Case:
        body = _text(case, "robots").encode("utf-8", "surrogateescape")
        rules = RobotsRules.parse(body, case.get("agent") or agent)
        if case.get("url") is None:
            return {"delay": rules.crawl_delay_seconds, "sitemaps": list(rules.sitemaps)}
        decision = rules.decide(_text(case, "url"))
        return {"allowed": decision.allowed, "rule": decision.rule}

    return answer


def _try_links(context: Context) -> int:
    arguments = context.arguments
    if arguments.file is None:
        return _answer_lines(_document_answer(context))
    body = _read(arguments.file)
    case: Case = {"url": arguments.url, "html": _decoded(body, None)}
    return _answer_one(context, case, _document_answer(context), hidden=("html",))


def _try_text(context: Context) -> int:
    arguments = context.arguments
    if arguments.file is None:
        return _answer_lines(_document_answer(context, text=True))
    body = _read(arguments.file)
    case: Case = {"url": arguments.url, "body_hex": body.hex(), "content_type": arguments.content_type}
    return _answer_one(context, case, _document_answer(context, text=True), hidden=("body_hex",))


def _document_answer(context: Context, text: bool = False) -> Answer:
    """Answers for documents by their `kind`; without one, all that the command is about."""
    agent = context.configuration.agent.name
    answers: dict[str, Answer] = {
        "links": _links,
        "raw_links": _raw_links,
        "base": _base,
        "meta_refresh": _refresh,
        "robots_meta": lambda case: _directives(case, agent),
        "charset": _charset,
    }

    def answer(case: Case) -> Case:
        kind = case.get("kind")
        if kind is not None:
            if kind not in answers:
                raise UsageError(f"{kind!r} is none of {', '.join(answers)}.")
            return answers[kind](case)
        if text:
            return _main_text(context, case)
        if "html" not in case and "body_hex" in case:
            return _charset(case)
        return {**_links(case), **_base(case), **_refresh(case), **_directives(case, agent)}

    return answer


def _links(case: Case) -> Case:
    from recrawl.parse.links import resolved_links

    found = resolved_links(_text(case, "html"), _url(case), bool(case.get("only_http")), bool(case.get("scripting")))
    return {"links": [list(link) for link in found]}


def _raw_links(case: Case) -> Case:
    from recrawl.parse.links import raw_links

    return {"links": [list(link) for link in raw_links(_text(case, "html"))]}


def _base(case: Case) -> Case:
    from recrawl.parse.html import base_url, parse_html

    return {"base": base_url(parse_html(_text(case, "html")), _url(case))}


def _refresh(case: Case) -> Case:
    from recrawl.parse.html import base_url, meta_refresh, parse_html

    tree = parse_html(_text(case, "html"))
    refresh = meta_refresh(tree, base_url(tree, _url(case)), _url(case))
    return {"target": refresh and refresh.target, "delay": refresh and refresh.delay_seconds}


def _directives(case: Case, agent: str) -> Case:
    from recrawl.parse.html import parse_html, robots_directives

    found = robots_directives(parse_html(_text(case, "html")), agent, case.get("x_robots_tag"))
    return {"index": not found.noindex, "follow": not found.nofollow}


def _charset(case: Case) -> Case:
    from recrawl.parse.charset import detect

    return {"encoding": detect(_body(case), case.get("content_type"))}


def _main_text(context: Context, case: Case) -> Case:
    from recrawl.parse.capture import Capture
    from recrawl.parse.handlers import parse_capture

    capture = Capture(
        url=_url(case),
        content_type=case.get("content_type") or "text/html",
        body=_body(case),
        x_robots_tag=case.get("x_robots_tag"),
        depth=0,
        agent=context.configuration.agent.name,
        want_text=True,
    )
    page = parse_capture(capture, context.configuration.parse)
    return {"encoding": page.charset, "title": page.title, "language": page.language, "text": page.text}


def _body(case: Case) -> bytes:
    if "body_hex" in case:
        return bytes.fromhex(_text(case, "body_hex"))
    return _text(case, "html").encode("utf-8", "surrogatepass")


def _decoded(body: bytes, content_type: str | None) -> str:
    from recrawl.parse.charset import detect
    from recrawl.parse.encodings import codec_of

    return body.decode(codec_of(detect(body, content_type)), "replace")


def _url(case: Case) -> str:
    return _text(case, "url") if case.get("url") is not None else "http://localhost/"


def _text(case: Case, name: str) -> str:
    value = case.get(name)
    if not isinstance(value, str):
        raise UsageError(f"The case has no text {name!r}.")
    return value


def _read(path: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}.") from None


def _answer_one(context: Context, case: Case, answer: Answer, hidden: tuple[str, ...] = ()) -> int:
    results = answer(case)
    shown = {name: value for name, value in case.items() if name not in hidden} | results
    if context.json:
        print(json.dumps(shown))
        return 0
    for name, value in shown.items():
        if isinstance(value, list):
            print(f"{name}: {len(value)}")
            for item in value:
                words = item if isinstance(item, list) else [item]
                print("  " + output.printable("  ".join(map(str, words))))
        elif name == "text":
            print(f"{name}:\n" + "\n".join(output.printable(line) for line in str(value or "").splitlines()))
        else:
            print(f"{name}: {output.cell(value)}")
    return 0


def _answer_lines(answer: Answer) -> int:
    """Answer every line of standard input; 1 when one of them could not be answered."""
    status = 0
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        case: Any = None
        try:
            case = json.loads(line)
            if not isinstance(case, dict):
                raise UsageError("The line is no JSON object.")
            result = {**case, **answer(case)}
        except (RecrawlError, ValueError, TypeError, KeyError, RecursionError) as error:
            status = 1
            result = {**(case if isinstance(case, dict) else {}), "error": _sentence(error)}
        # ASCII: the cases hold lone surrogates, which no other encoding can write.
        print(json.dumps(result), flush=True)
    return status


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, RecrawlError) else f"{type(error).__name__}: {error}"
