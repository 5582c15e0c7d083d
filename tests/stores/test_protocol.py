"""The store protocol, its document, both stores and the suite say the same."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from rota import model
from rota.model import Capabilities, Question
from rota.store import protocol
from rota.store.postgres.store import PostgresStore
from rota.store.protocol import Store, StoreSchema
from rota.store.sqlite.store import SqliteStore
from rota.testing.store_conformance import StoreConformance, StoreCrashConformance

DOCUMENT = (Path(__file__).parents[2] / "docs/reference/writing-a-store.md").read_text()
STORES = [SqliteStore, PostgresStore]
MOST_METHODS = 32


def members(of: type) -> set[str]:
    return {name for name in vars(of) if not name.startswith("_")}


def methods(of: type) -> set[str]:
    return {name for name in members(of) if inspect.isfunction(vars(of)[name])}


def section(heading: str) -> str:
    """The text below a heading, up to the next one of its level or above."""
    level = heading.split(" ")[0]
    _, _, rest = DOCUMENT.partition(f"\n{heading}\n")
    assert rest, heading
    return re.split(rf"\n#{{1,{len(level)}}} ", rest)[0]


def first_column(text: str) -> set[str]:
    return set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))


def rules(text: str) -> list[tuple[int, str]]:
    """Number and title of each rule."""
    found = re.findall(r"^(\d+)\. +(?:\*\*)?([A-Z][\w ]+)\.", text, re.MULTILINE)
    return [(int(number), title) for number, title in found]


def test_the_protocol_is_small() -> None:
    assert len(methods(Store)) + len(methods(StoreSchema)) <= MOST_METHODS


def test_the_document_lists_every_member_of_the_protocol() -> None:
    documented = first_column(section("## The methods").split("\n### ")[0])
    assert documented == members(Store) | members(StoreSchema)


def test_the_document_lists_every_question() -> None:
    questions = {cls.__name__ for cls in Question.__subclasses__()}
    assert first_column(section("### Questions")) == questions <= set(model.__all__)


def test_the_document_lists_every_capability() -> None:
    assert first_column(section("### Capabilities")) == set(Capabilities.__struct_fields__)


def test_the_document_has_the_rules_of_the_protocol() -> None:
    stated = rules(protocol.__doc__ or "")
    assert [number for number, _ in stated] == list(range(1, len(stated) + 1))
    assert rules(section("## The rules")) == stated


def rule_numbers(test: Any) -> list[int]:
    return [number for mark in getattr(test, "pytestmark", []) if mark.name == "rule" for number in mark.args]


NO_POLICY = 16  # shown by the import rules and by the property test of PostgreSQL's claims


def test_every_rule_has_its_tests_and_every_test_its_rule() -> None:
    marked: set[int] = set()
    for suite in (StoreConformance, StoreCrashConformance):
        for name, test in inspect.getmembers(suite, inspect.isfunction):
            if name.startswith("test_"):
                assert len(rule_numbers(test)) == 1, name
                marked.update(rule_numbers(test))
    stated = {number for number, _ in rules(protocol.__doc__ or "")}
    assert marked == stated - {NO_POLICY}


@pytest.mark.parametrize("store", STORES)
def test_a_store_has_the_members_of_the_protocol_and_no_others(store: type) -> None:
    public = members(store) | ({"schema"} if store is PostgresStore else set())  # set by its constructor
    assert public == members(Store)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("name", sorted(methods(Store)))
def test_a_method_is_called_as_the_protocol_says(store: type, name: str) -> None:
    stated, own = (inspect.signature(getattr(of, name)).parameters for of in (Store, store))
    assert [(one.name, one.kind, one.default) for one in own.values()] == [
        (one.name, one.kind, one.default) for one in stated.values()
    ]
