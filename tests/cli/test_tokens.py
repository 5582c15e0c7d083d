"""API tokens: create, list and revoke."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from cli.in_process import invoke, on_store, output, output_json
from rota import Rota
from rota.model import Actor
from rota.operate.credentials import actor_of, by_token
from rota.operate.requests import CreateTokenRequest


def test_token_create_prints_only_a_valid_token(folder: Path) -> None:
    result = invoke(
        "token", "create", "--role", "operator", "--tenant", "acme", "--expires", "30d", "--name", "ci"
    )
    text = result.stdout.removesuffix("\n")
    assert result.exit_code == 0 and text.startswith("rota_") and not set(text) & set(" \n")
    assert "operator of tenant acme, with payloads" in result.stderr and text not in result.stderr

    async def check(app: Rota) -> Any:
        return await by_token(await app.stores.get(), app.clock, text)

    found = on_store(check)
    assert (found.role, found.tenant, found.name, found.payloads) == ("operator", "acme", "ci", True)
    assert found.expires_at - found.created_at == timedelta(days=30)


def test_lists_show_no_secrets(folder: Path) -> None:
    text = output("token", "create", "--role", "viewer", "--no-payloads")
    secret = text.strip().split("_", 2)[2]
    for shown in (output("token", "list"), output("token", "list", "--json"), output("audit", "export")):
        assert secret not in shown and "hash" not in shown
    (listed,) = output_json("token", "list")["items"]
    assert (listed["role"], listed["tenant"], listed["payloads"], listed["expires_at"]) == (
        "viewer", None, False, None,
    )  # fmt: skip


def test_revoke_asks_with_the_effect_and_is_all_or_nothing(folder: Path) -> None:
    one = output_json("token", "create", "--role", "admin", "--name", "deploy")
    two = output_json("token", "create", "--role", "viewer")
    unknown = invoke("token", "revoke", one["id"], "nothing", "--yes")
    assert unknown.exit_code == 1 and "nothing was changed" in unknown.stderr
    refused = invoke("token", "revoke", one["id"], stdin="n\n")
    assert refused.exit_code == 1
    assert (
        "(deploy), admin of all tenants, with payloads, never used: requests with it will be denied"
        in refused.stderr
    )
    assert len(output_json("token", "list")["items"]) == 2
    assert invoke("token", "revoke", one["id"], two["id"], stdin="y\n").exit_code == 0
    assert output_json("token", "list")["items"] == []


def test_rotate_prints_only_the_new_token_and_says_how_long_the_old_one_lasts(folder: Path) -> None:
    old = output_json("token", "create", "--role", "viewer", "--name", "ci")
    result = invoke("token", "rotate", "ci", "--overlap", "2h", "--expires", "30d")
    assert result.exit_code == 0 and "The old secret is valid until" in result.stderr
    new = result.stdout.strip()
    assert new.startswith(f"rota_{old['id']}_") and new != old["token"]
    (listed,) = output_json("token", "list")["items"]
    assert listed["rotated_at"] and listed["previous_until"] and listed["expires_at"]
    assert "is no longer valid" in invoke("token", "rotate", old["id"], "--overlap", "0s").stderr
    output("token", "create", "--role", "viewer", "--name", "ci")
    twice = invoke("token", "rotate", "ci")
    assert twice.exit_code == 2 and "2 tokens have the name ci: give the id" in twice.stderr
    assert "no token 'nothing'" in invoke("token", "rotate", "nothing").stderr


def test_producer_is_described_with_its_tasks(folder: Path) -> None:
    result = invoke("token", "create", "--role", "producer", "--task", "send", "--queue", "mail")
    assert "producer of all tenants for send, mail only, without payloads" in result.stderr
    (listed,) = output_json("token", "list")["items"]
    assert (listed["tasks"], listed["queues"]) == (["send"], ["mail"])


def test_revoke_names_what_ends_with_a_token_and_what_stays(folder: Path) -> None:
    async def create(app: Rota) -> list[str]:
        store = await app.stores.get()
        admin = app.operations(Actor(name="cli", role="admin", payloads=True))
        top = await admin.access.create_token(CreateTokenRequest(role="admin", name="deploy"))
        found = await by_token(store, app.clock, top.token)
        assert found is not None
        own = app.operations(actor_of(found)).access
        bound = await own.create_token(CreateTokenRequest(role="viewer", name="bound"))
        kept = await own.create_token(CreateTokenRequest(role="viewer", name="kept", outlives=True))
        return [top.id, bound.id, kept.id]

    top, bound, kept = on_store(create)
    refused = invoke("token", "revoke", top, stdin="n\n")
    assert f"with it: {bound} (bound)" in refused.stderr and "created by it, and kept: kept" in refused.stderr
    assert invoke("token", "revoke", top, bound, "--yes").exit_code == 0
    assert [one["id"] for one in output_json("token", "list")["items"]] == [kept]
