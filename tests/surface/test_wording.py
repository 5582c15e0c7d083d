"""The wording lint finds what it should, leaves ordinary English alone, and fails when asked to check."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "wording.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("wording", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = sys.modules["wording"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


wording = load()


def found(text: str, name: str = "page.md") -> list[str]:
    return [hit.found for hit in wording.find({name: text}, {})]


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Whoever reads this", "Whoever"),
        ("The worker is told twice.", "is told"),
        ("It tells which jobs wait.", "tells which"),
        ("The queue goes on.", "goes on"),
        ("At most so many.", "so many"),
        ("The worker fell silent.", "fell silent"),
        ("every pause that stands", "that stands"),
        ("This token is not good.", "is not good"),
        ("a cron text", "cron text"),
        ("Running jobs are handed back.", "handed back"),
        ("workers heard of\nlately", "heard of"),
    ],
)
def test_avoided_phrases_are_found(text: str, phrase: str) -> None:
    assert phrase in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "The letter L stands for the last day.",
        "You cannot tell the difference.",
        "The label goes on the left.",
        "There are so many jobs that one worker is not enough.",
        "Use any name you wish.",
        "See the terms of use, or look at the log.",
        "One commit is not good enough for both.",
        "Release notes: a batch is made up of jobs.",
        "It has a handle back to the store, in each household.",
    ],
)
def test_ordinary_english_is_left_alone(text: str) -> None:
    assert found(text) == []


def test_markdown_code_comments_and_link_targets_are_not_read() -> None:
    page = "Run `nobody` and [this](nobody.md).\n\n```sh\nnobody\n```\n<!-- nobody -->\nNobody is here.\n"
    assert [(hit.line, hit.found) for hit in wording.find({"page.md": page}, {})] == [(7, "Nobody")]


def test_python_strings_docstrings_and_comments_are_read_but_code_is_not() -> None:
    source = '"""Nobody."""\nnobody = f"for somebody {one}"  # and whoever\n'
    assert found(source, "src/rota/one.py") == ["Nobody", "somebody", "whoever"]


def test_javascript_strings_and_comments_are_read_but_code_is_not() -> None:
    source = "const nobody = 'Nobody signs in'; // whoever\n/* anew */ html`<p>It goes on</p>`;\n"
    assert sorted(found(source, "a.js")) == ["Nobody", "anew", "goes on", "whoever"]


def test_comments_of_sql_are_read() -> None:
    assert found("SELECT seldom FROM jobs; -- seldom\n", "a.sql") == ["seldom"]


def test_a_phrase_does_not_reach_across_code() -> None:
    assert found("It goes `here` on Monday.") == []


def test_a_marked_line_is_exempt() -> None:
    assert found("The desk is made of oak. <!-- wording: ok -->\n") == []
    assert found("told = 'is told'  # wording: ok\n", "one.py") == []


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("def _tell_all(): ...", "_tell_all"),
        ("async def look(): ...", "look"),
        ("class RemoteDesk: ...", "RemoteDesk"),
        ("def f(room): ...", "room"),
        ("free_hands = 1", "free_hands"),
        ("self.herald = 1", "herald"),
        ("class BulkAsk: ...", "BulkAsk"),
        ("class ChildAnswer: ...", "ChildAnswer"),
        ("option('--for', metavar='LENGTH')", "LENGTH"),
        ("option('--at', metavar='INSTANT')", "INSTANT"),
    ],
)
def test_avoided_names_are_found(source: str, name: str) -> None:
    assert found(source, "src/rota/one.py") == [name]


@pytest.mark.parametrize(
    "source", ["def lookup(): ...", "years = 1", "class Task: ...", "bedroom = tells = 1"]
)
def test_names_that_only_look_alike_are_left_alone(source: str) -> None:
    assert found(source, "src/rota/one.py") == []


def test_a_module_in_ing_is_found_unless_it_is_an_established_noun() -> None:
    assert found("", "src/rota/cli/asking.py") == ["asking.py"]
    assert found("", "src/rota/cli/time_parsing.py") == []
    assert found("", "tests/core/test_firing.py") == []


def test_a_class_defined_twice_in_the_package_is_found_at_each_place() -> None:
    package = {
        "src/rota/a.py": "class Rule: ...\n",
        "src/rota/b.py": "\nclass Rule(A): ...\nclass Other: ...\n",
    }
    assert [(hit.path, hit.line) for hit in wording.find(package, package)] == [
        ("src/rota/a.py", 1),
        ("src/rota/b.py", 2),
    ]
    one = {"src/rota/b.py": package["src/rota/b.py"]}
    assert [hit.found for hit in wording.find(one, package)] == ["Rule"]


def test_the_report_counts_by_directory_and_in_total() -> None:
    hits = wording.find({"docs/a.md": "nobody, nobody", "docs/b.md": "whoever", "README.md": "anew"}, {})
    assert wording.report(hits).split("\n")[-1].split() == ["3", "in", "total"]
    assert "     2  docs" in wording.report(hits)


def test_check_names_the_place_and_the_remedy_and_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\nSomebody wrote this.\n", encoding="utf-8")
    done = check(str(page))
    assert done.returncode == 1
    assert done.stdout == f"{page}:3: 'Somebody': someone, no one, or name them\n"
    left_out = check(str(page), "--except", str(page))
    assert (left_out.returncode, left_out.stdout) == (0, "")


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), "--check", *arguments], capture_output=True, text=True
    )
