"""Crontab files, line by line."""

from __future__ import annotations

import pytest

from rota.core.schedules.crontab import from_crontab
from rota.errors import InvalidSchedule

USER = """\
# nightly work
MAILTO=ops@example.org
SHELL = /bin/bash

0 3 * * *   /usr/local/bin/backup --all
CRON_TZ=America/New_York
30 8 * * MON-FRI\tcd /srv && A=1 ./digest   # not a comment
  @daily  /usr/bin/report
@reboot /usr/bin/once
*/0 * * * * broken
1 2 3
CRON_TZ="Mars/Olympus"
0 0 * * * lost
"""


def test_a_user_crontab_becomes_rules_and_errors() -> None:
    lines = from_crontab(USER)
    assert [(line.line, line.cron, line.command, line.timezone) for line in lines] == [
        (5, "0 3 * * *", "/usr/local/bin/backup --all", "UTC"),
        (7, "30 8 * * MON-FRI", "cd /srv && A=1 ./digest   # not a comment", "America/New_York"),
        (8, "@daily", "/usr/bin/report", "America/New_York"),
        (9, "@reboot", "/usr/bin/once", "America/New_York"),
        (10, "*/0 * * * *", "broken", "America/New_York"),
        (11, "1 2 3", "", "America/New_York"),
        (13, "0 0 * * *", "lost", "Mars/Olympus"),
    ]
    assert [line.rule is None for line in lines] == [False, False, False, True, True, True, True]
    assert [line.error is None for line in lines] == [False is not (line.rule is not None) for line in lines]
    assert "line 10: cron='*/0 * * * *': minute, column 3" in str(lines[4].error)
    assert "line 11: is too short" in str(lines[5].error)
    assert "line 13: timezone='Mars/Olympus'" in str(lines[6].error)


def test_a_system_crontab_names_a_user() -> None:
    (first, second) = from_crontab(
        "17 * * * * root run-parts /etc/cron.hourly\n@daily backup true\n", system=True
    )
    assert (first.user, first.command) == ("root", "run-parts /etc/cron.hourly")
    assert (second.cron, second.user, second.command) == ("@daily", "backup", "true")


@pytest.mark.parametrize(
    ("line", "system"), [("0 0 * * *", False), ("@daily", False), ("0 0 * * * root", True)]
)
def test_a_line_without_a_command_is_too_short(line: str, system: bool) -> None:
    (found,) = from_crontab(line, system=system)
    assert found.rule is None
    assert "is too short" in str(found.error)


def test_lines_end_as_they_like() -> None:
    assert [line.line for line in from_crontab("\ufeff* * * * * a\r\n* * * * * b\r\r\n* * * * * c")] == [
        1,
        2,
        4,
    ]


@pytest.mark.parametrize("text", ["x" * (1 << 21), "\n" * 20_000], ids=["two megabytes", "many lines"])
def test_a_huge_crontab_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchedule, match="at most"):
        from_crontab(text)
