"""JSON in the browser keeps integers exact, and the shapes it is checked against are the server's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from scene import Visit

ROOT = Path(__file__).parents[2]
THERE_AND_BACK = "async (text) => { const m = await import('/exact.js'); return m.write(m.parse(text)); }"


TEXTS = (
    '{"a":9123456789012345678}',
    '{"a":-9123456789012345678,"b":[1,2.5,12345678901234567]}',
    '{"a":"9123456789012345678"}',
    r'{"a":"quoted \" 9123456789012345678 "}',
    '{"9123456789012345678":1}',
    '{"a":0.1234567890123456}',
    "9007199254740993",
    '{"a":9007199254740991}',
)


@pytest.mark.parametrize("site", ["sqlite"], indirect=True)
def test_integers_survive_the_way_there_and_back(visit: Visit) -> None:
    visitor = visit("/lost")
    assert [visitor.page.evaluate(THERE_AND_BACK, text) for text in TEXTS] == list(TEXTS)


def test_the_types_of_the_dashboard_are_those_of_the_server() -> None:
    check = [sys.executable, str(ROOT / "tools/dashboard_types.py"), "--check"]
    made = subprocess.run(check, capture_output=True, text=True, timeout=60)
    assert made.returncode == 0, made.stdout
