"""The audit log is a hash chain: what is changed, removed or forged shows, and retention keeps it whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import timedelta

import msgspec
import psycopg
import pytest
from actors import operations_of

from rota import Rota
from rota.errors import Forbidden, NotFound, OptionError
from rota.model import AuditEntry, AuditFilter, AuditSeals, Page, PageRequest, RetentionCutoffs
from rota.operate import Operations
from rota.operate.requests import VerifyAuditRequest
from rota.operate.views import AuditVerification
from rota.runtime.audit import DENIED_A_MINUTE
from rota.testing import FakeClock
from rota.worker.audit_seals import seal

RUNNING = ("sqlite-file", "postgres")  # others can write to them


async def fill(app: Rota, batches: Sequence[int] = (3, 2, 4)) -> None:
    store = await app.stores.get()
    for batch in batches:
        entries = [AuditEntry(action=f"test.{n}", at=app.clock.now(), actor="ann") for n in range(batch)]
        await store.append_audit(entries)
        assert await seal(store, app.clock) is not None


async def verified(operations: Operations, **given: object) -> AuditVerification:
    return await operations.system.verify_audit(VerifyAuditRequest(**given))  # type: ignore[arg-type]


def attack(url: str, *statements: str) -> None:
    """As someone with every right on the database; ``{}`` stands for the prefix of the tables."""
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
            for trigger in ("rota_audit_append_only", "rota_audit_kept"):
                file.execute(f"DROP TRIGGER {trigger}")
            for statement in statements:
                file.execute(statement.replace("{}", "rota_"))
        file.close()
        return
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER TABLE rota.audit DISABLE TRIGGER USER")
        for statement in statements:
            connection.execute(statement.replace("{}", "rota.").encode())


async def test_an_intact_log_is_verified_page_by_page(operations: Operations, app: Rota) -> None:
    nothing = await verified(operations)
    assert (nothing.ok, nothing.head, nothing.seals, nothing.unsealed) == (True, None, 0, 0)
    await fill(app)
    await (await app.stores.get()).append_audit([AuditEntry(action="last", at=app.clock.now())])
    result = await verified(operations)
    assert (result.ok, result.seals, result.entries, result.unsealed) == (True, 3, 9, 1)
    assert result.oldest_unsealed_at == app.clock.now() and result.next is None
    first = await verified(operations, limit=2)
    rest = await verified(operations, limit=2, after=first.next)
    assert (first.seals, first.next, rest.seals, rest.next, rest.ok) == (2, 2, 1, None, True)
    again = await verified(operations, expect_head=result.head)
    assert again.ok and again.head == result.head and (result.head or "").startswith("3:")


@pytest.mark.parametrize("store_url", RUNNING, indirect=True)
@pytest.mark.parametrize(
    ("statement", "broken", "said"),
    [
        (
            "UPDATE {}audit SET actor = 'eve' WHERE seal = 2 AND action = 'test.1'",
            2,
            "was changed or replaced",
        ),
        ("DELETE FROM {}audit WHERE seal = 2 AND action = 'test.1'", 2, "1 of 2 entries are missing"),
        ("UPDATE {}audit SET seal = 2 WHERE seal = 1 AND action = 'test.1'", 1, "1 of 3 entries are missing"),
        ("DELETE FROM {}audit WHERE seal = 3", 3, "4 of 4 entries are missing"),
        ("DELETE FROM {}audit_seals WHERE number = 2", 3, "missing before it: 2"),
        ("DELETE FROM {}audit_seals WHERE number = 1", 2, "missing before it: 1 to 1"),
        ("DELETE FROM {}audit_seals WHERE number = 3", 3, "the seal is missing, but its entries are there"),
        ("UPDATE {}audit_seals SET entries = 1 WHERE number = 2", 2, "the seal was changed"),
        ("UPDATE {}audit_seals SET pruned_at = sealed_at WHERE number = 2", 2, "marked as pruned, but"),
        ("UPDATE {}audit_seals SET pruned_at = sealed_at WHERE number = 1", 1, "before the retention of"),
    ],
)
async def test_tampering_shows(
    operations: Operations, app: Rota, store_url: str, statement: str, broken: int, said: str
) -> None:
    await fill(app)
    attack(store_url, statement)
    result = await verified(operations)
    assert not result.ok
    assert (result.problems[0].seal, said in result.problems[0].text) == (broken, True), result.problems
    findings = (await operations.system.doctor()).findings
    assert any(one.check == "audit" and one.level == "problem" for one in findings)


@pytest.mark.parametrize("store_url", RUNNING, indirect=True)
async def test_an_end_that_was_cut_off_or_made_again_shows_beside_a_noted_head(
    operations: Operations, app: Rota, store_url: str
) -> None:
    await fill(app)
    head = (await verified(operations)).head
    attack(store_url, "DELETE FROM {}audit WHERE seal = 3", "DELETE FROM {}audit_seals WHERE number = 3")
    assert (await verified(operations)).ok  # the chain alone cannot show it
    shorter = await verified(operations, expect_head=head)
    assert [one.text for one in shorter.problems] == [
        "the expected seal is missing: the chain ends before it"
    ]
    await fill(app, (1,))
    other = await verified(operations, expect_head=head)
    assert [one.text for one in other.problems] == ["its digest is not the expected one"]
    with pytest.raises(OptionError, match="NUMBER:DIGEST"):
        await verified(operations, expect_head="yesterday")


@pytest.mark.parametrize("store_url", RUNNING, indirect=True)
@pytest.mark.parametrize("claimed", [-1, 0, 2, 9])
async def test_forged_entries_show_whatever_seal_they_claim(
    operations: Operations, app: Rota, store_url: str, claimed: int
) -> None:
    without_retention(app)
    await fill(app)
    await pruned(app, 2)
    assert (await verified(operations)).ok
    await (await app.stores.get()).append_audit([AuditEntry(action="forged", at=app.clock.now())])
    attack(store_url, f"UPDATE {{}}audit SET seal = {claimed} WHERE seal IS NULL")
    result = await verified(operations)
    assert [one.seal for one in result.problems] == [claimed], result


@pytest.mark.parametrize("store_url", RUNNING, indirect=True)
async def test_deletion_that_claims_to_be_of_the_future_shows(
    operations: Operations, app: Rota, store_url: str
) -> None:
    await fill(app)
    head = (await verified(operations)).head
    later = "9e15" if store_url.startswith("sqlite") else "interval '300 years'"
    attack(
        store_url,
        "DELETE FROM {}audit WHERE seal <= 2",
        "DELETE FROM {}audit_seals WHERE number = 1",
        f"UPDATE {{}}audit_seals SET pruned_at = sealed_at + {later} WHERE number = 2",
    )
    result = await verified(operations, expect_head=head)
    assert [one.seal for one in result.problems] == [2] and "retention" in result.problems[0].text


async def test_a_noted_head_that_the_log_no_longer_contains_is_not_confirmed(
    operations: Operations, app: Rota
) -> None:
    without_retention(app)
    await fill(app, (1,))
    noted = (await verified(operations)).head
    await fill(app, (1, 1))
    assert (await verified(operations, expect_head=noted)).ok
    await pruned(app, 2)
    gone = await verified(operations, expect_head=noted)
    assert [one.text.partition(",")[0] for one in gone.problems] == ["the expected seal is gone"]


async def test_sealing_and_pruning_while_it_verifies_is_no_tampering(
    operations: Operations, app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_retention(app)
    await fill(app)
    store = await app.stores.get()
    read, acts = store.audit, [lambda: fill(app, (1,)), lambda: pruned(app, 2)]

    async def audit(where: AuditFilter, page: PageRequest) -> Page[AuditEntry]:
        if acts:
            await acts.pop()()
        return await read(where, page)

    monkeypatch.setattr(store, "audit", audit)
    result = await verified(operations)
    assert (result.ok, result.problems, acts) == (True, (), [])


def without_retention(app: Rota) -> None:
    """Whatever PostgreSQL's own clock says, beside that of the test."""
    app.runtime.settings = msgspec.structs.replace(app.runtime.settings, retention_audit_days=-1e5)


