"""Rules for files that no Python tool checks: the dashboard's scripts, and the README files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ADMIN = ROOT / "src/rota/admin"
COLUMNS = 120
SCRIPTS = [
    path
    for path in sorted([*ADMIN.rglob("*.js"), *(ROOT / "tools/dashboard").glob("*.js")])
    if "vendor" not in path.parts
]
READMES = [
    *sorted(ROOT.glob("*.md")),
    *(path for folder in ("bench", "docs", "src") for path in sorted((ROOT / folder).rglob("README.md"))),
]
MAKE = re.compile(r"`make ([a-z-]+)")
TARGET = re.compile(r"^([a-z-]+):", re.M)


def test_no_line_of_a_script_is_longer_than_the_limit() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{n}: {len(line)}"
        for path in SCRIPTS
        for n, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > COLUMNS
    ]
    assert SCRIPTS
    assert long == []


def test_no_script_of_the_dashboard_uses_the_type_any() -> None:
    pattern = re.compile(r"@\w+ \{[^}]*\bany\b|[<|:=>(] any\b(?! )|\bany\[\]")
    found = [
        f"{path.relative_to(ROOT)}:{n}"
        for path in SCRIPTS
        for n, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_generated_types_and_choices_of_the_dashboard_match_the_server() -> None:
    check = [sys.executable, str(ROOT / "tools/dashboard_types.py"), "--check"]
    made = subprocess.run(check, capture_output=True, text=True, timeout=60)
    assert made.returncode == 0, made.stdout


@pytest.mark.parametrize("readme", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_make_target_in_a_readme_exists(readme: Path) -> None:
    targets = set(TARGET.findall((ROOT / "Makefile").read_text()))
    assert set(MAKE.findall(readme.read_text())) - targets == set()
