"""``/metrics``: the Prometheus text format, equal to the store, closed to tenants."""

from __future__ import annotations

import re
from datetime import timedelta

import msgspec
from sites import API, Site

from rota.admin.prometheus import PrometheusText, escaped
from rota.model import ClaimRequest, Heartbeat
from rota.runtime.metrics import WorkerMetrics

LINE = re.compile(r'[a-z_:][a-z0-9_:]*(\{([a-z_]+="(\\.|[^"\\\n])*",?)+\})? -?[0-9.e+-]+$')


def test_depth_age_states_gates_and_requests_are_exported(each_site: Site) -> None:
    token = each_site.token("viewer")
    each_site.job(queue='ma"i\\l')
    each_site.job(delay=600.0)
    each_site.post(f"{API}/gates", {"scope": "all"}, each_site.token())
    answer = each_site.get("/metrics", token)
    text = answer.body.decode()
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    for line in text.splitlines():
        assert line.startswith("# ") or LINE.match(line), line
    for line in (
        'rota_jobs{state="queued"} 2',
        'rota_queue_jobs{queue="ma\\"i\\\\l",state="due"} 1',
        'rota_queue_jobs{queue="default",state="due_later"} 1',
        'rota_tenant_waiting{tenant="default"} 2',
        'rota_gates{scope="all"} 1',
        "rota_workers 0",
        "rota_event_listeners 0",
    ):
        assert line in text.splitlines(), line
    assert re.search(r'rota_queue_oldest_due_seconds\{queue="ma\\"i\\\\l"\} [0-9.]+', text)
    assert re.search(r'rota_http_requests_total\{status="2xx"\} [1-9]', text)
    assert re.search(r"^rota_store_\w+ ", text, re.M)


def test_worker_metrics_are_exported_per_worker(site: Site) -> None:
    metrics = WorkerMetrics()
    metrics.claims = 3
    metrics.runs["succeeded"] = 2
    metrics.duration.add(timedelta(seconds=0.02))
    metrics.duration.add(timedelta(seconds=99_999))
    services = [
        {"name": "gates", "state": "ok", "succeeded_at": "2026-05-04T12:00:00Z"},
        {"name": "rescue", "state": "late"},
    ]
    written = {"host": "h", "pid": 1, "measures": metrics.snapshot(), "services": services}
    invalid = {"host": "h", "measures": {"runs": "x", "duration": {"bounds": [1], "counts": [1], "sum": 0}}}

    async def beat() -> None:
        store, now = await site.rota.stores.get(), site.rota.clock.now()
        for worker, document in (("w1", written), ("w2", invalid)):
            body = msgspec.json.encode(document).decode()
            await store.heartbeat(Heartbeat(worker=worker, document=body, lease_s=30), now)

    site.do(beat)
    lines = site.get("/metrics", site.token()).body.decode().splitlines()
    for line in (
        "rota_workers 2",
        'rota_worker_service_succeeded_timestamp_seconds{worker="w1",service="gates"} 1777896000',
        'rota_worker_service_late{worker="w1",service="gates"} 0',
        'rota_worker_service_late{worker="w1",service="rescue"} 1',
        'rota_worker_claims_total{worker="w1"} 3',
        'rota_worker_runs_total{worker="w1",outcome="succeeded"} 2',
        'rota_worker_duration_seconds_bucket{worker="w1",le="0.01"} 0',
        'rota_worker_duration_seconds_bucket{worker="w1",le="0.025"} 1',
        'rota_worker_duration_seconds_bucket{worker="w1",le="+Inf"} 2',
        'rota_worker_duration_seconds_count{worker="w1"} 2',
    ):
        assert line in lines, line
    assert len([line for line in lines if line.startswith("# TYPE rota_worker_runs_total")]) == 1


def test_label_cannot_break_out_of_its_quotes() -> None:
    assert escaped('a"b\\c\nd') == 'a\\"b\\\\c\\nd'
    text = PrometheusText()
    text.add("x", "gauge", "Help.", 1, name='"} 5\nevil 1')
    assert len(str(text).splitlines()) == 3


def test_the_fullest_limits_are_exported(site: Site) -> None:
    async def limit() -> None:
        for n in range(120):
            await site.rota.limits.set(f"queue:{n:03}", running=10)
        await site.rota.limits.set("queue:zz", running=1, rate="4/s")
        site.rota.task(name="work", queue="zz")(lambda: None)
        await site.rota.enqueue("work")
        await (await site.rota.stores.get()).turn((), ClaimRequest(worker="w", limit=1, lease_s=60), None)

    site.do(limit)
    lines = site.get("/metrics", site.token("viewer")).body.decode().splitlines()
    assert 'rota_limit_running{limit="queue:zz"} 1' in lines
    assert 'rota_limit_most{limit="queue:zz"} 1' in lines
    assert any(line.startswith('rota_limit_tokens{limit="queue:zz"} ') for line in lines)
    assert sum(line.startswith("rota_limit_running{") for line in lines) == 100
