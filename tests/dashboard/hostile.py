"""Texts that try to run, to break out or to look like others; and a store with them in every field.

Each one would set ``window.__xss`` if it ever ran. None may hold NUL outside of JSON: PostgreSQL's
text has none.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import msgspec
from browser_tools import Visitor

from rota import Rota
from rota.core.ids import uuid7
from rota.core.schedules.calendars import Calendar
from rota.model import (
    Attempt,
    AuditEntry,
    ClaimRequest,
    Gate,
    Job,
    Limit,
    LimitRule,
    LogLine,
    NewJob,
    Rule,
    Schedule,
    Settlement,
    State,
    TenantRule,
)
from rota.operate.credentials import ApiToken, StoredUser
from rota.store.calls import claim, settle
from rota.store.protocol import Store

CORPUS: tuple[str, ...] = (
    # tags that load or run
    "<script>window.__xss=1</script>",
    "</script><script>window.__xss=1</script>",
    "<img src=x onerror=window.__xss=1>",
    "<img src=x onerror=\"window.__xss=1\">",
    "<svg onload=window.__xss=1>",
    "<svg><script>window.__xss=1</script></svg>",
    "<svg><animate onbegin=window.__xss=1 attributeName=x dur=1s>",
    "<math><mi//xlink:href=\"data:x,<script>window.__xss=1</script>\">",
    "<body onload=window.__xss=1>",
    "<iframe srcdoc=\"<script>parent.__xss=1</script>\"></iframe>",
    "<iframe src=javascript:window.__xss=1>",
    "<object data=javascript:window.__xss=1>",
    "<embed src=javascript:window.__xss=1>",
    "<details open ontoggle=window.__xss=1>",
    "<video><source onerror=window.__xss=1></video>",
    "<audio src=x onerror=window.__xss=1>",
    "<input autofocus onfocus=window.__xss=1>",
    "<select autofocus onfocus=window.__xss=1>",
    "<textarea autofocus onfocus=window.__xss=1>",
    "<marquee onstart=window.__xss=1>",
    "<style>@import'javascript:window.__xss=1'</style>",
    "<link rel=stylesheet href=javascript:window.__xss=1>",
    "<meta http-equiv=refresh content=\"0;url=javascript:window.__xss=1\">",
    "<base href=//evil.invalid/>",
    "<form action=javascript:window.__xss=1><input type=submit>",
    "<a href=\"javascript:window.__xss=1\">click</a>",
    "<template><script>window.__xss=1</script></template>",
    "<noscript><p title=\"</noscript><img src=x onerror=window.__xss=1>\">",
    "<ScRiPt>window.__xss=1</sCrIpT>",
    "<<script>window.__xss=1//<</script>",
    "<img/src=`x`onerror=window.__xss=1>",
    "<!--><img src=x onerror=window.__xss=1>-->",
    "<![CDATA[<script>window.__xss=1</script>]]>",
    # out of attributes, texts and templates
    "\" onmouseover=\"window.__xss=1",
    "' onfocus='window.__xss=1' autofocus='",
    "\"><script>window.__xss=1</script>",
    "'><img src=x onerror=window.__xss=1>",
    "`${window.__xss=1}`",
    "${window.__xss=1}",
    "{{window.__xss=1}}",
    "{{constructor.constructor('window.__xss=1')()}}",
    "<%= window.__xss=1 %>",
    "#{window.__xss=1}",
    "');window.__xss=1;//",
    "\\u003cscript\\u003ewindow.__xss=1\\u003c/script\\u003e",
    "&lt;script&gt;window.__xss=1&lt;/script&gt;",
    "&#60;script&#62;window.__xss=1&#60;/script&#62;",
    "%3Cscript%3Ewindow.__xss=1%3C/script%3E",
    # links
    "javascript:window.__xss=1",
    "JaVaScRiPt:window.__xss=1",
    "java\tscript:window.__xss=1",
    "data:text/html,<script>window.__xss=1</script>",
    "vbscript:window.__xss=1",
    "//evil.invalid/a.js",
    "https://evil.invalid/\"onmouseover=\"window.__xss=1",
    # names that objects have of themselves
    "__proto__",
    "constructor",
    "toString",
    # text that dresses up
    "\u202eexe.reif\u202c gnp",
    "\u2066\u2067isolated\u2069",
    "\x1b[31mred\x1b[0m \x1b]8;;javascript:window.__xss=1\x07link\x1b]8;;\x07",
    "first\r\nSet-Cookie: a=b",
    "ａｄｍｉｎ ＜script＞",
    "p\u0430yments.send",
    "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319a\u0337\u0323l\u0321\u0353",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "\ufeff\u200b\u200dinvisible",
    "=HYPERLINK(\"javascript:window.__xss=1\")",
    "../../../../etc/passwd",
    "' OR 1=1; DROP TABLE jobs;--",
    "a b/c?d=e&f#g%h",
    "{}",
    "%7B%7D",
    "%",
    "x" * 200,
)  # fmt: skip
ENDS = (State.SUCCEEDED, State.FAILED, State.CANCELLED, State.FAILED)
LEFT_QUEUED = 8  # the first 8 stay queued, the next 8 keep running
LEASE_S = 3600.0


async def fill(app: Rota) -> None:
    """A job, schedule, gate, worker, token, user, calendar, limit, tenant and audit line per text: each field
    holds it."""
    store, now = await app.stores.get(), app.clock.now()
    before = now - timedelta(minutes=9)
    await store.insert([_job(i, text, before) for i, text in enumerate(CORPUS)], before)
    await _end_some(store, now)
    await store.put_schedules([_schedule(i, text, now) for i, text in enumerate(CORPUS)], now)
    await store.append_audit([_line(text, now) for text in CORPUS])
    for i, text in enumerate(CORPUS):
        await _documents(store, i, text, now)
    await store.put_rules([rule for i, text in enumerate(CORPUS) for rule in _rules(i, text)], now)


def _id(i: int, at: datetime) -> str:
    return uuid7(int(at.timestamp() * 1000), i)


def _job(i: int, text: str, at: datetime) -> NewJob:
    payload = {"text": text, text: [text, {text: text}], "big": 2**60 + 1, "nul": "\0" + text}
    return NewJob(
        id=_id(i, at),
        task=text,
        queue=text,
        tenant=text,
        key=text,
        concurrency_key=text,
        tags=(text, "seen"),
        payload_json=_json(payload),
    )


async def _end_some(store: Store, now: datetime) -> None:
    """Claim all but a few, then end most of these, with errors, outputs and log lines."""
    want = ClaimRequest(worker=CORPUS[0], limit=len(CORPUS) - LEFT_QUEUED, lease_s=LEASE_S)
    claimed = await claim(store, want, now - timedelta(minutes=8))
    changes = [_end(job, now - timedelta(minutes=i % 7)) for i, job in enumerate(claimed[LEFT_QUEUED:])]
    assert not await settle(store, changes, now)


def _end(job: Job, at: datetime) -> Settlement:
    text, state = job.task, ENDS[len(job.task) % len(ENDS)]
    error = {"type": text, "message": text, "traceback": f'File "{text}", line 1, in f\n  {text}\n{text}'}
    failed = _json(error) if state is State.FAILED else None
    logs = [LogLine(at=at, level=level, message=text) for level in ("info", text[:20])]
    record = Attempt(
        job=job.id,
        attempt=job.attempt,
        lease_token=job.lease_token,
        outcome=state.value,  # type: ignore[arg-type]
        worker=text,
        started_at=at - timedelta(seconds=2),
        finished_at=at,
        error_json=failed,
        logs_json=_json(logs),
    )
    return Settlement(
        job.id,
        job.lease_token,
        job.worker,
        job.queue,
        job.task,
        job.tenant,
        job.key,
        state,
        job.attempt,
        output_json=_json({text: text}) if state is State.SUCCEEDED else None,
        error_json=failed,
        progress_json=_json({"percent": 50, "message": text}),
        record=record,
    )


def _schedule(i: int, text: str, now: datetime) -> Schedule:
    return Schedule(
        id=_id(i, now),
        name=text,
        tenant=text,
        task=text,
        cron="0 8 * * *",
        timezone="UTC",
        payload_json=_json({"text": text}),
        queue=text,
        calendar=text,
        description=text,
        enabled=i % 3 != 0,
        reason=text if i % 3 == 0 else None,
        next_run_at=now + timedelta(minutes=i - 10),
        owner=text,
        created_at=now,
        updated_at=now,
    )


def _line(text: str, now: datetime) -> AuditEntry:
    return AuditEntry(
        action=text,
        at=now,
        actor=text,
        role="admin",
        via=text[:20],
        tenant=text,
        object=f"job:{text}",
        before_json=_json({text: text, "same": 1}),
        after_json=_json({text: f"{text}!", "same": 1, "new": text}),
        result="done",
        message=text,
        request_id=text,
        address=text,
    )


def _rules(i: int, text: str) -> tuple[Rule, ...]:
    """After all claims: they hold nothing up. The code's limit has a hostile rate."""
    scope = ("queue", "task", "tenant", "key")[i % 4]
    chosen, declared = Limit(running=1), Limit(running=2, rate=text)
    return (
        LimitRule(name=f"{scope}:{text}", chosen=chosen, declared=declared),
        LimitRule(name=f"key:{text}:{text}*", chosen=chosen),
        TenantRule(name=text, weight=2.0, waiting=7, budget=100.0, period="day", budget_alert=0.5),
    )


