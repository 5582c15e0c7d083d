"""Reports wording that rota avoids: ``python tools/wording.py [PATH…]``, or ``--check PATH…`` to fail on any hit.

Reads strings, docstrings and comments of Python and JavaScript, comments of SQL, Markdown outside code, and
the names that Python modules define. A line that holds ``wording: ok`` is exempt. Never changes a file.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EVERYTHING = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs",
    "src",
    "tests",
    "bench",
    "tools",
)
NEVER_READ = ("vendor", "node_modules", "__pycache__", "tools/wording.py", "tests/surface/test_wording.py")
EXEMPT = "wording: ok"
HIDDEN = "\0"  # in place of code: neither a word nor a space, so no phrase reaches across it

# --- the rules for prose -----------------------------------------------------------------------------

PHRASES = {  # what to avoid: what to write instead. A space matches any white space, a line break too.
    r"shall": "must, will or the present tense",
    r"anew": "again",
    r"whoever": "anyone who, or name them",
    r"seldom": "rarely",
    r"heeds?": "follow, respect",
    r"(is|are|was|were|be|been|being) told|told otherwise": "name who says it: reports, shows, records",
    r"tells? (how|what|which|why|of|that|its|who|when|where|all|the(?! difference| truth))": "show, report, say",
    r"somebody|nobody": "someone, no one, or name them",
    r"(go|goes|went|going) on(?! (the|a|an|top|your)\b)": "continue, resume",
    r"so many(?! \w+ that)": "this many, or name the number",
    r"(hears?|heard) (of|no|its|through)": "receive, notice",
    r"(fell|falls|fall|went|goes|gone) silent": "stopped responding",
    r"stands? (over|there|still|against|before|beside|here|now)": "is, remains",
    r"that stands?(?! (for|out|in|up|by|to)\b)": "that is active, that applies",
    r"to mend|mend(s|ed)": "fix",
    r"made up(?! of)|makes? up for|made good": "caught up",
    r"(is|are) (not|no longer) good(?! (enough|for|at|practice|to))": "is invalid, has expired",
    r"(?<!terms\s)(?<!ease\s)(?<!conditions\s)of use(?! to)": "useful, ready",
    r"(is|are) dear": "is expensive",
    r"(is|was|went) away|store is (back|gone)": "unavailable, available again",
    r"cron texts?": "cron expression",
    r"is no (instant|rate|text|number|address)": "is not a time, rate, string, number or URL",
    r"no more until|any more\.|lately|of late(?=[,.;:)])": "until, no longer, recently",
    r"as if (it|they) were not there": "return 404, are not visible",
    r"the (desk|house)": "operations, the system",
    r"deeds?": "action",
    r"(?<!you\s)wish(es)?": "request",
    r"(hand|hands|handed|handing|gave|give|gives) (it |them |jobs? |the \w+ )?back": "release",
}


def _pattern(phrase: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{phrase})(?!\w)".replace(" ", r"\s+"), re.IGNORECASE)


PROSE = {_pattern(phrase): advice for phrase, advice in PHRASES.items()}

# --- the rules for names -----------------------------------------------------------------------------

SPEAKING_FUNCTION = re.compile(r"^_?(told|tell|said|say|hear|heard|look)(_|$)")
METAPHORS = {"desk", "house", "room", "hands", "herald", "ears", "wish", "deed"}
CONVERSATION = re.compile(r"(Ask|Answer)s?$")
OLD_METAVARS = {"LENGTH": "DURATION", "INSTANT": "TIME"}
NOUNS_IN_ING = {"firing", "logging", "masking", "paging", "parsing", "reporting", "string", "testing"}
_CLASS = re.compile(r"^ *class (\w+)[(:]", re.MULTILINE)
_WORD_OF_NAME = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True, order=True)
class Hit:
    path: str
    line: int
    found: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.found!r}: {self.advice}"


# --- where prose is ----------------------------------------------------------------------------------

_JS_PROSE = re.compile(
    r"""(?P<prose>//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)""", re.DOTALL
)
_SQL_PROSE = re.compile(r"(?P<prose>--[^\n]*)")
_MARKDOWN_CODE = re.compile(
    r"^(?P<fence>```+|~~~+)[^\n]*\n.*?^(?P=fence)[ ]*$"  # a fenced block
    r"|<!--.*?-->|(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)"  # a comment, code within a line
    r"|(?<=\])\([^)\s]*\)|<[^>\n]+>",  # the target of a link, a tag
    re.DOTALL | re.MULTILINE,
)


def prose_of(name: str, text: str) -> str:
    """The text with everything hidden that is not prose; every line stays where it is."""
    match Path(name).suffix:
        case ".md":
            return _MARKDOWN_CODE.sub(lambda found: _hide(found[0]), text)
        case ".py":
            return _only(text, _python_prose(text))
        case ".js":
            return _only(text, (found.span() for found in _JS_PROSE.finditer(text)))
        case ".sql":
            return _only(text, (found.span() for found in _SQL_PROSE.finditer(text)))
    return _hide(text)


def _python_prose(text: str) -> Iterator[tuple[int, int]]:
    starts = [0]
    for line in io.StringIO(text):
        starts.append(starts[-1] + len(line))
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds:
            yield starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1]


