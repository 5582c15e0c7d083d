"""Failed jobs by what went wrong: grouped, bounded, of one's own tenant, masked."""

from __future__ import annotations

import pytest
from desks import desk_of

from rota import Rota
from rota.model import State
from rota.operate import Operations, failures
from rota.operate.requests import BulkRequest, FailuresRequest, JobsRequest
from rota.testing import FakeClock, drain


@pytest.fixture
def failing(app: Rota) -> Rota:
    """A shop whose tasks fail as they are told to."""

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


async def test_errors_that_differ_in_numbers_and_names_are_one_group(
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


async def test_one_may_ask_for_a_task_a_queue_a_tenant_and_a_few(
    failing: Rota, operations: Operations
) -> None:
    await fail(failing, "charge", {"order": 1}, queue="pay", tenant="acme")
    await fail(failing, "refund", {"order": 1})
    for ask in (FailuresRequest(task="charge"), FailuresRequest(queue="pay"), FailuresRequest(tenant="acme")):
        assert [one.task for one in (await operations.jobs.failures(ask)).items] == ["charge"]
    few = await operations.jobs.failures(FailuresRequest(limit=1))
    assert (len(few.items), few.groups, few.of) == (1, 2, 2)


async def test_only_jobs_that_failed_for_good_are_told(failing: Rota, operations: Operations) -> None:
    await fail(failing, "send", {"to": "x"})
    await fail(failing, "charge", {"order": 1}, max_attempts=2)
    assert (await operations.jobs.list(JobsRequest(state=(State.QUEUED,)))).items
    assert (await operations.jobs.failures(FailuresRequest())).items == ()


async def test_a_tenant_is_told_of_its_own_failures_alone(failing: Rota) -> None:
    await fail(failing, "charge", {"order": 1}, tenant="acme")
    (own,) = await fail(failing, "charge", {"order": 2}, tenant="globex")
    (group,) = (await desk_of(failing, "viewer", "globex").jobs.failures(FailuresRequest())).items
    assert (group.ids, group.count) == ((own,), 1)


async def test_no_more_than_the_newest_are_read_and_that_is_said(
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
    ("stored", "told"),
    [
        ('{"password": "hunter2", "why": 3}', ("", '{"password":"•••","why":3}')),
        ('{"type": "E", "message": {"token": "abc"}}', ("E", '{"token":"•••"}')),
        ('{"type": null, "message": "plain"}', ("", "plain")),
        ("[1", ("", '{"unreadable":"[1"}')),
        (None, ("", "")),
    ],
)
def test_whatever_was_stored_as_an_error_is_told_and_masked(
    operations: Operations, stored: str | None, told: tuple[str, str]
) -> None:
    assert failures._told(operations.visibility.open(stored)) == told
