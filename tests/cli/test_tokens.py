"""API tokens: create, list and revoke."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from cli.in_process import invoke, on_store, output, output_json
from rota import Rota
from rota.operate.access import by_token


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