async def pruned(app: Rota, seals: int) -> None:
    """Delete by age what these seals cover."""
    store, now = await app.stores.get(), app.clock.now()
    found = await store.survey(AuditSeals(0, 100))
    limit = sum(one.entries for one in found if one.number <= seals)
    await store.maintain(RetentionCutoffs(audit=now + timedelta(seconds=1)), limit, now)


async def test_retention_keeps_the_chain_whole(operations: Operations, app: Rota) -> None:
    assert isinstance(app.clock, FakeClock)
    for _ in range(3):
        await fill(app, (2,))
        app.clock.advance(100 * 86_400)
    store, now = await app.stores.get(), app.clock.now()
    cutoff = now - timedelta(days=150)
    assert (await store.maintain(RetentionCutoffs(audit=cutoff), 100, now)).audit_entries == 4
    app.runtime.settings = msgspec.structs.replace(app.runtime.settings, retention_audit_days=100.0)
    result = await verified(operations)
    if "postgres" not in store.url:  # there the server's own clock says when
        assert (result.ok, result.problems) == (True, ())
    assert (result.seals, result.entries, result.pruned_until) == (2, 2, 2)
    await fill(app, (1,))
    assert (await verified(operations)).seals == 3


async def test_backdated_entries_are_counted(operations: Operations, app: Rota) -> None:
    await fill(app, (1,))
    store = await app.stores.get()
    await store.append_audit([AuditEntry(action="old", at=app.clock.now() - timedelta(days=3))])
    await seal(store, app.clock)
    result = await verified(operations)
    assert (result.ok, result.late) == (True, 1)


async def test_only_an_operator_for_all_tenants_verifies(app: Rota) -> None:
    for role, tenant in (("viewer", None), ("admin", "acme")):
        with pytest.raises(Forbidden):
            await verified(operations_of(app, role, tenant))  # type: ignore[arg-type]


async def test_denied_requests_do_not_fill_the_log(operations: Operations, app: Rota) -> None:
    for _ in range(3 * DENIED_A_MINUTE):
        with pytest.raises(Forbidden):
            await operations_of(app, "viewer").access.revoke_token("abc")
    store = await app.stores.get()

    async def denied() -> Sequence[AuditEntry]:
        return (await store.audit(AuditFilter(result="denied"), PageRequest(limit=1000))).items

    found = await denied()
    assert len(found) == DENIED_A_MINUTE
    assert "more denied requests of this actor within the minute are not recorded" in (found[0].message or "")
    with pytest.raises(NotFound):
        await operations.access.revoke_token("abc")  # another actor's are
    assert isinstance(app.clock, FakeClock)
    app.clock.advance(61)
    with pytest.raises(Forbidden):
        await operations_of(app, "viewer").access.revoke_token("abc")
    assert len(await denied()) == DENIED_A_MINUTE + 1
