"""``rota doctor``: findings worst first, each with its remedy, and exit codes that a script can use."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from cli.closed_port import closed_port
from rota import Rota
from rota.cli.root import root
from rota.model import ClaimRequest
from rota.store.calls import claim
from rota.worker.maintenance import rescue


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'rota.db'}"


def doctor(url: str, *args: str) -> Result:
    return CliRunner().invoke(root, ["doctor", "--url", url, *args])


def a_due_job(url: str) -> None:
    async def go() -> None:
        app = Rota(url)
        await app.enqueue("nobody_knows_me", {})
        await app.close()

    asyncio.run(go())


def test_doctor_of_a_healthy_store_passes_all_checks(url: str) -> None:
    result = doctor(url, "--strict")
    assert result.exit_code == 0, result.output
    assert "checks passed" in result.stdout and "problem" not in result.stdout
    told = msgspec.json.decode(doctor(url, "--json").stdout)
    assert told["worst"] == "ok"
    assert {"store", "schema", "clock", "workers"} <= {finding["check"] for finding in told["findings"]}


def test_doctor_lists_problems_first_and_exits_with_1(url: str) -> None:
    a_due_job(url)
    result = doctor(url)
    assert result.exit_code == 1
    first, second, remedy = result.stdout.splitlines()[:3]
    assert first == "1 problem"
    assert second == "  ✗ workers: no worker is running"
    assert remedy == "    Start one: rota worker --app MODULE:APP"


def test_doctor_warns_of_quarantined_jobs_until_they_are_released(url: str) -> None:
    async def quarantine(release: bool) -> str:
        app = Rota(url)
        store = await app.stores.get()
        if release:
            await (await app.jobs(state="failed")).items[0].retry()
        else:
            await app.enqueue("explodes", max_attempts=1)
            await claim(store, ClaimRequest(worker="dead", limit=1, lease_s=0), None)
            await rescue(store, app.clock, "w", 30, lambda job, state: None)
        (job,) = (await app.jobs()).items
        await app.close()
        return job.id

    job = asyncio.run(quarantine(release=False))
    result = doctor(url)
    assert "1 job is quarantined: workers stopped responding during explodes" in result.stdout
    assert f"rota jobs retry {job}" in result.stdout
    asyncio.run(quarantine(release=True))
    assert "quarantined" not in doctor(url).stdout


def test_doctor_fails_on_a_warning_only_with_strict(url: str, tmp_path: Path) -> None:
    assert doctor(url).exit_code == 0
    (tmp_path / "rota.db").chmod(0o644)
    result = doctor(url)
    assert result.exit_code == 0 and result.stdout.startswith("1 warning\n  ! permissions: ")
    assert doctor(url, "--strict").exit_code == 1
    assert msgspec.json.decode(doctor(url, "--strict", "--json").stdout)["worst"] == "warning"


def test_doctor_of_an_unreachable_store_exits_with_3_and_a_finding() -> None:
    with closed_port() as address:
        result = doctor(f"postgresql://{address}/none")
        told = doctor(f"postgresql://{address}/none", "--json")
    assert result.exit_code == 3 and "the URL is correct" in result.stdout
    assert told.exit_code == 3
    (finding,) = msgspec.json.decode(told.stdout)["findings"]
    assert (finding["check"], finding["level"]) == ("store", "problem")


def test_doctor_of_an_outdated_schema_exits_with_4(postgres_url: str) -> None:
    result = doctor(postgres_url)
    assert result.exit_code == 4, result.output
    assert "schema" in result.stdout and "rota migrate" in result.stdout
