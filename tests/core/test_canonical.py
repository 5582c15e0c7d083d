"""Values to JSON text: the same verdict for every store, whatever comes in."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rota.core.payload.codec import decode, encode
from rota.errors import PayloadError

Pair = namedtuple("Pair", "a b")


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Safe(str):
    pass


@dataclass
class Point:
    x: float
    y: Any = None


class Box(msgspec.Struct):
    inside: Any


class Model:
    """Looks like a pydantic model: only its method counts."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        assert mode == "json"
        return self.fields


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": 1, "b": [1.5, True, None, "x"]}, '{"a":1,"b":[1.5,true,null,"x"]}'),
        ((1, 2), "[1,2]"),
        (Pair(1, 2), "[1,2]"),
        ({7}, "[7]"),
        (frozenset({7}), "[7]"),
        (b"abc", '"YWJj"'),
        (Colour.RED, '"red"'),
        (Level.HIGH, "3"),
        (Safe("x"), '"x"'),
        (dt.datetime(2030, 1, 2, 3, 4, 5, tzinfo=dt.UTC), '"2030-01-02T03:04:05Z"'),
        (dt.date(2030, 1, 2), '"2030-01-02"'),
        (dt.time(3, 4), '"03:04:00"'),
        (dt.timedelta(seconds=90), '"PT90S"'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Decimal("1.10"), '"1.10"'),
        (Point(1.0, 2.0), '{"x":1.0,"y":2.0}'),
        (Box([Point(1.0)]), '{"inside":[{"x":1.0,"y":null}]}'),
        (Model(a=[1]), '{"a":[1]}'),
        ({"m": [Model(a=Model(b=1))]}, '{"m":[{"a":{"b":1}}]}'),
        ({1: "a"}, '{"1":"a"}'),
        (OrderedDict(a=1), '{"a":1}'),
        (2**63 - 1, "9223372036854775807"),
        (-(2**63), "-9223372036854775808"),
        ("1234567890123456789012345", '"1234567890123456789012345"'),
        ("\\u0000", '"\\\\u0000"'),
        ("☃😀", '"☃😀"'),
        ("[" * 300, '"' + "[" * 300 + '"'),
    ],
)
def test_what_can_be_stored_is_written_compactly(value: Any, text: str) -> None:
    assert encode(value, limit=10_000, what="payload") == text


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def endless() -> Any:
    loop: list[Any] = []
    loop += [loop, loop]
    return loop


@pytest.mark.parametrize(
    ("value", "place", "cause"),
    [
        ({"items": [1, 2, 3, {"name": float("nan")}]}, "payload.items[3].name", "nan"),
        ({"a": float("inf")}, "payload.a", "inf"),
        ({"a": None, "b": Point(float("-inf"))}, "payload.b.x", "inf"),
        (Box(float("nan")), "payload.inside", "nan"),
        (Model(a=float("nan")), "payload.a", "nan"),
        ({"a": ["x\0y"]}, "payload.a[0]", "NUL"),
        ({"x\0y": 1}, "payload", "NUL"),
        ({"a": "x\ud800"}, "payload.a", "surrogate"),
        ({"a": {"\udfff": 1}}, "payload.a", "surrogate"),
        ({"a": 2**63}, "payload.a", "64 bits"),
        ({"a": -(2**63) - 1}, "payload.a", "64 bits"),
        ({"a": 10**5000}, "payload.a", "64 bits"),
        ({"a b": [object()]}, "payload['a b'][0]", "type object"),
        ({"a": {1, 2j}}, "payload.a", "complex"),
        ({"a": Point}, "payload.a", "type type"),
        ({"a": Point(1.0, object)}, "payload.a.y", "type type"),
        ({"a": {None: 1}}, "payload.a", "key of type NoneType"),
        ({"a": {(1, 2): 1}}, "payload.a", "key of type tuple"),
        (nested(101), "payload", "deeper than 100"),
        (nested(100_000), "payload", "deeper than 100"),
        (endless(), "payload", "contains itself"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_place_and_cause(value: Any, place: str, cause: str) -> None:
    with pytest.raises(PayloadError) as caught:
        encode(value, limit=10**9, what="payload")
    message = str(caught.value)
    assert message.startswith(place)
    assert cause in message
    assert len(message) < 600


def test_depth_up_to_the_limit_is_fine() -> None:
    assert decode(encode(nested(100))) == nested(100)


def test_size_is_counted_in_bytes_of_the_text() -> None:
    assert encode("é" * 10, limit=22, what="output") == '"' + "é" * 10 + '"'
    with pytest.raises(PayloadError, match="output is 22 bytes long, the limit is 21 bytes"):
        encode("é" * 10, limit=21, what="output")


def test_an_error_in_the_values_own_code_is_a_payload_error() -> None:
    class Broken:
        def model_dump(self, mode: str) -> Any:
            raise KeyError("inside")

    with pytest.raises(PayloadError, match="inside"):
        encode({"a": Broken()})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("NaN", "not valid JSON"),
        ('"\\ud800"', "not valid JSON"),
        ('"\ud800"', "not valid JSON"),
        ("1e999", "not valid JSON"),
        ("[" * 100_000, "nested deeper than 100"),
        ("[" * 101 + "]" * 101, "nested deeper than 100"),
        ('{"a":["\\u0000"]}', r"payload.a\[0\].*NUL"),
        ('{"a":9223372036854775808}', "payload.a.*64 bits"),
        ("1" * 5000, "64 bits|not valid JSON"),
        ('"' + "x" * 2_000_000 + '"', "2000002 bytes long"),
    ],
)
def test_faulty_text_from_outside_is_refused(text: str, reason: str) -> None:
    with pytest.raises(PayloadError, match=reason):
        decode(text)


def test_of_equal_keys_the_last_wins() -> None:
    assert decode('{"a":1,"a":2}') == {"a": 2}


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner, max_size=5
        )
    ),
    max_leaves=20,
)
hostile = st.recursive(
    st.none()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.decimals()
    | st.complex_numbers()
    | st.sampled_from([object(), object, Point, Colour.RED, len, msgspec.UNSET, ..., Ellipsis]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters()) | st.integers() | st.none() | st.floats(), inner, max_size=4
        )
        | st.builds(Point, st.floats(), inner)
        | st.builds(Box, inner)
        | st.builds(lambda value: Model(a=value), inner)
        | st.tuples(inner, inner)
    ),
    max_leaves=15,
)


@examples()
@given(plain)
def test_plain_values_come_back_as_they_went(value: Any) -> None:
    assert decode(encode(value)) == value


@examples()
@given(hostile)
def test_nothing_but_a_payload_error_is_ever_raised(value: Any) -> None:
    try:
        text = encode(value)
    except PayloadError as error:
        assert str(error)
    else:
        assert encode(decode(text)) is not None


@examples()
@given(st.text(st.characters()) | st.text('[]{}",:0123456789.eE-+\\u nulltruefalse'))
def test_no_text_raises_anything_but_a_payload_error(text: str) -> None:
    try:
        value = decode(text)
    except PayloadError as error:
        assert str(error)
    else:
        assert decode(encode(value)) == value
