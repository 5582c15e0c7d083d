"""API tokens and users: created, used, ended; and no actor grants more than it has."""

from __future__ import annotations

import re

import msgspec
import pytest
from actors import operations_of

from rota import Rota
from rota.errors import AlreadyRegistered, Forbidden, NotFound
from rota.operate import Operations
from rota.operate.access import actor_of, by_password, by_token, find_credential, has_any
from rota.operate.requests import AuditRequest, CreateTokenRequest, PutUserRequest
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
    found = await by_password(store, "ann", "correct horse battery")
    assert found is not None
    assert actor_of(found).role == "operator"
    for name, password in (("ann", "wrong horse battery"), ("bob", "correct horse battery"), ("", "")):
        assert await by_password(store, name, password) is None
    document = await find_document(store, "user", "ann")
    assert document is not None
    assert "correct horse" not in document.body
    await operations.access.put_user("ann", PutUserRequest(password="another horse battery", role="viewer"))
    assert await by_password(store, "ann", "correct horse battery") is None
    await operations.access.delete_user("ann")
    assert await by_password(store, "ann", "another horse battery") is None


async def test_new_user_with_a_taken_name_is_rejected_and_audited(operations: Operations, app: Rota) -> None:
    await operations.access.put_user(
        "ann", PutUserRequest(password="correct horse battery", role="admin", new=True)
    )
    with pytest.raises(AlreadyRegistered, match="there is a user 'ann' already: change that one instead"):
        await operations.access.put_user(
            "ann", PutUserRequest(password="another horse battery", role="viewer", new=True)
        )
    found = await by_password(await app.stores.get(), "ann", "correct horse battery")
    assert found is not None and found.role == "admin"
    entries = (await operations.system.audit(AuditRequest(object="user:ann"))).items
    assert [(one.result, one.after is None) for one in entries] == [("denied", True), ("done", False)]


async def test_admin_of_a_tenant_cannot_take_over_a_user(operations: Operations, app: Rota) -> None:
    await operations.access.put_user("ann", PutUserRequest(password="correct horse battery", role="admin"))
    own = operations_of(app, "admin", "acme")
    with pytest.raises(Forbidden, match="is taken"):
        await own.access.put_user("ann", PutUserRequest(password="correct horse battery", role="viewer"))
    with pytest.raises(NotFound):
        await own.access.delete_user("ann")
    assert not (await own.access.users()).items


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
