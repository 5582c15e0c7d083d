"""API tokens and users: created, used, ended; and no actor grants more than it has."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from actors import operations_of

from rota import Rota
from rota.errors import AlreadyRegistered, Forbidden, NotFound, OptionError
from rota.operate import Operations, passwords
from rota.operate.credential_checks import examine_credentials
from rota.operate.credentials import (
    StoredUser,
    actor_of,
    by_password,
    by_token,
    find_credential,
    has_any,
    used_for,
)
from rota.operate.requests import (
    AuditRequest,
    CreateTokenRequest,
    EnqueueRequest,
    PutUserRequest,
    RotateTokenRequest,
    SetPasswordRequest,
)
from rota.store.calls import find_document
from rota.testing import FakeClock


async def test_token_authenticates_with_its_role_and_tenant_and_is_stored_hashed(
    operations: Operations, app: Rota
) -> None:
    created = await operations.access.create_token(
        CreateTokenRequest(role="operator", tenant="acme", name="ci")
    )
    assert re.fullmatch(r"rota_[0-9a-f]{12}_[\w-]{43}", created.token)
    store = await app.stores.get()
    found = await by_token(store, app.clock, created.token)
    assert found is not None
    actor = actor_of(found)
    assert (actor.name, actor.role, actor.tenant) == (f"token:ci#{created.id}", "operator", "acme")
    assert actor.payloads
    document = await find_document(store, "token", created.id)
    assert document is not None
    secret = created.token.split("_", 2)[2]
    assert secret not in document.body
    entries = msgspec.json.encode((await operations.system.audit(AuditRequest())).items).decode()
    assert secret not in entries
    assert secret not in msgspec.json.encode((await operations.access.tokens()).items).decode()


@pytest.mark.parametrize("wrong", ["", "rota", "rota_x", "rota_abc_def", "x" * 500, "rota_../x_y", "rota__"])
async def test_malformed_token_is_rejected(app: Rota, wrong: str) -> None:
    assert await by_token(await app.stores.get(), app.clock, wrong) is None


async def test_token_with_a_wrong_secret_is_rejected(operations: Operations, app: Rota) -> None:
    created = await operations.access.create_token(CreateTokenRequest(role="viewer"))
    assert await by_token(await app.stores.get(), app.clock, created.token[:-1] + "!") is None


async def test_a_token_ends_when_it_expires_or_is_revoked(operations: Operations, app: Rota) -> None:
    store = await app.stores.get()
    short = await operations.access.create_token(CreateTokenRequest(role="viewer", expires_s=60))
    long = await operations.access.create_token(CreateTokenRequest(role="viewer"))
    assert await by_token(store, app.clock, short.token) is not None
    assert isinstance(app.clock, FakeClock)
    app.clock.advance(61)
    assert await by_token(store, app.clock, short.token) is None
    assert await find_credential(store, app.clock, f"token:{short.id}") is None
    await operations.access.revoke_token(long.id)
    assert await by_token(store, app.clock, long.token) is None
    with pytest.raises(NotFound):
        await operations.access.revoke_token(long.id)


async def test_last_use_of_a_token_is_stored(operations: Operations, app: Rota) -> None:
    created = await operations.access.create_token(CreateTokenRequest(role="viewer"))
    assert created.last_used_at is None
    await by_token(await app.stores.get(), app.clock, created.token)
    (shown,) = (await operations.access.tokens()).items
    assert shown.last_used_at == app.clock.now()


async def test_viewers_see_payloads_only_if_granted(operations: Operations) -> None:
    plain = await operations.access.create_token(CreateTokenRequest(role="viewer"))
    seeing = await operations.access.create_token(CreateTokenRequest(role="viewer", payloads=True))
    blind = await operations.access.create_token(CreateTokenRequest(role="admin", payloads=False))
    assert (plain.payloads, seeing.payloads, blind.payloads) == (False, True, False)


async def test_admin_of_a_tenant_creates_tokens_for_that_tenant_only(
    app: Rota, operations: Operations
) -> None:
    own = operations_of(app, "admin", "acme")
    created = await own.access.create_token(CreateTokenRequest(role="operator"))
    assert created.tenant == "acme"
    with pytest.raises(NotFound):
        await own.access.create_token(CreateTokenRequest(role="viewer", tenant="other"))
    foreign = await operations.access.create_token(CreateTokenRequest(role="viewer"))
    assert [token.id for token in (await own.access.tokens()).items] == [created.id]
    with pytest.raises(NotFound):
        await own.access.revoke_token(foreign.id)
    with pytest.raises(Forbidden):
        await operations_of(app, "operator").access.create_token(CreateTokenRequest(role="viewer"))


async def test_password_authenticates_and_a_new_one_replaces_it(operations: Operations, app: Rota) -> None:
    store = await app.stores.get()
    assert not await has_any(store)
    await operations.access.put_user("ann", PutUserRequest(password="correct horse battery", role="operator"))
    assert await has_any(store)
    found = await by_password(store, app.clock, "ann", "correct horse battery")
    assert found is not None
    assert actor_of(found).role == "operator"
    for name, password in (("ann", "wrong horse battery"), ("bob", "correct horse battery"), ("", "")):
        assert await by_password(store, app.clock, name, password) is None
    document = await find_document(store, "user", "ann")
    assert document is not None
    assert "correct horse" not in document.body
    await operations.access.put_user("ann", PutUserRequest(password="another horse battery", role="viewer"))
    assert await by_password(store, app.clock, "ann", "correct horse battery") is None
    await operations.access.delete_user("ann")
    assert await by_password(store, app.clock, "ann", "another horse battery") is None


async def test_new_user_with_a_taken_name_is_rejected_and_audited(operations: Operations, app: Rota) -> None:
    await operations.access.put_user(
        "ann", PutUserRequest(password="correct horse battery", role="admin", new=True)
    )
    with pytest.raises(AlreadyRegistered, match="there is a user 'ann' already: change that one instead"):
        await operations.access.put_user(
            "ann", PutUserRequest(password="another horse battery", role="viewer", new=True)
        )
    found = await by_password(await app.stores.get(), app.clock, "ann", "correct horse battery")
    assert found is not None and found.role == "admin"
    entries = (await operations.system.audit(AuditRequest(object="user:ann"))).items
    assert [(one.result, one.after is None) for one in entries] == [("denied", True), ("done", False)]


async def test_admin_of_a_tenant_cannot_take_over_a_user(operations: Operations, app: Rota) -> None:
    await operations.access.put_user("ann", PutUserRequest(password="correct horse battery", role="admin"))
    own = operations_of(app, "admin", "acme")
    said = set()
    for name in ("ann", "free"):  # whether another tenant has it is not said
        with pytest.raises(OptionError) as error:
            await own.access.put_user(name, PutUserRequest(password="correct horse battery", role="viewer"))
        said.add(str(error.value).replace(name, ""))
    assert len(said) == 1 and "is named NAME@acme" in said.pop()
    with pytest.raises(NotFound):
        await own.access.delete_user("ann")
    assert not (await own.access.users()).items
    mine = PutUserRequest(password="correct horse battery", role="viewer")
    assert (await own.access.put_user("ann@acme", mine)).tenant == "acme"
    await operations.access.put_user(
        "bob", PutUserRequest(password="correct horse battery", role="viewer", tenant="acme")
    )
    assert (await own.access.put_user("bob", mine)).tenant == "acme"  # it is theirs, whatever its name


async def test_no_actor_grants_more_than_it_has(app: Rota, operations: Operations) -> None:
    short = await operations.access.create_token(
        CreateTokenRequest(role="admin", payloads=False, expires_s=3600)
    )
    found = await by_token(await app.stores.get(), app.clock, short.token)
    assert found is not None
    own = app.operations(actor_of(found))
    created = await own.access.create_token(CreateTokenRequest(role="admin"))
    assert (created.payloads, created.expires_at) == (False, short.expires_at)
    longer = await own.access.create_token(CreateTokenRequest(role="viewer", expires_s=7200))
    assert longer.expires_at == short.expires_at
    with pytest.raises(Forbidden, match="cannot grant payload access"):
        await own.access.create_token(CreateTokenRequest(role="viewer", payloads=True))
    with pytest.raises(Forbidden, match="a user does not"):
        await own.access.put_user("eve", PutUserRequest(password="correct horse battery", role="admin"))


async def test_denied_action_is_audited_under_its_own_name(app: Rota, operations: Operations) -> None:
    with pytest.raises(Forbidden):
        await operations_of(app, "operator").access.revoke_token("abc")
    (entry,) = (await operations.system.audit(AuditRequest(action="token."))).items
    assert (entry.action, entry.object, entry.result) == ("token.revoke", "token:abc", "denied")


# --- tokens that tokens create -------------------------------------------------------------------


async def _as(app: Rota, token: str) -> Operations:
    found = await by_token(await app.stores.get(), app.clock, token, "203.0.113.7")
    assert found is not None
    return app.operations(actor_of(found))


async def test_tokens_that_a_token_created_are_revoked_with_it(app: Rota, operations: Operations) -> None:
    store, admin = await app.stores.get(), CreateTokenRequest(role="admin")
    top = await operations.access.create_token(admin)
    child = await (await _as(app, top.token)).access.create_token(admin)
    grandchild = await (await _as(app, child.token)).access.create_token(CreateTokenRequest(role="viewer"))
    kept = await (await _as(app, top.token)).access.create_token(
        CreateTokenRequest(role="viewer", outlives=True)
    )
    assert (top.ends_with, child.ends_with, grandchild.ends_with, kept.ends_with) == (
        None, top.id, child.id, None,
    )  # fmt: skip
    await operations.access.revoke_token(top.id)
    found = [await by_token(store, app.clock, one.token) for one in (top, child, grandchild, kept)]
    assert [one is not None for one in found] == [False, False, False, True]
    entries = (await operations.system.audit(AuditRequest(action="token.revoke"))).items
    assert {one.object for one in entries} == {f"token:{one.id}" for one in (top, child, grandchild)}


async def test_token_that_expires_cannot_create_one_that_outlives_it(
    app: Rota, operations: Operations
) -> None:
    short = await operations.access.create_token(CreateTokenRequest(role="admin", expires_s=3600))
    with pytest.raises(Forbidden, match="cannot create a token that outlives it"):
        await (await _as(app, short.token)).access.create_token(
            CreateTokenRequest(role="viewer", outlives=True)
        )


async def test_token_created_while_its_creator_is_revoked_does_not_stay(
    app: Rota, operations: Operations
) -> None:
    top = await operations.access.create_token(CreateTokenRequest(role="admin"))
    own = await _as(app, top.token)
    await operations.access.revoke_token(top.id)
    with pytest.raises(Forbidden, match="has been revoked"):
        await own.access.create_token(CreateTokenRequest(role="admin"))
    assert not (await operations.access.tokens()).items


async def test_first_token_ends_after_a_day_and_what_it_creates_does_not(
    app: Rota, operations: Operations
) -> None:
    first = await operations.access.create_first_token()
    assert first.expires_at == app.clock.now() + timedelta(days=1)
    own = await _as(app, first.token)
    created = await own.access.create_token(CreateTokenRequest(role="admin"))
    await own.access.put_user("ann", PutUserRequest(password="correct horse battery", role="admin"))
    assert (created.ends_with, created.expires_at) == (None, None)
    await operations.access.revoke_token(first.id)
    assert [one.id for one in (await operations.access.tokens()).items] == [created.id]


# --- rotation and last use -----------------------------------------------------------------------


async def test_rotated_token_has_a_new_secret_and_the_old_one_ends_after_the_overlap(
    app: Rota, operations: Operations
) -> None:
    store, clock = await app.stores.get(), app.clock
    assert isinstance(clock, FakeClock)
    old = await operations.access.create_token(CreateTokenRequest(role="operator", name="ci"))
    new = await operations.access.rotate_token(old.id, RotateTokenRequest(overlap_s=60, expires_s=86_400))
    assert (new.id, new.role, new.name) == (old.id, "operator", "ci") and new.token != old.token
    assert new.expires_at == clock.now() + timedelta(days=1)
    assert await by_token(store, clock, old.token) and await by_token(store, clock, new.token)
    clock.advance(61)
    assert await by_token(store, clock, old.token) is None
    assert await by_token(store, clock, new.token)
    newest = await operations.access.rotate_token(old.id, RotateTokenRequest(overlap_s=0))
    assert await by_token(store, clock, new.token) is None
    assert await by_token(store, clock, newest.token)


async def test_who_rotates_a_token_gets_no_more_than_they_could_create(
    app: Rota, operations: Operations
) -> None:
    seeing = await operations.access.create_token(CreateTokenRequest(role="admin"))
    blind = await operations.access.create_token(CreateTokenRequest(role="admin", payloads=False))
    short = await operations.access.create_token(CreateTokenRequest(role="admin", expires_s=60))
    with pytest.raises(Forbidden, match="payload access"):
        await (await _as(app, blind.token)).access.rotate_token(seeing.id, RotateTokenRequest())
    with pytest.raises(Forbidden, match="expires before"):
        await (await _as(app, short.token)).access.rotate_token(seeing.id, RotateTokenRequest())
    with pytest.raises(NotFound):
        await operations_of(app, "admin", "acme").access.rotate_token(seeing.id, RotateTokenRequest())


async def test_secret_that_was_replaced_leaves_nothing_behind_when_its_overlap_is_over(
    app: Rota, operations: Operations
) -> None:
    store, clock, admin = await app.stores.get(), app.clock, CreateTokenRequest(role="admin")
    assert isinstance(clock, FakeClock)
    old = await operations.access.create_token(admin)
    new = await operations.access.rotate_token(old.id, RotateTokenRequest(overlap_s=60))
    leaked = await _as(app, old.token)
    with pytest.raises(Forbidden, match="cannot rotate it"):
        await leaked.access.rotate_token(old.id, RotateTokenRequest(overlap_s=0))
    with pytest.raises(Forbidden, match="outlives"):
        await leaked.access.create_token(CreateTokenRequest(role="admin", outlives=True))
    with pytest.raises(Forbidden, match="expires, and a user does not"):
        await leaked.access.put_user("eve", PutUserRequest(password="correct horse battery", role="admin"))
    made = await leaked.access.create_token(admin)
    clock.advance(61)
    assert [await by_token(store, clock, one.token) for one in (old, made)] == [None, None]
    kept = await (await _as(app, new.token)).access.create_token(admin)
    assert kept.expires_at is None


async def test_token_that_expires_rotates_only_itself_and_what_it_created(
    app: Rota, operations: Operations
) -> None:
    store = await app.stores.get()
    short = await operations.access.create_token(CreateTokenRequest(role="admin", expires_s=60))
    other = await operations.access.create_token(CreateTokenRequest(role="admin", expires_s=60))
    leaked = await _as(app, short.token)
    with pytest.raises(Forbidden, match="rotates only itself and what it created"):
        await leaked.access.rotate_token(other.id, RotateTokenRequest())
    made = await leaked.access.create_token(CreateTokenRequest(role="viewer"))
    rotated = [await leaked.access.rotate_token(one.id, RotateTokenRequest()) for one in (made, short)]
    await operations.access.revoke_token(short.id)
    assert [await by_token(store, app.clock, one.token) for one in rotated] == [None, None]


async def test_token_that_gets_an_end_later_takes_along_what_it_created(
    app: Rota, operations: Operations
) -> None:
    store, clock, admin = await app.stores.get(), app.clock, CreateTokenRequest(role="admin")
    assert isinstance(clock, FakeClock)
    top = await operations.access.create_token(admin)
    late = await _as(app, top.token)
    child = await late.access.create_token(admin)
    grandchild = await (await _as(app, child.token)).access.create_token(CreateTokenRequest(role="viewer"))
    await operations.access.rotate_token(top.id, RotateTokenRequest(expires_s=60))
    with pytest.raises(Forbidden, match="has been rotated"):  # it began before
        await late.access.create_token(admin)
    clock.advance(61)
    assert [await by_token(store, clock, one.token) for one in (child, grandchild)] == [None, None]
    assert len((await operations.system.audit(AuditRequest(action="token.shorten"))).items) == 2


async def test_last_use_has_its_address_and_is_written_at_most_once_a_minute(
    app: Rota, operations: Operations
) -> None:
    store, clock = await app.stores.get(), app.clock
    assert isinstance(clock, FakeClock)
    token = await operations.access.create_token(CreateTokenRequest(role="viewer"))
    for address, shown in (("192.0.2.1", "192.0.2.1"), ("192.0.2.2", "192.0.2.1")):
        await by_token(store, clock, token.token, address)
        assert (await operations.access.tokens()).items[0].last_used_from == shown
    clock.advance(61)
    await by_token(store, clock, token.token, "192.0.2.2")
    assert (await operations.access.tokens()).items[0].last_used_from == "192.0.2.2"


# --- producers -----------------------------------------------------------------------------------


async def test_producer_enqueues_its_tasks_and_queues_and_reads_nothing(
    app: Rota, operations: Operations
) -> None:
    made = await operations.access.create_token(
        CreateTokenRequest(role="producer", tenant="acme", tasks=("other",))
    )
    producer = await _as(app, made.token)
    task = "send"
    with pytest.raises(Forbidden, match="may not enqueue to task"):
        await producer.jobs.enqueue(EnqueueRequest(task=task, payload={"to": "x"}))
    made = await operations.access.create_token(
        CreateTokenRequest(role="producer", tenant="acme", tasks=(task,), queues=("mail",))
    )
    producer = await _as(app, made.token)
    job = await producer.jobs.enqueue(EnqueueRequest(task=task, payload={"to": "x"}, key="k"))
    assert (job.task, job.queue, job.tenant) == (task, "mail", "acme")
    assert (await producer.system.me()).permissions == ("me", "enqueue")
    with pytest.raises(Forbidden, match="queue 'other'"):
        await producer.jobs.enqueue(EnqueueRequest(task=task, payload={"to": "x"}, queue="other"))
    with pytest.raises(Forbidden, match="replace"):
        await producer.jobs.enqueue(
            EnqueueRequest(task=task, payload={"to": "y"}, key="k", on_conflict="replace")
        )
    for denied in (producer.jobs.show(job.id), producer.jobs.retry(job.id), producer.system.stats()):
        with pytest.raises(Forbidden, match="needs the role"):
            await denied


async def test_producer_does_not_read_the_job_of_another_by_its_key(
    app: Rota, operations: Operations
) -> None:
    made = await operations.access.create_token(CreateTokenRequest(role="producer", payloads=True))
    await operations.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "secret place"}, key="k"))
    found = await (await _as(app, made.token)).jobs.enqueue(
        EnqueueRequest(task="send", payload={"to": "x"}, key="k")
    )
    assert "secret place" not in msgspec.json.encode(found).decode()


async def test_only_tokens_of_producers_have_tasks_and_no_user_is_a_producer(operations: Operations) -> None:
    with pytest.raises(OptionError, match="producers only"):
        await operations.access.create_token(CreateTokenRequest(role="viewer", tasks=("send",)))
    with pytest.raises(OptionError, match="cannot sign in"):
        await operations.access.put_user(
            "ann", PutUserRequest(password="correct horse battery", role="producer")
        )


# --- what doctor says ----------------------------------------------------------------------------


async def _warnings(app: Rota) -> dict[str, str]:
    findings = await examine_credentials(await app.stores.get(), app.clock.now())
    return {one.text: one.remedy or "" for one in findings if one.level == "warning"}


async def test_doctor_names_tokens_without_an_end_unused_and_of_the_first_start(
    app: Rota, operations: Operations
) -> None:
    assert isinstance(app.clock, FakeClock)
    await operations.access.create_token(CreateTokenRequest(role="viewer", expires_s=86_400 * 365))
    assert not await _warnings(app)
    first = await operations.access.create_first_token()
    endless = await operations.access.create_token(CreateTokenRequest(role="viewer", name="wall"))
    found = await _warnings(app)
    assert f"rota token revoke {first.id}" in next(found[text] for text in found if "first start" in text)
    assert f"'wall' ({endless.id}): tokens that never expire" in found
    app.clock.advance(86_400 * 91)
    assert sum("have not been used for 90 days" in text for text in await _warnings(app)) == 1
    assert not any("first start" in text for text in await _warnings(app)), "it has expired"


async def test_doctor_names_tokens_with_more_rights_than_they_used(app: Rota, operations: Operations) -> None:
    assert isinstance(app.clock, FakeClock)
    store = await app.stores.get()
    made = await operations.access.create_token(CreateTokenRequest(role="admin", expires_s=86_400 * 365))
    for permission in ("enqueue", "read", "enqueue"):
        found = await by_token(store, app.clock, made.token)
        assert found is not None
        await used_for(store, app.clock, found, permission)
    assert not await _warnings(app), "too early to judge"
    app.clock.advance(86_400 * 8)
    (remedy,) = (await _warnings(app)).values()
    assert "is admin; viewer would do" in remedy


async def test_doctor_names_tokens_of_users_who_are_gone(app: Rota, operations: Operations) -> None:
    store = await app.stores.get()
    await operations.access.put_user("ann", PutUserRequest(password="correct horse battery", role="admin"))
    found = await find_credential(store, app.clock, "user:ann")
    assert found is not None
    await app.operations(actor_of(found)).access.create_token(CreateTokenRequest(role="viewer", expires_s=60))
    assert not await _warnings(app)
    await operations.access.delete_user("ann")
    assert any("users who are gone" in text for text in await _warnings(app))


# --- passwords -----------------------------------------------------------------------------------


async def test_password_hash_of_less_than_todays_cost_is_replaced_at_sign_in(
    app: Rota, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, weaker = await app.stores.get(), passwords.Parameters(8, 8, 1)
    with monkeypatch.context() as patch:
        patch.setattr(passwords, "CURRENT", weaker)
        await operations.access.put_user(
            "ann", PutUserRequest(password="correct horse battery", role="admin")
        )
    before = await find_credential(store, app.clock, "user:ann")
    assert isinstance(before, StoredUser) and before.scrypt == weaker
    assert await by_password(store, app.clock, "ann", "wrong horse battery") is None
    assert await by_password(store, app.clock, "ann", "correct horse battery") is not None
    after = await find_credential(store, app.clock, "user:ann")
    assert isinstance(after, StoredUser) and after.scrypt == passwords.CURRENT
    assert after.hash != before.hash and after.changed_at == before.changed_at, "sessions continue"
    assert await by_password(store, app.clock, "ann", "correct horse battery") is not None


async def test_a_wrong_password_costs_as_much_for_an_older_hash_as_for_an_unknown_user(
    app: Rota, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, costs = await app.stores.get(), list[passwords.Parameters]()
    with monkeypatch.context() as before:
        before.setattr(passwords, "CURRENT", passwords.FIRST)
        await operations.access.put_user(
            "old", PutUserRequest(password="correct horse battery", role="admin")
        )
    real = passwords._scrypt
    monkeypatch.setattr(passwords, "_scrypt", lambda *given: costs.append(given[2]) or real(*given))
    for name in ("old", "unknown"):
        assert await by_password(store, app.clock, name, "a wrong password") is None
        assert passwords.CURRENT in costs, name
        costs.clear()


def test_hash_without_parameters_is_one_of_the_first_cost() -> None:
    stored = {
        "name": "ann",
        "salt": "00",
        "hash": "00",
        "role": "viewer",
        "created_at": "2026-01-01T00:00:00Z",
    }
    assert msgspec.convert(stored, StoredUser, strict=False).scrypt == (2**14, 8, 1)


def test_new_passwords_cost_as_much_as_owasp_recommends() -> None:
    source = Path(passwords.__file__).read_text()
    assert "CURRENT = Parameters(2**15, 8, 3)" in source, "the suite itself uses a cheaper one"


async def test_admin_changes_a_password_and_nothing_else(app: Rota, operations: Operations) -> None:
    store = await app.stores.get()
    await operations.access.put_user(
        "ann", PutUserRequest(password="correct horse battery", role="operator", tenant="acme")
    )
    request = SetPasswordRequest(password="another horse battery", must_change=True)
    changed = await operations.access.set_password("ann", request)
    assert (changed.role, changed.tenant, changed.must_change) == ("operator", "acme", True)
    assert await by_password(store, app.clock, "ann", "correct horse battery") is None
    assert await by_password(store, app.clock, "ann", "another horse battery") is not None
    with pytest.raises(NotFound):
        await operations_of(app, "admin", "other").access.set_password("ann", request)
    with pytest.raises(OptionError, match="password repeats one part"):
        await operations.access.set_password("ann", SetPasswordRequest(password="passwordpassword"))
