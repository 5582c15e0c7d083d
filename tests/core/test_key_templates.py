"""Keys that are filled from arguments, and keys of a period."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rota import OptionError
from rota.core.jobs.key_templates import check_placeholders, fill, in_period, kept_for, placeholders
from rota.core.jobs.options import Options, options

PAYLOAD = '{"order_id":42,"name":"a {b} c","order":{"id":7,"lines":[1]},"paid":true,"rate":0.5,"note":null}'


@pytest.mark.parametrize(
    ("template", "key"),
    [
        ("plain", "plain"),
        ("order:{order_id}", "order:42"),
        ("{order_id}:{order.id}:{order_id}", "42:7:42"),
        ("{name}", "a {b} c"),
        ("{paid}{rate}{note}", "true0.5null"),
        ("{{order_id}}", "{order_id}"),
        ("{{order_id}}:{order_id}", "{order_id}:42"),
        ('{"a":{}}{ }{0}', '{"a":{}}{ }{0}'),
    ],
)
def test_placeholders_are_filled_and_other_braces_kept(template: str, key: str) -> None:
    assert fill("key", template, PAYLOAD) == key


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{ordr_id}", "no argument 'ordr_id'; did you mean {order_id}"),
        ("{zzz}", "write {{zzz}}"),
        ("{order}", "is an object; use a text or a number"),
        ("{order.lines}", "is a list"),
        ("{order.number}", "no argument 'number'"),
        ("{order_id.x}", "no argument 'x'"),
    ],
)
def test_a_placeholder_that_cannot_be_filled_is_refused(template: str, words: str) -> None:
    with pytest.raises(OptionError) as caught:
        fill("key", template, PAYLOAD)
    assert words in str(caught.value)


def test_a_filled_key_is_checked_like_any_other() -> None:
    for value in ("x" * 201, "a\\nb", ""):
        with pytest.raises(OptionError):
            fill("key", "{v}", f'{{"v":"{value}"}}')


def test_placeholders_are_checked_against_the_arguments_of_a_task() -> None:
    assert placeholders("{a}:{b.c}:{{d}}:{}") == ["a", "b"]
    check_placeholders("key", "{a}:{b.c}:{{d}}", ("a", "b"))
    with pytest.raises(OptionError, match="no argument 'c'"):
        check_placeholders("key", "{a}{c}", ("a", "b"))


@pytest.mark.parametrize(
    ("period", "key"),
    [
        ("1h", "k@2030-01-31T22:00:00Z"),
        ("15m", "k@2030-01-31T22:15:00Z"),
        ("1d", "k@2030-01-31T00:00:00Z"),
        ("1w", "k@2030-01-28T00:00:00Z"),  # a Monday
    ],
)
def test_a_period_begins_at_the_full_hour_at_midnight_and_on_monday(period: str, key: str) -> None:
    now = datetime(2030, 1, 31, 22, 29, 59, tzinfo=UTC)
    seconds = options({"key_per": period}).key_per
    assert seconds is not None
    assert in_period("key", "k", seconds, now) == key


def test_a_key_of_a_period_is_kept_for_the_rest_of_it() -> None:
    assert kept_for(Options(key="k")) is None
    assert kept_for(options({"key": "k", "key_for": "1h"})) == 3600
    assert kept_for(options({"key": "k", "key_per": "1d"})) == 86400
    assert kept_for(options({"key": "k", "key_per": "1d", "key_for": "forever"})) == 100 * 365 * 86400
    for option in ("key_for", "key_per"):
        with pytest.raises(OptionError, match=f"{option} says how long"):
            kept_for(options({option: 60}))
