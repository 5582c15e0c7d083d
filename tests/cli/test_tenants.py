"""``rota tenants``: what tenants have and may, on the command line."""

from __future__ import annotations

from pathlib import Path

from cli.in_process import enqueue, invoke, output, output_json


def test_what_is_set_is_shown(folder: Path) -> None:
    enqueue(tenant="acme")
    output("tenants", "set", "acme", "--weight", "3", "--max-priority", "5", "--waiting", "100000",
           "--budget", "50.00/day", "--budget-alert", "0.8", "--retention-days", "14")  # fmt: skip
    tenant = output_json("tenants", "show", "acme")
    assert (tenant["weight"], tenant["max_priority"], tenant["retention_days"]) == (3.0, 5, 14.0)
    assert tenant["budget"]["budget"] == "50.00/day"
    text = output("tenants", "show", "acme")
    for words in ("acme", "1 of 100,000", "0.00 of 50.00/day", "alert at       80%", "share now      100.0%"):
        assert words in text
    assert "0.00 of 50.00/day" in output("tenants", "list")


def test_what_its_jobs_cost_is_an_amount_as_their_budget_is(folder: Path) -> None:
    enqueue(tenant="acme", price=280)
    output("worker", "--burst", "--app", "shop:app")
    assert output_json("tenants", "show", "acme")["cost_cents"] == 280
    listed = output("tenants", "list")
    assert "2.80" in listed and "280.00" not in listed
    assert "spent today    2.80" in output("tenants", "show", "acme")
    text = output("tenants", "budget", "acme", "3.00/day")
    assert "spent          2.80 of 3.00/day" in text and "spent today" not in text
    assert all(line.strip() != "2.80" for line in text.splitlines())  # no amount without a name


def test_weight_quota_and_budget_have_commands_of_their_own_and_none_clears(folder: Path) -> None:
    output("tenants", "weight", "acme", "2.5")
    output("tenants", "quota", "acme", "--schedules", "5", "--bytes-per-day", "1000")
    output("tenants", "budget", "acme", "9.99/month", "--alert", "1")
    tenant = output_json("tenants", "show", "acme")
    assert tenant["weight"] == 2.5
    assert [quota["most"] for quota in tenant["quotas"]] == [None, 5, 1000]
    assert (tenant["budget"]["cents"], tenant["budget"]["alert"]) == (999.0, 1.0)
    changed = output_json("tenants", "quota", "acme", "--schedules", "none")
    assert [quota["most"] for quota in changed["quotas"]] == [None, None, 1000]
    assert output_json("tenants", "budget", "acme", "none")["budget"] is None
    assert output("tenants", "drop", "acme") == "Tenant acme has no rule now.\n"
    assert invoke("tenants", "show", "acme").exit_code == 1


def test_the_limit_of_a_tenant_is_set_by_its_name(folder: Path) -> None:
    tenant = output_json("tenants", "limit", "acme", "--running", "20", "--rate", "1000/h")
    assert (tenant["limit"]["most"], tenant["limit"]["rate"]) == (20, "1000/h")
    assert "0 of 20 running, 1000/h" in output("tenants", "show", "acme")
    assert invoke("tenants", "limit", "acme", "--running", "0").exit_code == 2


def test_a_mistake_is_named(folder: Path) -> None:
    wrong = invoke("tenants", "budget", "acme", "50.00")
    assert wrong.exit_code == 2 and "budget='50.00': has no period" in wrong.stderr
    assert "nothing to change" in invoke("tenants", "set", "acme").stderr
    assert "neither a number nor none" in invoke("tenants", "weight", "acme", "much").stderr


def test_a_quota_that_is_used_up_ends_with_code_1_and_the_reason(folder: Path) -> None:
    output("tenants", "quota", "acme", "--waiting", "0", "--schedules", "0")
    refused = invoke("jobs", "enqueue", "add", "--tenant", "acme")
    assert refused.exit_code == 1 and "tenant 'acme' may have 0 waiting jobs" in refused.stderr
    refused = invoke(
        "schedules", "create", "--name", "x", "--task", "add", "--every", "1h", "--tenant", "acme"
    )
    assert refused.exit_code == 1 and "tenant 'acme' may have 0 schedules" in refused.stderr
