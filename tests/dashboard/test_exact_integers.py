"""JSON in the browser keeps large integers exact."""

from __future__ import annotations

import pytest
from scene import Visit

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
def test_large_integers_survive_a_round_trip(visit: Visit) -> None:
    visitor = visit("/lost")
    assert [visitor.page.evaluate(THERE_AND_BACK, text) for text in TEXTS] == list(TEXTS)