def _only(text: str, spans: Iterable[tuple[int, int]]) -> str:
    kept, done = [], 0
    for start, end in spans:
        kept += [_hide(text[done:start]), text[start:end]]
        done = end
    return "".join((*kept, _hide(text[done:])))


def _hide(text: str) -> str:
    return re.sub(r"[^\n]+", HIDDEN, text)


# --- finding -----------------------------------------------------------------------------------------


def find(sources: dict[str, str], package: dict[str, str]) -> list[Hit]:
    """Every hit in the sources. A class is compared with the classes of the whole package."""
    hits = [hit for name, text in sources.items() for hit in (*phrases(name, text), *names(name, text))]
    hits += [hit for hit in repeated_classes(package) if hit.path in sources]
    return sorted(hit for hit in set(hits) if EXEMPT not in sources[hit.path].split("\n")[hit.line - 1])


def phrases(name: str, text: str) -> Iterator[Hit]:
    prose = prose_of(name, text)
    for pattern, advice in PROSE.items():
        for found in pattern.finditer(prose):
            yield Hit(name, prose.count("\n", 0, found.start()) + 1, " ".join(found[0].split()), advice)


def names(name: str, text: str) -> Iterator[Hit]:
    if name.endswith(".py"):
        for found, line, advice in (*_module_name(Path(name)), *_names_inside(ast.parse(text))):
            yield Hit(name, line, found, advice)


def repeated_classes(package: dict[str, str]) -> list[Hit]:
    """Classes whose name is defined more than once, each at every place."""
    places: dict[str, list[tuple[str, int]]] = {}
    for name, text in package.items():
        for found in _CLASS.finditer(text) if name.endswith(".py") else ():
            places.setdefault(found[1], []).append((name, text.count("\n", 0, found.start()) + 1))
    return [
        Hit(path, line, kind, f"defined {len(where)} times: one name, one class")
        for kind, where in places.items()
        if len(where) > 1
        for path, line in where
    ]


_Name = tuple[str, int, str]  # the name, its line, what to do about it


def _module_name(path: Path) -> Iterator[_Name]:
    last_word = path.stem.rpartition("_")[2]
    if last_word.endswith("ing") and last_word not in NOUNS_IN_ING and not path.stem.startswith("test_"):
        yield path.name, 1, "a module is a noun"


def _names_inside(tree: ast.Module) -> Iterator[_Name]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield from _metaphor(name, node.lineno)
                if SPEAKING_FUNCTION.search(name):
                    yield name, node.lineno, "record, snapshot, encode, render, publish or notify"
            case ast.ClassDef(name=name):
                yield from _metaphor(name, node.lineno)
                if CONVERSATION.search(name):
                    yield name, node.lineno, "Request, Response or View"
            case (
                ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
            ):
                yield from _metaphor(name, node.lineno)
            case ast.keyword(arg="metavar", value=ast.Constant(value=str(shown))) if shown in OLD_METAVARS:
                yield shown, node.value.lineno, OLD_METAVARS[shown]


def _metaphor(name: str, line: int) -> Iterator[_Name]:
    if words := METAPHORS & {word.lower() for word in _WORD_OF_NAME.findall(name)}:
        yield name, line, f"name the thing, not {' or '.join(sorted(words))}"


# --- the command -------------------------------------------------------------------------------------


def sources_in(paths: Iterable[str], without: Iterable[str] = ()) -> dict[str, str]:
    """The files to read below the paths, by their name within the project."""
    left_out = (*NEVER_READ, *without)
    found: dict[str, str] = {}
    for path in paths:
        whole = (ROOT / path).resolve()
        for file in sorted(whole.rglob("*") if whole.is_dir() else [whole]):
            name = (file.relative_to(ROOT) if file.is_relative_to(ROOT) else file).as_posix()
            if file.suffix in (".md", ".py", ".js", ".sql") and not any(
                _is_below(name, one) for one in left_out
            ):
                found[name] = file.read_text(encoding="utf-8")
    return found


def _is_below(name: str, place: str) -> bool:
    return (
        f"/{place.strip('/')}/" in f"/{name}/"
        if "/" not in place
        else f"{name}/".startswith(f"{place.rstrip('/')}/")
    )


def report(hits: list[Hit]) -> str:
    """How many hits there are, by directory, the most first."""
    counts = Counter(Path(hit.path).parent.as_posix() for hit in hits)
    rows = [f"{count:6}  {place}" for place, count in counts.most_common()]
    return "\n".join((*rows, f"{len(hits):6}  in total"))


def main() -> int:
    parser = argparse.ArgumentParser(description="Report wording that rota avoids.")
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="Files and directories. [default: the project]"
    )
    parser.add_argument("--check", action="store_true", help="List every hit and fail if there is one.")
    parser.add_argument("--list", action="store_true", help="List every hit.")
    parser.add_argument("--except", dest="without", action="append", default=[], metavar="PATH",
                        help="Leave out a file or directory (repeatable).")  # fmt: skip
    given = parser.parse_args()
    hits = find(sources_in(given.paths or EVERYTHING, given.without), sources_in(["src/rota"]))
    if given.check or given.list:
        sys.stdout.writelines(f"{hit}\n" for hit in hits)
    if not given.check:
        print(report(hits))
    return 1 if given.check and hits else 0


if __name__ == "__main__":
    sys.exit(main())
