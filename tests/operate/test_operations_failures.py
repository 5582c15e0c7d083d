"""Failed jobs grouped by error: bounded, limited to the tenant, masked."""

from __future__ import annotations

import pytest
from actors import operations_of

from rota import Rota
from rota.model import State
from rota.operate import Operations, failures
from rota.operate.requests import BulkRequest, FailuresRequest, JobsRequest
from rota.testing import FakeClock, drain


@pytest.fixture
def failing(app: Rota) -> Rota:
    """An app whose tasks always fail."""

    @app.task(max_attempts=1)
    async def charge(order: int, name: str = "Ada", kind: str = "value") -> None:
        if kind == "lookup":
            raise LookupError(f"order {order} of '{name}' is gone")
        raise ValueError(f"order {order} of '{name}' is gone")

    @app.task(max_attempts=1)
    async def refund(order: int) -> None:
        raise ValueError(f"order {order} of 'Ada' is gone")

    return app


async def fail(app: Rota, task: str, *payloads: dict[str, object], **given: object) -> list[str]:
    made = [(await app.enqueue(task, one, **given)).id for one in payloads]  # type: ignore[arg-type]
    await drain(app)
    return made


async def test_errors_that_differ_only_in_numbers_and_names_are_one_group(
    failing: Rota, operations: Operations
) -> None:
    assert isinstance(failing.clock, FakeClock)
    began = failing.clock.now()
    first, second = await fail(failing, "charge", {"order": 1}, {"order": 22, "name": "Bob"})
    failing.clock.advance(60)
    (third,) = await fail(failing, "charge", {"order": 333})
    await fail(failing, "charge", {"order": 1, "kind": "lookup"})
    await fail(failing, "refund", {"order": 1})
    found = await operations.jobs.failures(FailuresRequest())
    assert {(one.task, one.type) for one in found.items} == {
        ("charge", "ValueError"),
        ("charge", "LookupError"),
        ("refund", "ValueError"),
    }
    assert (found.groups, found.of, found.more) == (3, 5, False)
    group = found.items[0]
    assert (group.task, group.type, group.count) == ("charge", "ValueError", 3)
    assert group.ids == (third, second, first)
    assert (group.newest, group.message) == (third, "order 333 of 'Ada' is gone")
    assert (group.last_at - group.first_at).total_seconds() == 60
    assert group.first_at >= began
    assert found.last_at == max(one.last_at for one in found.items)


async def test_a_group_can_be_retried_by_its_ids(failing: Rota, operations: Operations) -> None:
    await fail(failing, "charge", {"order": 1}, {"order": 2})
    await fail(failing, "refund", {"order": 1})
    group = (await operations.jobs.failures(FailuresRequest())).items[0]
    done = await operations.jobs.bulk(BulkRequest(action="retry", ids=group.ids))
    assert done.done == 2
    assert [one.task for one in (await operations.jobs.failures(FailuresRequest())).items] == ["refund"]


async def test_failures_are_filtered_by_task_queue_and_tenant_and_limited(
    failing: Rota, operations: Operations
) -> None:
    await fail(failing, "charge", {"order": 1}, queue="pay", tenant="acme")
    await fail(failing, "refund", {"order": 1})
    for request in (
        FailuresRequest(task="charge"),
        FailuresRequest(queue="pay"),
        FailuresRequest(tenant="acme"),
    ):
        assert [one.task for one in (await operations.jobs.failures(request)).items] == ["charge"]
    few = await operations.jobs.failures(FailuresRequest(limit=1))
    assert (len(few.items), few.groups, few.of) == (1, 2, 2)


async def test_only_finally_failed_jobs_are_grouped(failing: Rota, operations: Operations) -> None:
    await fail(failing, "send", {"to": "x"})
    await fail(failing, "charge", {"order": 1}, max_attempts=2)
    assert (await operations.jobs.list(JobsRequest(state=(State.QUEUED,)))).items
    assert (await operations.jobs.failures(FailuresRequest())).items == ()


async def test_tenant_sees_only_its_own_failures(failing: Rota) -> None:
    await fail(failing, "charge", {"order": 1}, tenant="acme")
    (own,) = await fail(failing, "charge", {"order": 2}, tenant="globex")
    (group,) = (await operations_of(failing, "viewer", "globex").jobs.failures(FailuresRequest())).items
    assert (group.ids, group.count) == ((own,), 1)


async def test_only_the_newest_failures_are_read_and_more_is_set(
    failing: Rota, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "PAGE", 2)
    monkeypatch.setattr(failures, "PAGES", 2)
    monkeypatch.setattr(failures, "MOST_IDS", 3)
    made = await fail(failing, "charge", *({"order": order} for order in range(5)))
    found = await operations.jobs.failures(FailuresRequest())
    assert (found.of, found.more) == (4, True)
    (group,) = found.items
    assert (group.count, group.ids) == (4, tuple(reversed(made[-3:])))


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ('{"password": "hunter2", "why": 3}', ("", '{"password":"•••","why":3}')),
        ('{"type": "E", "message": {"token": "abc"}}', ("E", '{"token":"•••"}')),
        ('{"type": null, "message": "plain"}', ("", "plain")),
        ("[1", ("", '{"unreadable":"[1"}')),
        (None, ("", "")),
    ],
)
def test_any_stored_error_is_shown_and_masked(
    operations: Operations, stored: str | None, shown: tuple[str, str]
) -> None:
    assert failures._error(operations.visibility.error(stored)) == shown
