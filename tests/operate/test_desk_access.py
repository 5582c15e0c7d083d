"""Tokens and passwords: made, used, ended; and nobody gives away more than they have."""

from __future__ import annotations

import re

import msgspec
import pytest
from desks import desk_of

from rota import Rota
from rota.errors import AlreadyRegistered, Forbidden, NotFound
from rota.operate import Operations
from rota.operate.access import actor_of, by_password, by_token, has_any, still_good
from rota.operate.requests import AuditRequest, CreateTokenRequest, PutUserRequest
from rota.store.calls import find_document
from rota.testing import FakeClock


async def test_a_token_opens_with_its_role_and_tenant_and_is_stored_hashed(
    operations: Operations, app: Rota
) -> None:
    made = await operations.access.create_token(CreateTokenRequest(role="operator", tenant="acme", name="ci"))
    assert re.fullmatch(r"rota_[0-9a-f]{12}_[\w-]{43}", made.token)
    store = await app.stores.get()
    found = await by_token(store, app.clock, made.token)
    assert found is not None
    actor = actor_of(found)
    assert (actor.name, actor.role, actor.tenant) == (f"token:ci#{made.id}", "operator", "acme")
    assert actor.payloads
    document = await find_document(store, "token", made.id)
    assert document is not None
    secret = made.token.split("_", 2)[2]
    assert secret not in document.body
    told = msgspec.json.encode((await operations.system.audit(AuditRequest())).items).decode()
    assert secret not in told
    assert secret not in msgspec.json.encode((await operations.access.tokens()).items).decode()


@pytest.mark.parametrize("wrong", ["", "rota", "rota_x", "rota_abc_def", "x" * 500, "rota_../x_y", "rota__"])
async def test_a_text_that_is_no_token_opens_nothing(app: Rota, wrong: str) -> None:
    assert await by_token(await app.stores.get(), app.clock, wrong) is None


async def test_the_right_id_with_a_wrong_secret_opens_nothing(operations: Operations, app: Rota) -> None:
    made = await operations.access.create_token(CreateTokenRequest(role="viewer"))
    assert await by_token(await app.stores.get(), app.clock, made.token[:-1] + "!") is None


async def test_a_token_ends_when_it_expires_or_is_revoked(operations: Operations, app: Rota) -> None:
    store = await app.stores.get()
    short = await operations.access.create_token(CreateTokenRequest(role="viewer", expires_s=60))
    long = await operations.access.create_token(CreateTokenRequest(role="viewer"))
    assert await by_token(store, app.clock, short.token) is not None
    assert isinstance(app.clock, FakeClock)
    app.clock.advance(61)
    assert await by_token(store, app.clock, short.token) is None
    assert await still_good(store, app.clock, f"token:{short.id}") is None
    await operations.access.revoke_token(long.id)
    assert await by_token(store, app.clock, long.token) is None
    with pytest.raises(NotFound):
        await operations.access.revoke_token(long.id)


async def test_the_last_use_is_kept(operations: Operations, app: Rota) -> None:
    made = await operations.access.create_token(CreateTokenRequest(role="viewer"))
    assert made.last_used_at is None
    await by_token(await app.stores.get(), app.clock, made.token)
    (shown,) = (await operations.access.tokens()).items
    assert shown.last_used_at == app.clock.now()


async def test_viewers_do_not_see_payloads_unless_told(operations: Operations) -> None:
    plain = await operations.access.create_token(CreateTokenRequest(role="viewer"))
    seeing = await operations.access.create_token(CreateTokenRequest(role="viewer", payloads=True))
    blind = await operations.access.create_token(CreateTokenRequest(role="admin", payloads=False))
    assert (plain.payloads, seeing.payloads, blind.payloads) == (False, True, False)


async def test_a_tenants_admin_makes_tokens_for_its_own_tenant_only(
    app: Rota, operations: Operations
) -> None:
    own = desk_of(app, "admin", "acme")
    made = await own.access.create_token(CreateTokenRequest(role="operator"))
    assert made.tenant == "acme"
    with pytest.raises(NotFound):
        await own.access.create_token(CreateTokenRequest(role="viewer", tenant="other"))
    foreign = await operations.access.create_token(CreateTokenRequest(role="viewer"))
    assert [token.id for token in (await own.access.tokens()).items] == [made.id]
    with pytest.raises(NotFound):
        await own.access.revoke_token(foreign.id)
    with pytest.raises(Forbidden):
        await desk_of(app, "operator").access.create_token(CreateTokenRequest(role="viewer"))


async def test_a_password_opens_and_a_new_one_closes_the_old(operations: Operations, app: Rota) -> None:
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


async def test_who_is_there_is_not_made_anew_and_the_refusal_is_told(
    operations: Operations, app: Rota
) -> None:
    await operations.access.put_user(
        "ann", PutUserRequest(password="correct horse battery", role="admin", new=True)
    )
    with pytest.raises(AlreadyRegistered, match="there is a user 'ann' already: change that one instead"):
        await operations.access.put_user(
            "ann", PutUserRequest(password="another horse battery", role="viewer", new=True)
        )
    found = await by_password(await app.stores.get(), "ann", "correct horse battery")
    assert found is not None and found.role == "admin"
    told = (await operations.system.audit(AuditRequest(object="user:ann"))).items
    assert [(one.result, one.after is None) for one in told] == [("refused", True), ("done", False)]


async def test_a_tenants_admin_cannot_take_over_a_name(operations: Operations, app: Rota) -> None:
    await operations.access.put_user("ann", PutUserRequest(password="correct horse battery", role="admin"))
    own = desk_of(app, "admin", "acme")
    with pytest.raises(Forbidden, match="is taken"):
        await own.access.put_user("ann", PutUserRequest(password="correct horse battery", role="viewer"))
    with pytest.raises(NotFound):
        await own.access.delete_user("ann")
    assert not (await own.access.users()).items


async def test_nobody_gives_away_more_than_they_have(app: Rota, operations: Operations) -> None:
    short = await operations.access.create_token(
        CreateTokenRequest(role="admin", payloads=False, expires_s=3600)
    )
    found = await by_token(await app.stores.get(), app.clock, short.token)
    assert found is not None
    own = app.operations(actor_of(found))
    made = await own.access.create_token(CreateTokenRequest(role="admin"))
    assert (made.payloads, made.expires_at) == (False, short.expires_at)
    longer = await own.access.create_token(CreateTokenRequest(role="viewer", expires_s=7200))
    assert longer.expires_at == short.expires_at
    with pytest.raises(Forbidden, match="may not see payloads"):
        await own.access.create_token(CreateTokenRequest(role="viewer", payloads=True))
    with pytest.raises(Forbidden, match="a user does not"):
        await own.access.put_user("eve", PutUserRequest(password="correct horse battery", role="admin"))


async def test_a_refusal_is_told_under_the_name_of_the_deed(app: Rota, operations: Operations) -> None:
    with pytest.raises(Forbidden):
        await desk_of(app, "operator").access.revoke_token("abc")
    (told,) = (await operations.system.audit(AuditRequest(action="token."))).items
    assert (told.action, told.object, told.result) == ("token.revoke", "token:abc", "refused")
