"""Pages: the row beyond the limit, cursors, and rows that cannot be read."""

from __future__ import annotations

import logging
from operator import itemgetter

import pytest

from rota.errors import OptionError
from rota.model import PageRequest
from rota.store import cursors


@pytest.mark.parametrize(
    ("rows", "shown", "following"), [(0, 0, None), (2, 2, None), (3, 3, None), (4, 3, "3")]
)
def test_a_row_beyond_the_limit_means_that_a_page_follows(
    rows: int, shown: int, following: str | None
) -> None:
    page = cursors.page([(n + 1,) for n in range(rows)], 3, itemgetter(0), itemgetter(0))
    assert (len(page.items), page.next) == (shown, following)


def test_a_row_that_cannot_be_read_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "rota.store"):
        page = cursors.page([("1",), ("x",), ("3",)], 2, lambda row: int(row[0]), itemgetter(0))
    assert (page.items, page.next) == ([1], "x")
    assert "row x cannot be read" in caplog.text


def test_a_pair_comes_back_from_its_cursor() -> None:
    for pair in (("a", "b"), ("", '"[]/é'), ("\n", "\x00")):
        assert cursors.read_pair(cursors.pair(*pair)) == pair
    assert cursors.read_pair(None) is None


@pytest.mark.parametrize("cursor", ["x", "[]", '["a"]', "[1,2]", "?"])
def test_a_cursor_from_elsewhere_is_an_error(cursor: str) -> None:
    with pytest.raises(OptionError, match=r"cursor=.*start without a cursor"):
        cursors.read_pair(cursor)


def test_pages_by_id_go_either_way() -> None:
    assert cursors.by_id(PageRequest()) == ("DESC", "<")
    assert cursors.by_id(PageRequest(newest_first=False)) == ("ASC", ">")
