"""A job is declared once: the fields, the templates and what is generated from them agree."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rota.model import Job, NewJob
from rota.store.sql.fields import CARRIED, FIELDS, JOB, NEW, OPTIONS
from rota.store.sql.templates import render

ROOT = Path(__file__).parent.parent.parent


def test_every_field_of_a_job_is_declared_once() -> None:
    names = [field.name for field in FIELDS]
    assert sorted(names) == sorted(Job.__struct_fields__)
    assert [field.name for field in JOB] == list(Job.__struct_fields__)


def test_every_field_of_a_new_job_is_stored() -> None:
    given = {field.name for field in NEW}
    # What to do, and not what to store; and how long a key stays taken is stored with the key.
    assert set(NewJob.__struct_fields__) - given == {"on_conflict", "key_for"}
    assert given - {field.name for field in OPTIONS} == {"id", "payload_json", "run_at", "priority"}
    assert set(NEW) <= set(CARRIED)


def test_the_generated_sql_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "store_sql.py"), "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_a_field_is_spelled_out_nowhere_else_in_the_stores() -> None:
    """``parent`` stands for all fields that no statement treats in its own way."""
    spelled = [
        f"{path.name}: {line.strip()}"
        for path in sorted((ROOT / "src" / "rota" / "store").rglob("*"))
        if path.suffix in (".py", ".sql") and path.name != "generated.sql"
        for line in path.read_text().splitlines()
        if re.search(r"\bparent\b", line) and "parent process" not in line
    ]
    assert len(spelled) == 1, spelled


LISTS = {
    "pair": lambda prefix, without: [f"{prefix}{name}" for name in ("a", "b") if name not in without],
    "some columns": lambda _, __: ["a int", "b int"],
}


def test_a_placeholder_is_filled_in() -> None:
    assert render("({pair})", LISTS) == "(a, b)"
    assert render("({pair of t})", LISTS) == "(t.a, t.b)"
    assert render("({pair of t except a})", LISTS) == "(t.b)"
    assert render("(\n    {some columns}\n)", LISTS) == "(\n    a int,\n    b int\n)"


@pytest.mark.parametrize("template", ["{nothing}", "{pair except c}"])
def test_a_placeholder_that_means_nothing_is_an_error(template: str) -> None:
    with pytest.raises(KeyError):
        render(template, LISTS)


def test_braces_that_are_no_placeholders_stay() -> None:
    text = """SELECT '{}', '{"a": 1}', '{1,2}' -- [{queue, rank}]"""
    assert render(text, LISTS) == text