async def _documents(store: Store, i: int, text: str, now: datetime) -> None:
    """A worker, a token, a user, a gate and a calendar."""
    worker = {"name": text, "host": text, "pid": i, "state": "running", "tasks": [text], "queues": [text],
              "concurrency": 4, "running": 1, "version": text}  # fmt: skip
    token = ApiToken(
        id=f"hostile{i}", hash="0", role="viewer", name=text, tenant=text, created_at=now, created_by=text
    )
    user = StoredUser(name=text, salt="00", hash="0", role="viewer", tenant=text, created_at=now)
    scope: Any = ("queue", "task", "tenant")[i % 3]
    gate = Gate(scope=scope, name=text, reason=text, actor=text, since_at=now)
    calendar = Calendar(name=text, dates=frozenset({date(2099, 1, 1)}), weekend=frozenset({5, 6}))
    for kind, key, body in (
        ("worker", worker_id(i, text), _json(worker)),
        ("token", token.id, _json(token)),
        ("user", text, _json(user)),
        ("gate", gate.id, _json(gate)),
        ("calendar", text, _json(calendar)),
    ):
        assert await store.put_document(kind, key, body, None, now) is not None


def worker_id(i: int, text: str) -> str:
    return f"{text[:190]}:{i}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def is_innocent(visitor: Visitor) -> None:
    """Nothing ran, nothing was stopped by the policy, nothing went wrong."""
    assert not visitor.ran()
    visitor.assert_no_problems()
