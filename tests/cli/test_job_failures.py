"""``rota jobs failures``: what went wrong, as a table and as JSON; on a store and over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from admin.sites import Site
from rota import Rota
from rota.cli.root import root
from rota.testing import drain

HOSTILE = "\x1b[31mred\x9b2J\u202eevil"


async def fail(url: str, *texts: str) -> None:
    app = Rota(url)

    @app.task(max_attempts=1)
    async def boom(text: str) -> None:
        raise ValueError(text)

    await app.migrate()
    for text in texts:
        await app.enqueue("boom", {"text": text})
    await drain(app)
    await app.close()


def invoke(url: str, *args: str) -> Result:
    return CliRunner().invoke(root, ["jobs", "failures", "--url", url, *args])


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return f"sqlite:///{tmp_path / 'rota.db'}"


def test_failures_are_grouped_by_error(url: str) -> None:
    asyncio.run(fail(url, "order 1 is gone", "order 22 is gone", "no ink"))
    told = invoke(url)
    assert told.exit_code == 0, told.output
    head, first, second = told.stdout.splitlines()
    assert head.split() == ["JOBS", "TASK", "ERROR", "FIRST", "LAST", "NEWEST", "JOB"]
    assert first.split()[:2] == ["2", "boom"] and "ValueError: order # is gone" in first
    assert second.split()[:2] == ["1", "boom"] and "ValueError: no ink" in second
    assert "From 3 failed jobs." in told.stderr


def test_groups_beyond_the_limit_are_counted(url: str) -> None:
    asyncio.run(fail(url, "no ink", "no paper"))
    told = invoke(url, "--limit", "1")
    assert len(told.stdout.splitlines()) == 2
    assert "1 more group" in told.stderr


def test_one_failed_job_is_one_job(url: str) -> None:
    asyncio.run(fail(url, "no ink"))
    assert "From 1 failed job." in invoke(url).stderr


def test_no_failures_prints_the_empty_state(url: str) -> None:
    asyncio.run(fail(url))
    assert invoke(url).stdout == "No job has failed.\n"


def test_control_characters_in_a_message_are_escaped(url: str) -> None:
    asyncio.run(fail(url, HOSTILE))
    told = invoke(url)
    assert "red" in told.stdout
    assert all(one.isprintable() or one == "\n" for one in told.stdout)


@pytest.fixture
def site(url: str) -> Iterator[Site]:
    asyncio.run(fail(url, "order 1 is gone", "order 22 is gone"))
    started = Site(url)
    yield started
    started.close()


def test_a_server_lists_the_same_failures_as_the_store(
    url: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    here: Any = msgspec.json.decode(invoke(url, "--json").stdout)
    monkeypatch.setenv("ROTA_TOKEN", site.token("viewer", payloads=True))
    there = CliRunner().invoke(root, ["jobs", "failures", "--api", site.server.url, "--json"])
    assert there.exit_code == 0, there.output
    assert msgspec.json.decode(there.stdout) == here
    assert (here["of"], here["groups"], here["more"], here["items"][0]["count"]) == (2, 1, False, 2)
